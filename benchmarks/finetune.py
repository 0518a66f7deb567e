"""The suite `finetune`: raw texts to trained steps."""

from functools import partial

from report import BY_LENGTH, NATURAL, Table, add_ratios
from shapes import TRAINING
from sides import median, peak_megabytes, seconds_of, take_turns
from workload import order_of_the_recipe, read_workload


def run(bench):
    """bfloat16, AdamW, clipping, dropout; the batches of the recipe's order, and the same texts in random order."""
    options, batch_size = bench.options, bench.options.batch_size or 16
    work = read_workload(options, batch_size, order_of_the_recipe(batch_size))
    job = bench.job(work, examples=work.examples, batch_size=batch_size)
    contenders = {("matmul", ""): bench.matmul()}
    expected = {"parameters": bench.shape.parameters, "tokens": work.tokens}
    for side in bench.start_sides("finetune", job, ("pytorch", "keras_hub"), **expected):
        orders = (NATURAL,) if side.name == "keras_hub" else (BY_LENGTH, NATURAL)  # it pads to one length anyway
        for name, ask in side.contenders.items():
            contenders |= {(name, order): partial(ask, order=order) for order in orders}
    answers = take_turns(contenders, [{}] * options.turns, warm_up=[{}])
    rate = median(answers.pop(("matmul", "")), "rate")
    operations = TRAINING * bench.shape.classifier_operations(work.lengths[NATURAL])
    rows = [bench.row(name, order, work, found, operations, rate) for (name, order), found in answers.items()]
    for row, found in zip(rows, answers.values(), strict=True):
        row["peak MB"] = peak_megabytes(found)
    facts = bench.facts(work.facts(), f"medians of {options.turns} turns", rate=rate)
    title = "Fine-tuning, raw texts to trained steps"
    return [Table(title, add_ratios(rows, "texts/s", "kit bfloat16"), facts, seconds_of(answers))]
