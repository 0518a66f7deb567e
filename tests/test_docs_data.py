"""docs/data.md: its blocks run and print what they say, its tables are the code's."""

import re
import shlex
from pathlib import Path

import pytest
from fake_weights import write_hf_folder
from prepared_tfds import prepare_ag_news

from keras_bert_kit import cli
from keras_bert_kit.data.columns import LABEL_NAMES, TEXT_NAMES, find_columns
from keras_bert_kit.data.rows import FORMAT_OF_ENDING

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "data.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def table(first_cell):
    """Rows of the table whose head begins so, as lists of cells."""
    lines = PAGE[PAGE.index(f"| {first_cell}") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(code):
    """What comments behind and below prints say."""
    return " ".join(re.findall(r"# (.+)$", code, flags=re.MULTILINE)).split()


def test_the_code_runs_and_prints_what_it_says(folder, capsys):
    names = {}
    *of_files, of_folder = blocks("python")
    for code in of_files:
        exec(compile(code, "data.md", "exec"), names)
        assert capsys.readouterr().out.split() == said(code)
    assert names["titles"].texts == ["Cup won", "Oil up"]
    prepare_ag_news(folder / "tensorflow_datasets")
    exec(compile(of_folder, "data.md", "exec"), names)
    assert capsys.readouterr().out == "10 ('title', 'description')\n" and len(names["test"]) == 4


def test_the_commands_run(folder, monkeypatch, capsys):
    (code, *_), (commands,) = blocks("python"), blocks("sh")
    exec(compile(code, "data.md", "exec"), {})
    write_hf_folder("my_model", heads=("classifier",), class_names=("business", "sports"), max_position_embeddings=128)
    for line in commands.splitlines():
        monkeypatch.setattr("sys.argv", shlex.split(line))
        cli.main()
        assert "2 examples" in capsys.readouterr().out


def test_the_endings_and_names_are_those_of_the_code():
    assert re.findall(r"`(\.\w+)`", " ".join(row[0] for row in table("source"))) == list(FORMAT_OF_ENDING)
    label, text = (row[1] for row in table("| default"))
    assert tuple(re.findall(r"`(\w+)`", label)) == LABEL_NAMES
    assert tuple(tuple(re.findall(r"`(\w+)`", names)) for names in text.split(";")) == TEXT_NAMES


def test_the_data_sets_are_as_tfds_defines_them(folder):
    tfds = pytest.importorskip(
        "tensorflow_datasets", reason="needs tensorflow-datasets: pip install 'keras_bert_kit[datasets]'"
    )
    rows = table("data set")[:-1]
    assert len(rows) == 9
    for name, texts, labels in rows:
        features = tfds.builder(name.strip("`"), data_dir=folder).info.features
        columns = find_columns(tuple(features), name)
        assert columns.text_names == tuple(re.findall(r"`(\w+)`", texts))
        assert features[columns.label_name].names == labels.split(", ")
