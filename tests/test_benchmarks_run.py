"""benchmarks/run.py runs, from the command line to its tables, with the kit alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert_kit import learn_vocabulary, write_vocabulary

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "keras_bert_kit" / "data" / "sample_news.csv"
SUITES = "finetune inference serving pretrain tokenizer loading scaling start".split()


def run(*words):
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *words]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_help_lists_the_suites_that_the_docs_explain():
    text, page = run("--help"), (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for name in SUITES:
        assert f"\n    {name} " in text and f"| `{name}` |" in page


@pytest.mark.slow
def test_suites_give_tables(tmp_path):
    pytest.importorskip("tokenizers", reason="the vocabulary is learned with tokenizers")
    vocab = write_vocabulary(learn_vocabulary([SAMPLE]), tmp_path / "vocab.txt")
    sizes = "--layers 1 --hidden 64 --turns 1 --batches 2 --single 6 --markdown".split()
    files = ["--texts", str(SAMPLE), "--vocab", str(vocab), "--json", str(tmp_path / "out.json")]
    printed = run("finetune", "inference", "serving", "pretrain", *files, *sizes)
    suites = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["suites"]
    contenders = {name: [row["contender"] for row in tables[0]["rows"]] for name, tables in suites.items()}
    exports = ["kit bfloat16", "kit bfloat16, variables", "kit float32", "kit float32, constants", "kit int8"]
    assert contenders == {
        "finetune": ["kit bfloat16"] * 2,
        "inference": [name for name in exports for _ in range(2)],
        "serving": [
            *exports,
            "TF-Hub's style",
        ],
        "pretrain": ["kit bfloat16"],
    }
    by_length, natural = suites["finetune"][0]["rows"]
    assert by_length["padding"] < natural["padding"] and by_length["texts/s"] > 0
    assert 0 < by_length["of the matmul rate"] < 1
    differences = {row["contender"]: float(row["difference"]) for row in suites["serving"][0]["rows"]}
    assert differences["TF-Hub's style"] < 1e-5 and differences["kit bfloat16"] < 1e-2
    assert printed.count("### ") == sum(map(len, suites.values()))


@pytest.mark.slow
def test_start_is_of_new_processes(tmp_path):
    pytest.importorskip("tokenizers", reason="the vocabulary is learned with tokenizers")
    vocab = write_vocabulary(learn_vocabulary([SAMPLE]), tmp_path / "vocab.txt")
    sizes = "--layers 1 --hidden 64 --turns 2 --batches 2 --no-constants".split()
    run("start", "--texts", str(SAMPLE), "--vocab", str(vocab), "--json", str(tmp_path / "out.json"), *sizes)
    imports, first = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["suites"]["start"]
    assert [row["import"] for row in imports["rows"]] == ["tensorflow", "tensorflow, then keras_bert_kit"]
    (row,) = first["rows"]
    assert row["contender"] == "kit bfloat16"
    # Each of them is a process that imported TensorFlow.
    assert min(row["first answer, s"], row["first step, s"]) > imports["rows"][0]["seconds"]
