"""The suite `inference`: raw texts to labels, in batches."""

from functools import partial

from report import BY_LENGTH, NATURAL, Table, add_ratios
from serving import KIT, start_answering
from sides import median, seconds_of, take_turns
from workload import read_workload, sorted_order


def run(bench):
    """Batches of 32 in random order, and sorted by length. `Predictor` sorts what it is given; here it gets batches."""
    options = bench.options
    work = read_workload(options, options.batch_size or 32, sorted_order)
    contenders = {("matmul", ""): bench.matmul()}
    for side in start_answering(bench, work, peers=("pytorch", "onnx", "keras_hub")):
        orders = (NATURAL,) if side.name == "keras_hub" else (BY_LENGTH, NATURAL)
        for name, ask in side.contenders.items():
            contenders |= {(name, order): partial(ask, batches=work.batches(order)) for order in orders}
    answers = take_turns(contenders, [{}] * options.turns, warm_up=[{}])
    rate = median(answers.pop(("matmul", "")), "rate")
    operations = bench.shape.classifier_operations(work.lengths[NATURAL])
    rows = [bench.row(name, order, work, found, operations, rate) for (name, order), found in answers.items()]
    facts = bench.facts(work.facts(), f"medians of {options.turns} turns", rate=rate)
    return [Table("Inference, raw texts to labels", add_ratios(rows, "texts/s", KIT), facts, seconds_of(answers))]
