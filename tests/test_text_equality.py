"""Ids and offsets on every line of the data sets, by the command that docs/tokenization.md names."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_every_line_of_the_data_sets(shared):
    pytest.importorskip("tokenizers")
    script = Path(__file__).resolve().parents[1] / "benchmarks" / "tokenizer.py"
    words = [sys.executable, str(script), "equality", "--data", str(shared / "data")]
    done = subprocess.run(words, capture_output=True, encoding="utf-8")
    print(done.stdout)
    assert done.returncode == 0 and "unexplained differences: 0" in done.stdout, done.stderr[-2000:]
    rows = [
        line.split()
        for line in done.stdout.splitlines()
        if line.strip().startswith(("uncased", "cased", "chin", "mult"))
    ]
    assert len(rows) == 4 and all(int(row[1]) > 500_000 and row[3:] == ["0", "0", "0"] for row in rows)
