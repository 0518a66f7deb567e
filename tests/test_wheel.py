"""What people install is a wheel: it holds everything, and works where there is no checkout."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fake_weights import write_hf_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "keras_bert_kit"

JOB = """
import json, sys
import keras_bert_kit as kbk

bert = kbk.load_pretrained(sys.argv[1])
pack = kbk.BertPacker(bert.tokenizer, sequence_length=16)
texts = ["the team wins a game", "space robots"]
folder = kbk.export_for_serving(bert.classifier, pack, "saved_models/wheel")
answers = kbk.Predictor(folder).predict(texts)
train, held_out = kbk.read_sample()
logits = bert.classifier(pack(texts)).numpy()
print(json.dumps({
    "file": kbk.__file__,
    "tokens": bert.tokenizer(texts).to_list(),
    "best": [bert.classifier.class_names[row.argmax()] for row in logits],
    "labels": [answer.label for answer in answers],
    "sample": len(train.texts) + len(held_out.texts),
}))
"""


def run(*words, cwd, **environment):
    """Run a command away from the checkout; its standard output, or an assertion with all it printed."""
    ran = subprocess.run(words, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{words}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of the project's files, so that no build folder is made or found in the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(PACKAGE, source / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), ".", cwd=source)
    (built,) = folder.glob("keras_bert_kit-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the installed wheel alone; TensorFlow comes from the environment that runs the tests."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel), cwd=folder)
    return folder


def test_wheel_holds_every_module_and_data_file(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    inside = {name for name in names if name.startswith("keras_bert_kit/")}
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert inside == {path.relative_to(ROOT).as_posix() for path in files}
    assert any(name.endswith(".csv") for name in inside), "the embedded sample is missing"
    metadata = [name.split("/", 1)[1] for name in names if name not in inside]
    assert "entry_points.txt" in metadata and any(name.endswith("LICENSE") for name in metadata)


def test_wheel_works_without_the_checkout(installed, tmp_path):
    tensors, _ = write_hf_folder(tmp_path / "model", heads=("classifier",), class_names=["World", "Sports", "Sci/Tech"])
    printed = run(sys.executable, "-c", JOB, str(tmp_path / "model"), cwd=tmp_path, PYTHONPATH=str(installed))
    result = json.loads(printed.splitlines()[-1])
    assert Path(result["file"]).is_relative_to(installed)
    assert len(result["tokens"][0]) == 5 and result["labels"] == result["best"]
    assert result["sample"] >= 480


def test_command_line_is_installed(installed, tmp_path):
    command = installed / "bin" / "keras-bert-kit"
    assert "finetune" in run(str(command), "--help", cwd=tmp_path, PYTHONPATH=str(installed))
    assert "finetune" in run(
        sys.executable, "-m", "keras_bert_kit", "--help", cwd=tmp_path, PYTHONPATH=str(installed), PYTHONSAFEPATH="1"
    )
