"""benchmarks/pretraining_data.py: five times as fast as Google's algorithm, in memory that does not grow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmarks" / "pretraining_data.py"


def last_column(shared, *words):
    words = [sys.executable, str(BENCHMARK), *words, "--data", str(shared / "data")]
    beside = {**os.environ, "PYTHONPATH": str(BENCHMARK.parent)}  # where Python is told not to look beside the script
    ran = subprocess.run(words, capture_output=True, encoding="utf-8", check=False, env=beside)
    assert ran.returncode == 0, ran.stderr
    return [float(line.split()[-1]) for line in ran.stdout.splitlines()[1:]]


@pytest.mark.slow
def test_faster_than_googles_algorithm(shared):
    ratios = last_column(shared, "speed", "--repeats", "1")
    assert len(ratios) == 6
    assert min(ratios[1::2]) >= 5


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(shared):
    assert max(last_column(shared, "memory", "--megabytes", "3", "30")) < 1.1
