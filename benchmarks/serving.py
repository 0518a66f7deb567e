"""The suite `serving`: one text at a time and batches of 32, from the string to the probabilities.

"TF-Hub's style" is a SavedModel that pads every text to the full length and reads float32 variables; it has the kit's
tokenizer and layers, so that it differs from the kit's export in these things only. Both run in sessions, as TF Serving
runs them. "difference" is the largest of a probability from the kit's float32: all contenders hold the same weights.
"""

import numpy as np
from report import NATURAL, Table
from sides import median, seconds_of, take_turns
from workload import read_workload, sorted_order

from keras_bert_kit.data import read_examples

KIT, REFERENCE, BASELINE = "kit bfloat16", "kit float32", "TF-Hub's style"
WARM_UP = 5
CALIBRATION_TEXTS = 256


def export_of(bench, work, as_servers=False):
    """Exports a classifier in all ways; returns the job of the sides that answer with it."""
    settings = {"folder": str(bench.folder), "as_server": as_servers}
    texts = read_examples(bench.options.texts).texts
    chosen = np.random.default_rng(0).permutation(len(texts))[:CALIBRATION_TEXTS]
    exports = {"constants": bench.options.constants, "calibration_texts": [texts[i] for i in chosen]}
    with bench.start("kit", "export", bench.job(work, **settings, **exports)) as exporter:
        return bench.job(work, **settings, versions=exporter.ready["versions_written"])


def start_answering(bench, work, peers, as_servers=False):
    """Exports a classifier, and starts the sides that answer texts with its weights (keras-hub: its own ones)."""
    job = export_of(bench, work, as_servers)
    return bench.start_sides("answers", job, peers, parameters=bench.shape.parameters)


def run(bench):
    """Milliseconds of a text, and texts a second in batches."""
    work = read_workload(bench.options, 32, sorted_order)
    contenders = {}
    for side in start_answering(bench, work, peers=("pytorch", "onnx"), as_servers=True):
        contenders |= side.contenders
    batches = work.batches(NATURAL)
    single = [{"batches": [[text]]} for batch in batches for text in batch][: bench.options.single]
    together = [{"batches": [batch]} for batch in batches]
    of_one = take_turns(contenders, single, warm_up=single[:WARM_UP])
    of_many = take_turns(contenders, together * bench.options.turns, warm_up=together)
    rows = [row_of(name, of_one, of_many, work.batch_size) for name in contenders]
    facts = bench.facts(f"{len(single)} single texts", work.facts())
    return [Table("Serving, the string to the probabilities", rows, facts, seconds_of(of_many))]


def row_of(name, of_one, of_many, batch_size):
    milliseconds = [1e3 * answer["seconds"] for answer in of_one[name]]
    return {
        "contender": name,
        "p50 ms": float(np.percentile(milliseconds, 50)),
        "p99 ms": float(np.percentile(milliseconds, 99)),
        "texts/s": batch_size / median(of_many[name]),
        "x latency": median(of_one[BASELINE]) / median(of_one[name]),
        "x throughput": median(of_many[BASELINE]) / median(of_many[name]),
        "difference": f"{largest_difference(of_one, name):.1g}",
    }


def largest_difference(answers, name):
    pairs = zip(answers[name], answers[REFERENCE], strict=True)
    return max(np.abs(np.subtract(ours["probabilities"], theirs["probabilities"])).max() for ours, theirs in pairs)
