"""What does int8 bring to answers, and what does it cost? `export_for_serving(quantize="int8")` beside the others.

    python benchmarks/int8.py --texts news.csv --vocab vocab.txt
    python benchmarks/int8.py --texts train.csv --vocab vocab.txt --model FOLDER --eval test.csv

The tables: each product alone; the whole model beside the kit's other exports, in sessions such as TF Serving has; with
--eval the accuracy, and how many labels change. Contenders take turns in one process.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import side
import side_kit
import tensorflow as tf
from report import NATURAL, Table, aligned_rows, machine_line, markdown_rows, text_of_table
from shapes import SHAPES, shape_of
from workload import read_workload, sorted_order

import keras_bert_kit as kbk
from keras_bert_kit.data import label_ids, read_examples
from keras_bert_kit.serving.int8 import Dense, Int8Dense, quantize


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", required=True, help="CSV or TSV file of labelled texts: for speed and calibration")
    parser.add_argument("--vocab", required=True, help="vocab.txt, uncased")
    parser.add_argument("--model", metavar="FOLDER", help="a classifier for load_pretrained; default: random weights")
    parser.add_argument("--eval", metavar="FILE", help="with --model: labelled texts on which labels are compared")
    parser.add_argument("--shape", choices=SHAPES, default="base", help="base: 12 x 768; minilm: 6 x 384")
    parser.add_argument("--layers", type=int, help="another number of layers")
    parser.add_argument("--hidden", type=int, help="another hidden size; heads and feed-forward follow")
    parser.add_argument("--calibrate", type=int, default=256, help="texts for the export in int8")
    parser.add_argument("--turns", type=int, default=3, help="turns of each contender; the median counts")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each product in a turn")
    parser.add_argument("--batches", type=int, default=8, help="batches a turn")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--single", type=int, default=60, help="texts a turn that are asked one at a time")
    parser.add_argument("--max-length", type=int, default=128, help="tokens a text, longer ones are cut")
    parser.add_argument(
        "--no-constants", dest="constants", action="store_false", help="no bfloat16 constants: they take 7 GB to load"
    )
    parser.add_argument("--profile", action="store_true", help="also the time of a single text, by operation")
    parser.add_argument("--json", metavar="FILE", help="write the tables there")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    return parser


def model_and_packer(options, shape, dtype):
    """A classifier, trained or with random weights, the same ones in each dtype."""
    if options.model:
        loaded = kbk.load_pretrained(options.model, dtype=dtype)
        model, tokenizer = loaded.classifier, loaded.tokenizer
    else:
        keras.utils.set_random_seed(0)
        names = [str(i) for i in range(shape.classes)]
        model = side_kit.new_classifier({"config": shape.config, "class_names": names, "gelu": "erf"}, dtype)
        tokenizer = kbk.BertTokenizer.from_vocab_file(options.vocab)
    return model, kbk.BertPacker(tokenizer, None, max_sequence_length=options.max_length)


def answers_of(folder):
    return side_kit.in_session(str(folder), os.cpu_count())


def contenders_of(options, shape, texts, folder):
    """{name: function from texts to probabilities}, all of the same weights; and the names of the classes."""
    found = {}
    model, pack = model_and_packer(options, shape, "float32")
    found["float32"] = answers_of(kbk.export_for_serving(model, pack, folder / "float32", freeze=False))
    in_int8 = {"quantize": "int8", "calibration_texts": texts}
    found["int8"] = answers_of(kbk.export_for_serving(model, pack, folder / "int8", **in_int8))
    model, pack = model_and_packer(options, shape, "mixed_bfloat16")
    for weights in ("variables", "constants") if options.constants else ("variables",):
        version = kbk.export_for_serving(model, pack, folder / weights, freeze=weights == "constants")
        found[f"bfloat16, {weights}"] = answers_of(version)
    return found, model.class_names


def milliseconds(product, x, seconds):
    """Of one product and the call of its graph: the median of as many as fit into the time."""
    call = tf.function(product, autograph=False)
    call(x)
    measured, end = [], time.perf_counter() + seconds
    while not measured or time.perf_counter() < end:
        start = time.perf_counter()
        call(x)
        measured.append(1e3 * (time.perf_counter() - start))
    return statistics.median(measured)


def product_row(options, tokens, inner, outer):
    """One size: int8 from float32, so with quantization, beside bfloat16."""
    x = np.random.default_rng(0).standard_normal([tokens, inner]).astype(np.float32)
    dense = keras.layers.Dense(outer, bias_initializer="normal")
    exact = dense(x).numpy()
    kernel, bias = (tf.cast(variable.value, tf.bfloat16) for variable in dense.variables)
    int8 = Int8Dense(Dense.of(dense), np.abs(x).max())
    products = {
        "bfloat16": (lambda x: tf.nn.bias_add(x @ kernel, bias), tf.cast(x, tf.bfloat16)),
        "int8": (int8, tf.constant(x)),
        "quantizing alone": (lambda x: tf.bitcast(quantize(x, int8.largest_input), tf.int8), tf.constant(x)),
    }
    found = {name: [] for name in products}
    for _ in range(options.turns):
        for name, (product, inputs) in products.items():
            found[name].append(milliseconds(product, inputs, options.seconds))
    found = {f"{name} ms": statistics.median(values) for name, values in found.items()}
    error = np.abs(tf.function(int8, autograph=False)(tf.constant(x)) - exact).max() / np.abs(exact).max()
    row = {"tokens": tokens, "in": inner, "out": outer, **found}
    return row | {"bfloat16 / int8": row["bfloat16 ms"] / row["int8 ms"], "error": f"{error:.1g}"}


def products_table(options, shape, work):
    """The products of a block, for a text and for a batch of them."""
    hidden, wide = shape.hidden, shape.intermediate
    sizes = [(hidden, 3 * hidden), (hidden, hidden), (hidden, wide), (wide, hidden)]
    tokens = work.tokens // len(work.lengths[NATURAL])
    rows = [product_row(options, n, *size) for n in (tokens, tokens * options.batch_size) for size in sizes]
    return Table("Products with bias", rows, "error: the largest, as a share of the largest number")


def speed_table(options, contenders, work):
    """A single text, and batches in two orders."""
    single = [[text] for batch in work.batches(NATURAL) for text in batch][: options.single]
    sets = {"one": single} | {order: work.batches(order) for order in work.examples}
    answers = {name: np.concatenate([answer(batch) for batch in sets[NATURAL]]) for name, answer in contenders.items()}
    seconds = {(name, key): [] for name in contenders for key in sets}
    for turn in range(options.turns):
        names = list(contenders)[turn % len(contenders) :] + list(contenders)[: turn % len(contenders)]
        for key, texts in ((key, texts) for key, batches in sets.items() for texts in batches):
            for name in names:
                start = time.perf_counter()
                contenders[name](texts)
                seconds[name, key].append(time.perf_counter() - start)
    rows = []
    for name in contenders:
        row = {"contender": name, "p50 ms of a text": 1e3 * statistics.median(seconds[name, "one"])}
        for order in work.examples:
            row[f"texts/s, {order}"] = work.batch_size * len(seconds[name, order]) / sum(seconds[name, order])
        rows.append(row | {"difference": f"{np.abs(answers[name] - answers['float32']).max():.1g}"})
    return Table("The string to the probabilities", rows, f"{work.facts()}; difference: the largest of a probability")


def profile_table(version, text):
    """Where the time of a text goes in int8; operations run side by side, so the sum may be larger than the whole."""
    options, milliseconds_of, count = tf.compat.v1.RunOptions(trace_level=3, output_partition_graphs=True), {}, {}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(version)).signature_def["serving_default"]
        for _ in range(8):  # of which the last one counts
            found = tf.compat.v1.RunMetadata()
            feed = {signature.inputs["text"].name: [text]}
            session.run(signature.outputs["probabilities"].name, feed, options=options, run_metadata=found)
    kinds = {node.name: node.op for graph in found.partition_graphs for node in graph.node}
    for node in (node for device in found.step_stats.dev_stats for node in device.node_stats):
        kind, nanoseconds = kinds.get(node.node_name, "other"), node.op_end_rel_nanos - node.op_start_rel_nanos
        milliseconds_of[kind] = milliseconds_of.get(kind, 0.0) + nanoseconds / 1e6
        count[kind] = count.get(kind, 0) + 1
    longest = sorted(milliseconds_of, key=milliseconds_of.get, reverse=True)[:8]
    rows = [{"operation": kind, "nodes": count[kind], "ms": milliseconds_of[kind]} for kind in longest]
    return Table(
        "A text in int8", rows, f"{sum(milliseconds_of.values()):.3g} ms in all of {sum(count.values())} nodes"
    )


def labels_table(options, contenders, class_names):
    """Accuracy on a file, and the labels that are not those of float32."""
    examples = read_examples(options.eval)
    labels, order = label_ids(examples, class_names), np.argsort([len(text) for text in examples.texts])
    chosen = {name: np.empty(len(order), int) for name in contenders}
    for rows in np.array_split(order, -(-len(order) // options.batch_size)):
        for name, answer in contenders.items():
            chosen[name][rows] = answer([examples.texts[i] for i in rows]).argmax(axis=-1)
    rows = []
    for name, found in chosen.items():
        changed = np.mean(found != chosen["float32"])
        rows.append({"contender": name, "accuracy": f"{np.mean(found == labels):.4f}", "changed": f"{changed:.2%}"})
    return Table("Labels", rows, f"{len(order)} texts; changed: not the label that float32 gives")


def main():
    options = parser().parse_args()
    with open(options.vocab, encoding="utf-8") as file:
        shape = shape_of(options, vocab_size=sum(1 for _ in file))
    work = read_workload(options, options.batch_size, sorted_order)
    texts = read_examples(options.texts).texts
    chosen = np.random.default_rng(0).permutation(len(texts))[: options.calibrate]
    print(f"{machine_line()}; {side.versions()}", flush=True)
    tables = [products_table(options, shape, work)]  # before there are sessions, whose threads wait beside it
    with tempfile.TemporaryDirectory() as folder:
        contenders, class_names = contenders_of(options, shape, [texts[i] for i in chosen], Path(folder))
        tables.append(speed_table(options, contenders, work))
        if options.profile:
            (version,) = Path(folder, "int8").glob("1")
            tables.append(profile_table(version, work.batches(NATURAL)[0][0]))
        if options.eval:
            tables.append(labels_table(options, contenders, class_names))
    for table in tables:
        print(f"\n{text_of_table(table, markdown_rows if options.markdown else aligned_rows)}", flush=True)
    if options.json:
        result = {"machine": machine_line(), "tables": [dataclasses.asdict(table) for table in tables]}
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
