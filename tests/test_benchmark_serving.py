"""benchmarks/serving.py runs, and its contenders are the same model."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "keras_bert_kit" / "data" / "sample_news.csv"


@pytest.mark.slow
def test_contenders_are_the_same_model():
    pytest.importorskip("tokenizers", reason="the vocabulary is learned with tokenizers")
    sizes = ["--layers", "1", "--single", "6", "--batches", "2"]
    words = [sys.executable, str(ROOT / "benchmarks" / "serving.py"), str(SAMPLE), *sizes, "--json"]
    ran = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stderr
    rows = {row["contender"]: row for row in json.loads(ran.stdout.splitlines()[-1])["rows"]}
    assert list(rows) == ["kit float32", "kit bfloat16", "TF-Hub's style"]
    assert float(rows["TF-Hub's style"]["difference"]) < 1e-5
    assert float(rows["kit bfloat16"]["difference"]) < 1e-2
