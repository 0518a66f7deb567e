"""The suite `start`: seconds from a new process to the import, the first answer and the first step."""

import subprocess
import time
from functools import partial

from report import NATURAL, Table
from serving import KIT, export_of
from sides import median, seconds_of, take_turns
from workload import read_workload, sorted_order

IMPORTS = {
    "tensorflow": ("kit", "import tensorflow"),
    "tensorflow, then keras_bert_kit": ("kit", "import tensorflow, keras_bert_kit"),
    "Transformers' BertForSequenceClassification": (
        "pytorch",
        "from transformers import BertForSequenceClassification",
    ),
    "keras_hub": ("keras_hub", "import keras_hub"),
}
FIRST = {"kit": KIT, "pytorch": "PyTorch bfloat16", "keras_hub": "keras-hub bfloat16"}


def run(bench):
    """Every turn of every contender is a process of its own; files are in the page cache after the first one.

    An answer is that of one text, by the kit from its export. A step is that of a batch of 16, with tracing and
    compiling. keras-hub makes random weights, the others load theirs.
    """
    pythons = {name: bench.python if name == "kit" else getattr(bench.options, f"peer_{name}") for name in FIRST}
    pythons = {name: python for name, python in pythons.items() if python}
    turns, warm_up = [{}] * bench.options.turns, [{}]
    imports = {
        name: partial(seconds_to_import, pythons[side], code)
        for name, (side, code) in IMPORTS.items()
        if side in pythons
    }
    imported = take_turns(imports, turns, warm_up)
    work = read_workload(bench.options, 16, sorted_order)
    exported = export_of(bench, work)
    texts, labels = work.examples[NATURAL]
    examples = {NATURAL: (texts[: work.batch_size], labels[: work.batch_size])}
    training = {"batch_size": work.batch_size, "examples": examples, "weights": f"{bench.folder}/hf"}
    tasks = {
        "answer": ("answers", exported, {"batches": [texts[:1]]}),
        "step": ("finetune", bench.job(work, **training), {"order": NATURAL}),
    }
    contenders = {
        (side, first): partial(seconds_to_first, bench, side, task, job | {"only": FIRST[side]}, request)
        for side in pythons
        for first, (task, job, request) in tasks.items()
    }
    found = take_turns(contenders, turns, warm_up)
    rows = [
        {"contender": FIRST[side]} | {f"first {first}, s": median(found[side, first]) for first in tasks}
        for side in pythons
    ]
    import_rows = [{"import": name, "seconds": median(answers)} for name, answers in imported.items()]
    return [
        Table("Imports", import_rows, f"a new process each, medians of {len(turns)}", seconds_of(imported)),
        Table(
            "First answer and first step", rows, bench.facts(f"medians of {len(turns)} processes"), seconds_of(found)
        ),
    ]


def seconds_to_import(python, code):
    """Without what libraries do when a process ends."""
    start = time.perf_counter()
    subprocess.run([python, "-c", f"{code}\nimport os; os._exit(0)"], check=True, stderr=subprocess.DEVNULL)
    return {"seconds": time.perf_counter() - start}


def seconds_to_first(bench, name, task, job, request):
    """Starts a side, asks it once, ends it."""
    start = time.perf_counter()
    with bench.start(name, task, job) as side:
        side.ask(job["only"], **request)
        return {"seconds": time.perf_counter() - start}
