"""Does speed cost accuracy? A classifier fine-tuned as the kit does it, beside the plain way, on the same texts.

    python benchmarks/accuracy.py --source FOLDER --train train.csv --eval test.csv --seeds 3 --plain-seeds 1

The kit's way: bfloat16, texts of similar length in a batch, padding left out of the encoder. The plain way: float32,
batches in any order, every place of a batch computed. All else is that of `keras-bert-kit finetune`: batches of 32, the
rate and its warm-up, AdamW, clipping, dropout. Prints the accuracy of every run; a seed determines the order of the
texts, the new head and dropout.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import side
from report import Table, aligned_rows, machine_line, markdown_rows, text_of_table

import keras_bert_kit as kbk
from keras_bert_kit.data import class_names_of, classification_batches, read_examples
from keras_bert_kit.layers import TokenLayout
from keras_bert_kit.layers.functions import shape_of
from keras_bert_kit.recipes import default_learning_rate, evaluate_classifier, packer_for
from keras_bert_kit.training import CrossEntropy, Trainer, create_optimizer

KIT, PLAIN = "kit", "plain"
MAX_LENGTH, BATCH_SIZE, WARMUP_SHARE = 128, 32, 0.1


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, help="what load_pretrained takes: a folder of weights")
    parser.add_argument("--train", required=True, help="CSV or TSV file of labelled texts")
    parser.add_argument("--eval", required=True, help="file of those that the accuracy is measured on")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3, help="runs of the kit's way, with seeds 1, 2, …")
    parser.add_argument("--plain-seeds", type=int, default=1, help="runs of the plain way, which takes much longer")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    return parser


def run(options, way, seed):
    """Fine-tunes once: a row of the table."""
    keras.utils.set_random_seed(seed)  # of the new head
    bert = kbk.load_pretrained(options.source, dtype="mixed_bfloat16" if way == KIT else "float32")
    train, held_out = read_examples(options.train), read_examples(options.eval)
    names, pack = class_names_of(train), packer_for(bert, MAX_LENGTH)
    batches = classification_batches(train, pack, names, BATCH_SIZE, seed)
    if way == PLAIN:
        batches.lengths = None
        bert.encoder.layout_of = lambda mask, training: TokenLayout(*shape_of(mask))
    steps = options.epochs * batches.steps_per_epoch
    model = kbk.BertClassifier(bert.encoder, len(names), names)
    optimizer = create_optimizer(default_learning_rate(bert.config), steps, int(WARMUP_SHARE * steps))
    start = time.perf_counter()
    Trainer(model, optimizer, CrossEntropy(names), seed=seed).fit(batches, steps)
    minutes = (time.perf_counter() - start) / 60
    accuracy = evaluate_classifier(model, pack, held_out).accuracy
    return {"way": way, "seed": seed, "accuracy": f"{accuracy:.4f}", "minutes": f"{minutes:.1f}"}


def main():
    options = parser().parse_args()
    print(f"{machine_line()}; {side.versions()}", flush=True)
    rows = []
    for way, seeds in ((KIT, options.seeds), (PLAIN, options.plain_seeds)):
        for seed in range(1, seeds + 1):
            rows.append(run(options, way, seed))
            print(*rows[-1].values(), flush=True)
    mean = {way: np.mean([float(row["accuracy"]) for row in rows if row["way"] == way]) for way in (KIT, PLAIN)}
    facts = f"{options.epochs} epochs; mean {mean[KIT]:.4f} the kit's way, {mean[PLAIN]:.4f} the plain way"
    table = Table("Accuracy", rows, facts)
    print(f"\n{text_of_table(table, markdown_rows if options.markdown else aligned_rows)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
