"""benchmarks/loading.py runs, and weights of every format are in memory once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmarks" / "loading.py"
# What a load takes whatever the size of the model: the tokenizer's tables, Keras' layers, blocks of files.
FIXED_BYTES = 48 << 20


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured through Linux' /proc")
def test_weights_are_in_memory_once():
    words = [sys.executable, str(BENCHMARK), "--layers", "2", "--repeats", "1", "--json"]
    ran = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert len(result["rows"]) == 7
    for row in result["rows"]:
        grown = row["memory, x weights"] * result["weight_bytes"]
        assert grown < 1.1 * result["weight_bytes"] + FIXED_BYTES, row
