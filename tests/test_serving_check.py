"""`inspect_export` and `check-export`: what is shown, and what is refused; also with another TensorFlow."""

import json
import os
import shutil
import sys

import pytest
import tensorflow as tf
from serving_models import CLASS_NAMES, small_classifier, small_pack

from keras_bert_kit import cli
from keras_bert_kit.cli import check_export as check_export_command
from keras_bert_kit.errors import ExportError
from keras_bert_kit.pretrained import save_pretrained
from keras_bert_kit.serving import check, export, export_for_serving
from keras_bert_kit.serving.inspection import inspect_export
from keras_bert_kit.serving.signatures import SIGNATURES
from keras_bert_kit.text import BertPacker

FEW = ("serving_default", "embed")
OTHER_PYTHON = "KIT_OTHER_TENSORFLOW_PYTHON"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a trained model, and one with its exports."""
    folder = tmp_path_factory.mktemp("Modelle für") / "模型"
    model, pack = small_classifier(), BertPacker(small_pack().tokenizer, None, max_sequence_length=16)
    save_pretrained(model, folder / "trained", tokenizer=pack.tokenizer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # tested in test_serving_export.py
        export_for_serving(model, pack, folder / "served", signatures=SIGNATURES, long_text="window")
        export_for_serving(model, pack, folder / "served", signatures=FEW)
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["keras-bert-kit", *map(str, words)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return run


def test_check_export(folder, run):
    code, out, _ = run("check-export", folder / "served", "--model", folder / "trained", "--json")
    found = json.loads(out.splitlines()[-1])
    assert code == 0
    assert found["saved_model"] == str(folder / "served" / "2")
    assert "MatMul" in found["ops"] and "SegmentMean" not in found["ops"]
    assert list(found["signatures"]) == list(FEW)
    assert found["signatures"]["serving_default"] == {
        "inputs": {"text": "string (None,)"},
        "outputs": {
            "label": "string (None,)",
            "probabilities": "float32 (None, 3)",
            "logits": "float32 (None, 3)",
        },
    }
    assert found["file_bytes"]["saved_model.pb"] == (folder / "served" / "2" / "saved_model.pb").stat().st_size
    assert list(found["latency_ms"]) == ["16"] and found["latency_ms"]["16"] > 0 and found["load_seconds"] > 0
    assert found["tensorflow"] == tf.__version__
    assert 0 <= found["difference_between_processes"] < 1e-5
    assert 0 < found["difference_to_model"] < 1e-5


@pytest.mark.parametrize("said", [{"truncation": "only_first"}, {}])
def test_the_packer_is_that_of_the_export(folder, run, tmp_path, monkeypatch, said):
    """Exports of version 0.1 did not say how they truncate."""
    shutil.copytree(folder / "served" / "2", tmp_path / "1")
    kit_file = tmp_path / "1" / export.KIT_FILE
    content = json.loads(kit_file.read_text(encoding="utf-8"))
    assert content.pop("truncation") == "longest_first"
    kit_file.write_text(json.dumps(content | said), encoding="utf-8")
    asked = {}

    def inspect(path, **settings):
        asked.update(settings)
        raise ExportError("This is enough.")

    monkeypatch.setattr(check_export_command, "inspect_export", inspect)
    assert run("check-export", tmp_path, "--model", folder / "trained")[0] == 1
    assert asked["pack"].truncation == said.get("truncation", "longest_first")
    assert asked["pack"].max_sequence_length == 16 and asked["pack"].sequence_length is None


@pytest.mark.parametrize("python", ["other/bin/python", "./python", "python3", sys.executable])
def test_the_python_is_found_from_where_the_command_runs(folder, monkeypatch, python):
    """The process starts in another folder."""
    started = []

    def run(words, **settings):
        started.append(words[0])
        raise OSError("not really")

    monkeypatch.setattr(check.subprocess, "run", run)
    with pytest.raises(ExportError, match="not really"):
        check.fresh_answers(folder, [], python)
    assert started == ["python3" if python == "python3" else os.path.abspath(python)]


def test_help(run):
    code, out, _ = run("check-export", "--help")
    assert code == 0 and "Example:" in out and "--python" in out


def test_for_people(folder, run, monkeypatch):
    monkeypatch.setattr(check, "fresh_answers", lambda *args: {"tensorflow": "2.99", "answers": {}})
    code, out, _ = run("check-export", folder / "served" / "2")
    assert code == 0
    assert "signature    embed(text string (None,)) -> embeddings float32 (None, 16)" in out
    assert "ms for a text of 16 tokens" in out
    assert "to TensorFlow 2.99 in another process" in out and "trained" not in out


def test_another_tensorflow(folder):
    """Every signature answers alike, truncating and in windows, in the two ways that TensorFlow loads a model."""
    python = os.environ.get(OTHER_PYTHON)
    if not python:
        pytest.skip(f"needs {OTHER_PYTHON}: the Python of an environment with another TensorFlow")
    for version in ("1", "2"):
        inspection = inspect_export(folder / "served" / version, python=python)
        print(f"TensorFlow {inspection.tensorflow}: {inspection.difference_between_processes:.2g}")
        assert inspection.tensorflow != tf.__version__
        assert inspection.difference_between_processes < 1e-5


def test_another_model(folder):
    other = small_classifier(seed=1)
    with pytest.raises(ExportError, match="difference of 0.* in probabilities of serving_default, in a fresh process"):
        inspect_export(folder / "served" / "2", model=other, pack=small_pack())


def test_other_answers_in_the_other_process(folder, monkeypatch):
    fresh_answers = check.fresh_answers

    def other(*args):
        answers = fresh_answers(*args)
        answers["answers"]["answers_in_session"][FEW.index("embed")]["embeddings"][0][0] += 1.0
        return answers

    monkeypatch.setattr(check, "fresh_answers", other)
    with pytest.raises(ExportError, match=r"embeddings of embed, in a fresh process \(answers_in_session\)"):
        inspect_export(folder / "served")


@pytest.mark.parametrize(("python", "message"), [("no/such/python", "No such file"), (shutil.which("false"), "exit")])
def test_a_python_that_fails(folder, run, python, message):
    code, _, err = run("check-export", folder / "served", "--python", python)
    assert code == 1 and len(err.splitlines()) == 1
    assert "process that has only TensorFlow" in err and message in err


@pytest.mark.parametrize("spoil", ["absent", "changed"])
def test_no_whole_export(folder, run, tmp_path, spoil):
    if spoil == "changed":
        shutil.copytree(folder / "served" / "2", tmp_path / "1")
        (tmp_path / "1" / "fingerprint.pb").write_bytes(b"?")
    code, _, err = run("check-export", tmp_path)
    assert code == 1
    assert ("changed fingerprint.pb" if spoil == "changed" else "absent or empty") in err


def test_an_export_that_says_less(folder, tmp_path, monkeypatch):
    """As those of version 0.1 do."""
    shutil.copytree(folder / "served" / "2", tmp_path / "1")
    kit_file = tmp_path / "1" / export.KIT_FILE
    content = json.loads(kit_file.read_text(encoding="utf-8"))
    for name in ("dtype", "signatures", "long_text", "max_windows", "truncation", "embedding", "quantize"):
        del content[name]
    kit_file.write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setattr(check, "fresh_answers", lambda *args: {"tensorflow": tf.__version__, "answers": {}})
    assert list(inspect_export(tmp_path).signatures) == ["serving_default"]


def test_labels_for_calibration_are_checked_before_the_export(folder, run, tmp_path):
    (tmp_path / "texts.csv").write_text("label,text\nWorld,the news\nSports,team wins\n", encoding="utf-8")
    words = ("--max-length", 16, "--int8", "--calibrate", tmp_path / "texts.csv")
    code, _, err = run("export", folder / "trained", "--out", tmp_path / "news", *words)
    assert code == 1 and "every label must be one of the model's classes. Received: 'Sports' (1 rows)" in err
    assert not (tmp_path / "news").exists()


def test_export_by_command(folder, run, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)
    words = ("--out", tmp_path / "news", "--signature", "metadata", "--signature", "embed", "--embedding", "cls")
    options = ("--max-length", 16, "--long-text", "window", "--dtype", "mixed_bfloat16", "--no-freeze", "--json")
    code, out, _ = run("export", folder / "trained", *words, *options)
    assert code == 0
    result = json.loads(out.splitlines()[-1])
    assert result["curl"].endswith("/v1/models/news:predict")
    kit_file = json.loads((tmp_path / "news" / "1" / export.KIT_FILE).read_text(encoding="utf-8"))
    assert kit_file["signatures"] == ["serving_default", "metadata", "embed"]
    assert (kit_file["embedding"], kit_file["long_text"]) == ("cls", "window")
    assert (kit_file["dtype"], kit_file["weights"]) == ("mixed_bfloat16", "variables")
    assert kit_file["weights_source"] == "trained", "no path of this machine"
    answers = tf.saved_model.load(result["saved_model"]).signatures["serving_default"](text=tf.constant(["news " * 99]))
    assert answers["label"].numpy()[0].decode() in CLASS_NAMES
