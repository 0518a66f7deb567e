"""What the suites of benchmarks/run.py share: operations by hand, turns, ratios, tables, the choice of texts."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import keras_bert_kit as kbk

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import report
import shapes
import side
import sides
import workload

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
TINY = shapes.Shape(layers=2, hidden=4, heads=2, intermediate=6, vocab_size=11, positions=8)


def test_parameters_are_those_of_the_model():
    config = kbk.BertConfig(**TINY.config, hidden_act="gelu_erf")
    assert TINY.parameters == kbk.BertClassifier(kbk.BertEncoder(config), TINY.classes).count_params()
    bert_base = shapes.shape_of(SimpleNamespace(shape="base", layers=None, hidden=None), vocab_size=30522)
    assert bert_base.parameters == 109_482_240 + 4 * 769  # of bert-base-uncased, as published; and the head


def products_of_a_text(length, shape):
    """Sizes (m, k, n) of the matrix products of one text, written down one after the other."""
    head = shape.hidden // shape.heads
    for _ in range(shape.layers):
        yield from [(length, shape.hidden, shape.hidden)] * 3  # query, key, value
        for _ in range(shape.heads):
            yield length, head, length  # scores
            yield length, length, head  # weighted sums
        yield length, shape.hidden, shape.hidden
        yield length, shape.hidden, shape.intermediate
        yield length, shape.intermediate, shape.hidden


def test_operations_are_those_of_the_products():
    lengths = [2, 5, 8]
    products = [*itertools.chain(*(products_of_a_text(length, TINY) for length in lengths))]
    encoder = sum(2 * m * k * n for m, k, n in products)
    assert TINY.encoder_operations(lengths) == encoder
    assert TINY.classifier_operations(lengths) == encoder + 3 * 2 * (4 * 4 + 4 * 4)
    assert TINY.pretraining_operations(lengths, 6) == encoder + 6 * 2 * (4 * 4 + 4 * 11) + 3 * 2 * (4 * 4 + 4 * 2)


def test_operations_by_hand():
    one = shapes.Shape(layers=1, hidden=2, heads=1, intermediate=3, vocab_size=9)
    # A token: 4 products of 2 x 2 and two of 2 x 3 are 28 multiplications. Two tokens: 2 products of 2 x 2 x 2.
    assert one.encoder_operations([2]) == 2 * (2 * 28 + 2 * 8)


def test_contenders_take_turns_and_the_warm_up_does_not_count():
    asked = []

    def contender(name):
        def answer(text):
            asked.append(name + text)
            return {"seconds": float(len(asked)), "peak_bytes": None}

        return answer

    contenders = {name: contender(name) for name in "ab"}
    answers = sides.take_turns(contenders, [{"text": "1"}, {"text": "2"}], warm_up=[{"text": "0"}])
    assert asked == ["a0", "b0", "b1", "a1", "a2", "b2"]
    assert sides.seconds_of(answers) == {"a": [4.0, 5.0], "b": [3.0, 6.0]}
    assert sides.median(answers["a"]) == 4.5 and sides.peak_megabytes(answers["a"]) is None
    assert sides.peak_megabytes([{"peak_bytes": 5_000_000}, {"peak_bytes": 7_000_000}]) == 7


SIDE = """
import side

def work(job):
    return {"twice": lambda number: {"twice": 2 * number + job["more"]}}, {"parameters": 5}

side.run({"work": work})
"""


def test_a_side_answers_and_its_death_is_told(tmp_path, monkeypatch):
    shutil.copy(BENCHMARKS / "side.py", tmp_path)
    (tmp_path / "side_echo.py").write_text(SIDE)
    monkeypatch.setattr(sides, "HERE", tmp_path)
    with sides.Side(sys.executable, "echo", "work", {"more": 1}, tmp_path) as side:
        assert side.ready["parameters"] == 5
        answer = side.contenders["twice"](number=3)
        assert answer["twice"] == 7 and answer["seconds"] >= 0
        with pytest.raises(SystemExit, match="side_echo.py ended with exit code 1; its error is above"):
            side.ask("another")


def test_the_peak_of_a_process_is_its_own():
    """Not that of who started it, which Linux's `getrusage` hands down."""
    if side.peak_bytes() is None:
        pytest.skip("this system does not say how much memory a process has had")
    held = bytearray(b"x" * 300_000_000)
    command = [sys.executable, "-c", "import side; print(side.peak_bytes())"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(BENCHMARKS)}, capture_output=True, check=True)
    assert int(done.stdout) < 100_000_000 < len(held) < side.peak_bytes()


def test_ratios_are_to_the_same_order_and_to_the_kits_own():
    speeds = [("kit", "natural", 6.0), ("kit", "by length", 8.0), ("peer", "natural", 2.0), ("peer", "by length", 4.0)]
    rows = [{"contender": name, "order": order, "texts/s": speed} for name, order, speed in speeds]
    report.add_ratios(rows, "texts/s", "kit")
    assert [row["kit, same order"] for row in rows] == [1, 1, 3, 2]
    assert [row["kit, by length"] for row in rows] == [8 / 6, 1, 4, 2]


def test_tables():
    table = report.Table("Speed", [{"contender": "kit", "texts/s": 1234.5, "peak MB": None}], "2 threads")
    markdown = report.text_of_table(table, report.markdown_rows)
    assert markdown.splitlines() == [
        "### Speed",
        "",
        "2 threads",
        "",
        "| contender | texts/s | peak MB |",
        "| --- | --- | --- |",
        "| kit | 1,234 | – |",
    ]
    assert report.aligned_rows(table.rows).splitlines()[1] == "      kit    1,234        –"
    assert [report.text_of(value) for value in (0.4567, 12.345, 7, "x")] == ["0.457", "12.3", "7", "x"]


def test_the_machine_line(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: A Processor\nflags\t\t: fpu avx2 amx_bf16\n")
    line = report.machine_line(path)
    assert line.startswith("A Processor, ") and "avx2 amx_bf16" in line and "avx512f" not in line


def test_batches_are_spread_over_the_lengths():
    means = np.array([80.0, 10.0, 70.0, 20.0, 60.0, 30.0, 50.0, 0.0, 40.0])
    assert means[workload.spread_choice(means, 3)].tolist() == [10, 40, 70]


def test_all_orders_have_the_same_texts(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f'"{1 + i % 2}","title {i}","{"word " * rng.integers(1, 12)}"' for i in range(64)]
    texts, vocab = tmp_path / "news.csv", tmp_path / "vocab.txt"
    texts.write_text("\n".join(rows) + "\n")
    vocab.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "title", "word"]) + "\n")
    options = SimpleNamespace(texts=texts, vocab=vocab, batches=3, max_length=16)
    for order_of in (workload.sorted_order, workload.order_of_the_recipe(4)):
        work = workload.read_workload(options, 4, order_of)
        natural, by_length = (sorted(zip(*work.examples[order], strict=True)) for order in ("natural", "by length"))
        assert natural == by_length and len(set(natural)) == 12
        assert max(work.lengths["natural"]) <= 16 and work.tokens == sum(work.lengths["by length"])
        assert work.padding("by length") <= work.padding("natural") <= work.padding("natural", fixed_length=16)
        assert work.padding("natural", 16) == pytest.approx(1 - work.tokens / (12 * 16))
        assert [len(batch) for batch in work.batches("natural")] == [4, 4, 4]
