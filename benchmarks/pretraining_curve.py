"""Does a small BERT learn from a few megabytes of text? One command: text, vocabulary, data, pre-training, a curve.

    python benchmarks/pretraining_curve.py FOLDER --out curve

FOLDER holds `wikitext-2/valid.txt` and `wikitext-2/test.txt` (WikiText-2, its articles under " = Title = ") and a novel
in the plain text of Project Gutenberg, `gutenberg_*.txt`. Every tenth document (an article; a chapter) is held out:
neither the vocabulary nor the model sees it. Prints, besides the loss, the accuracy on masked words of the held-out
documents beside what always guessing the most frequent of them would give, and that on next sentences, where guessing
gives a little over 0.5. Sequences of 32 tokens come first: looking at neighbours is learnt sooner among few tokens.
`curve/run/training.png` has the picture.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path

import keras

from keras_bert_kit import BertConfig, BertTokenizer, learn_vocabulary, save_pretrained, write_vocabulary
from keras_bert_kit.data import PretrainingBatches, PretrainingSettings, write_pretraining_data
from keras_bert_kit.recipes import new_pretrainer, pretrain_bert

EVERY = 10
_JOINED = re.compile(r" @(.)@ ")
_TITLE = re.compile(r"^ = [^=].* = $", re.MULTILINE)
_CHAPTER = re.compile(r"^\s*chapter [0-9ivxlc]+\.?\s*$", re.MULTILINE | re.IGNORECASE)


def articles(text):
    """Articles of WikiText-2, without headings, its spaces around hyphens undone and its <unk> left out."""
    for article in _TITLE.split(text)[1:]:
        paragraphs = [line.strip() for line in article.splitlines() if line.strip() and not line.startswith(" =")]
        yield "\n\n".join(_JOINED.sub(r"\1", line).replace("<unk> ", "") for line in paragraphs)


def chapters(text):
    """Chapters of a book of Project Gutenberg, a paragraph a line."""
    text = text.replace("\r\n", "\n")
    text = re.split(r"\*\*\* ?(?:START|END) OF.*\n", text)[1]
    for chapter in _CHAPTER.split(text)[1:]:
        yield "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", chapter) if part.strip())


def write_texts(folder, out):
    """Writes train.txt and held_out.txt in the format "plain"; returns the numbers of their documents."""
    documents = []
    for name in ("valid", "test"):
        documents += articles((folder / f"wikitext-2/{name}.txt").read_text(encoding="utf-8"))
    for path in sorted(folder.glob("gutenberg_*.txt")):
        documents += chapters(path.read_text(encoding="utf-8-sig"))
    parts = {"train": [], "held_out": []}
    for number, document in enumerate(documents):
        parts["train" if number % EVERY else "held_out"].append(document)
    for name, found in parts.items():
        (out / f"{name}.txt").write_text("\n\n\n".join(found) + "\n", encoding="utf-8")
    return {name: len(found) for name, found in parts.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder for everything that is made; must be new")
    parser.add_argument("--short-steps", type=int, default=2000, help="steps of 128 rows of 32 tokens, at first")
    parser.add_argument("--steps", type=int, default=600, help="steps of 64 rows of 128 tokens, after that")
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--dupe-factor", type=int, default=10, help="how often pairs are drawn from each document")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    options.out.mkdir(parents=True)
    print("documents:", write_texts(options.folder, options.out))
    words = learn_vocabulary([options.out / "train.txt"], options.vocab_size)
    tokenizer = BertTokenizer.from_vocab_file(write_vocabulary(words, options.out / "vocab.txt"))
    sets = {}
    for name, length, batch_size, dupe_factor in (
        ("train", 32, 128, options.dupe_factor),
        ("train", 128, 64, options.dupe_factor),
        ("held_out", 128, 64, 1),
    ):
        settings = PretrainingSettings(
            sequence_length=length, text_format="plain", dupe_factor=dupe_factor, seed=options.seed
        )
        folder = options.out / f"{name}-{length}"
        write_pretraining_data([options.out / f"{name}.txt"], tokenizer, folder, settings)
        sets[name, length] = PretrainingBatches(folder, batch_size, options.seed)
    config = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=options.hidden // 64,
        intermediate_size=4 * options.hidden,
        max_position_embeddings=128,
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
        hidden_act="gelu_tanh",
    )
    keras.utils.set_random_seed(options.seed)
    model = new_pretrainer(config, options.dtype)
    history = pretrain_bert(
        model,
        [sets["train", 32], sets["train", 128]],
        [options.short_steps, options.steps],
        sets["held_out", 128],
        learning_rate=options.learning_rate,
        checkpoint_dir=options.out / "run",
        seed=options.seed,
    )
    save_pretrained(model, options.out / "model", tokenizer=tokenizer)
    results = history.validations[-1][1] | {"minutes": (time.monotonic() - start) / 60}
    print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
