"""The code of the documentation runs as it is printed; where a command takes too long, it is at least understood."""

import argparse
import ast
import configparser
import json
import re
import runpy
import shlex
import sys

import click
import doc_blocks
import pytest
import tensorflow as tf
from doc_blocks import ROOT, RUN_BY
from fake_preprocessor import write_preprocessor
from fake_weights import VOCABULARY, write_hf_folder
from serving_server import PROTOCOLS, ServedModel, serve

from keras_bert_kit.serving import beam_inference, check
from keras_bert_kit.serving.server_files import IMAGE
from keras_bert_kit.serving.signatures import SIGNATURES

DOCS = ROOT / "docs"
CLASS_NAMES = ("World", "Sports", "Business")


def blocks(name, language):
    return doc_blocks.blocks(f"docs/{name}.md", language)


def test_every_block_has_a_test():
    """A new page, or a block more, has to be told to doc_blocks.py. Blocks of text and of settings are no code."""
    found = {}
    for page in doc_blocks.pages():
        for language, _ in doc_blocks.blocks(page):
            if language not in ("text", "mermaid", "json", "yaml"):
                found.setdefault(page, {}).setdefault(language, []).append(0)
    counts = {page: {language: len(each) for language, each in entry.items()} for page, entry in found.items()}
    assert counts == {page: {language: len(each) for language, each in entry.items()} for page, entry in RUN_BY.items()}


def test_the_tests_of_the_blocks_exist():
    named = {name for entry in RUN_BY.values() for each in entry.values() for name in each}
    for file in {name.split("::")[0] for name in named}:
        tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {name.split("::")[1] for name in named if name.startswith(f"{file}::")} <= functions


@pytest.mark.parametrize("name", ["pretraining", "training"])
def test_the_code_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(name, "python")
    exec(compile(block, f"{name}.md", "exec"), {})


def test_the_code_of_loading_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_hf_folder("uncased_L-12_H-768_A-12")
    (block,) = blocks("loading", "python")
    exec(compile(block, "loading.md", "exec"), {})
    assert "Hugging Face" in capsys.readouterr().out
    assert (tmp_path / "bert_hf" / "model.safetensors").is_file()


def test_the_code_of_handles_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_KIT_CACHE", str(tmp_path))
    monkeypatch.setenv("KERAS_BERT_KIT_OFFLINE", "1")
    cache = tmp_path / "tf-hub/tfhub.dev/tensorflow"
    (cache / "bert_en_uncased_preprocess").mkdir(parents=True)
    write_preprocessor(cache / "bert_en_uncased_preprocess/3")
    write_hf_folder(cache / "bert_en_uncased_L-12_H-768_A-12/4", max_position_embeddings=128)
    (block,) = blocks("handles", "python")
    names = {}
    exec(compile(block, "handles.md", "exec"), names)
    assert names["pack"].sequence_length == 128


def test_the_code_of_tokenization_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    texts = ["We love cafe", "the team wins"]
    names = {"texts": texts, "texts_a": texts, "texts_b": texts, "questions": texts, "documents": ["news " * 300] * 2}
    (block,) = blocks("tokenization", "python")
    exec(compile(block, "tokenization.md", "exec"), names)
    spans = zip(names["starts"][1].numpy(), names["ends"][1].numpy(), strict=True)
    assert [texts[1][start:end] for start, end in spans] == ["the", "team", "wins"]


def test_the_code_of_the_small_bert_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    (block,) = doc_blocks.blocks("saved_models/small_bert/README.md", "python")
    exec(compile(block, "small_bert/README.md", "exec"), {})
    assert "states" in capsys.readouterr().out


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


def commands_of(text):
    """The commands of a block, each as its words, without variables set before it and without comments."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            command, words = words[:end], words[end + 1 :]
            while re.match(r"[A-Z_]+=", command[0]):
                command = command[1:]
            yield command


class Understood(Exception):
    """A program has read its arguments."""


def understood_by_click(words):
    from keras_bert_kit.cli.command import cli

    name, *arguments = words
    cli.commands[name].make_context(name, arguments)


def understood_by_a_script(words, monkeypatch):
    """Starts a script of ours, up to where it has read its arguments."""
    read = argparse.ArgumentParser.parse_args

    def stop(parser, *args):
        read(parser, *args)
        raise Understood

    script, *arguments = words
    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", stop)
        patch.setattr(sys, "argv", [script, *arguments])
        patch.setattr(sys, "path", list(sys.path))
        with pytest.raises(Understood):
            runpy.run_path(str(ROOT / script), run_name="__main__")


def understood_by_pip(words):
    """What it installs of ours exists: extras, and files of requirements."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for extras in re.findall(r"\[([\w,-]+)\]", " ".join(words)):
        assert set(extras.split(",")) <= set(setup["options.extras_require"])
    assert all((ROOT / words[place + 1]).is_file() for place, word in enumerate(words) if word == "-r")


def understood_by_pytest(words):
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    markers = re.findall(r"^(\w+):", setup["tool:pytest"]["markers"], re.MULTILINE)
    if "-m" in words:
        assert words[words.index("-m") + 1] in markers
    assert all((ROOT / word.split("::")[0]).exists() for word in words if word.startswith("tests/"))


# What else stands in blocks: `docker` takes the file that test_serving_server_files.py reads, `curl` has a test above.
OTHERS = {"cd", "cp", "curl", "docker", "git", "jupyter", "mv", "source"}
PARSED_HERE = [page for page, entry in RUN_BY.items() if doc_blocks.COMMANDS in entry.get("sh", [])]


@pytest.mark.parametrize("page", PARSED_HERE)
def test_the_commands_are_understood(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    for words in [words for block in doc_blocks.blocks(page, "sh") for words in commands_of(block)]:
        program, *arguments = words
        program = program.split("/")[-1]
        if program == "keras-bert-kit":
            understood_by_click(arguments)
        elif program == "pip":
            understood_by_pip(arguments)
        elif program == "python" and arguments[0].endswith(".py"):
            understood_by_a_script(arguments, monkeypatch)
        elif program == "python" and arguments[:2] == ["-m", "pytest"]:
            understood_by_pytest(arguments[2:])
        else:
            assert program in OTHERS or arguments[:2] == ["-m", "venv"], words


def test_a_wrong_command_line_is_noticed():
    for line in ("finetune --source a --train b", "predict --nonsense x", "nonsense"):
        with pytest.raises((click.UsageError, KeyError)):
            understood_by_click(line.split())
