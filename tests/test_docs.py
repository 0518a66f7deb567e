"""Python blocks of docs/pretraining.md, docs/training.md and docs/serving.md run as they are printed."""

import json
import re
import shlex
from pathlib import Path

import pytest
import tensorflow as tf
from fake_weights import write_hf_folder
from serving_server import PROTOCOLS, ServedModel, serve

from keras_bert_kit.serving import beam_inference, check
from keras_bert_kit.serving.server_files import IMAGE
from keras_bert_kit.serving.signatures import SIGNATURES

DOCS = Path(__file__).resolve().parents[1] / "docs"
CLASS_NAMES = ("World", "Sports", "Business")


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / f"{name}.md").read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("name", ["pretraining", "training"])
def test_the_code_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(name, "python")
    exec(compile(block, f"{name}.md", "exec"), {})


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    """The version that docs/serving.md exports."""
    (block,) = blocks("serving", "python")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("serving"))
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # tested in test_serving_export.py
        write_hf_folder("my_model", heads=("classifier",), class_names=CLASS_NAMES, max_position_embeddings=128)
        names = {}
        exec(compile(block, "serving.md", "exec"), names)
        return names["version"].resolve()


@pytest.fixture(scope="module")
def served(version):
    """A server's view of it."""
    return ServedModel(version)


def rows_of_tables(name):
    """The cells of each line of a table."""
    lines = (DOCS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def test_the_files_of_serving_are_there(version):
    names = {name for row in rows_of_tables("serving") for name in re.findall(r"`([\w./-]+)`", row[0]) if "." in name}
    in_the_folder = {path.name for path in version.parent.iterdir() if path.is_file()}
    assert in_the_folder == {name for name in names if "/" not in name}
    assert len(names) > len(in_the_folder)
    assert [name for name in names if not (version.parent / name).exists()] == []
    assert IMAGE in (DOCS / "serving.md").read_text(encoding="utf-8")


def test_the_signatures_of_serving(served):
    rows = {row[0].strip("`"): row[1:] for row in rows_of_tables("serving") if row[0].strip("`") in SIGNATURES}
    assert set(rows) == set(SIGNATURES)
    answers = re.findall("`([a-z_]+)`", rows["serving_default"][1])
    for name, function in served.signatures[1].items():
        inputs, outputs = (set(re.findall("`([a-z_0-9]+)`", cell)) for cell in rows[name])
        assert inputs == set(function.structured_input_signature[1])
        assert (outputs or set(answers)) == set(function.structured_outputs)


def test_the_client_of_serving_runs(served, capsys):
    pytest.importorskip("tensorflow_serving", reason="needs pip install 'keras_bert_kit[serving]'")
    client, _ = blocks("serving", "py")
    http, grpc = PROTOCOLS
    with serve(http, served) as rest_address, serve(grpc, served) as grpc_address:
        client = client.replace("http://localhost:8501", rest_address).replace("grpc://localhost:8500", grpc_address)
        exec(compile(client, "serving.md", "exec"), {})
    probabilities, names, label = capsys.readouterr().out.splitlines()
    assert all(name in probabilities and name in names for name in CLASS_NAMES)
    assert label in CLASS_NAMES


def test_what_curl_sends_is_answered(served):
    lines = [line for block in blocks("serving", "sh") for line in block.splitlines() if line.startswith("curl")]
    assert len(lines) == 2
    for line in lines:
        _, _, body, url = shlex.split(line)
        assert url == "http://localhost:8501/v1/models/news:predict"
        request = json.loads(body)
        (row,) = request["instances"]
        inputs = row if isinstance(row, dict) else {"text": row}
        signature = served.signatures[1][request.get("signature_name", "serving_default")]
        answers = signature(**{name: tf.constant([text]) for name, text in inputs.items()})
        assert set(answers) == {"label", "probabilities", "logits"}


def test_the_pipeline_of_serving_is_the_one_that_runs():
    """tests/test_serving_beam.py runs the example of the module, where Beam is installed."""
    _, pipeline = blocks("serving", "py")
    example = " ".join(beam_inference.__doc__.replace("ag_news", "news").split())
    assert " ".join(pipeline.split()) in example


def test_every_command_exists():
    from keras_bert_kit.cli.command import cli

    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert set(re.findall(r"^keras-bert-kit ([a-z-]+)", text, flags=re.MULTILINE)) <= set(cli.commands)
