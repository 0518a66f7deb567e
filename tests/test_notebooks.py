"""Each notebook: what a reader finds in it, and that it runs, warns of nothing and scores what it says.

`python -m pytest -m notebooks` runs them; what is written in them is looked at by the default suite too.
"""

import ast
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def runner():
    """The module notebooks/run.py, with what it needs."""
    for name in ("nbformat", "nbclient", "ipykernel", "matplotlib"):
        pytest.importorskip(name, reason=f"needs {name}: pip install 'keras_bert_kit[notebooks]'")
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks for it there
    spec.loader.exec_module(module)
    return module


def cells_of(path, kind):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def lines_of(path, stream):
    outputs = [output for cell in cells_of(path, "code") for output in cell["outputs"]]
    return "".join("".join(output["text"]) for output in outputs if output.get("name") == stream).splitlines()


@pytest.mark.notebooks
@each_notebook
def test_it_runs_and_scores(path, capsys):
    run = runner().run
    before = set(FOLDER.rglob("*"))
    done = run(path)  # an exception in a cell, a missed score among them, is one here
    with capsys.disabled():
        print(f"\n{path.name}: {done.seconds:.0f} s, {done.score}")
    assert done.warnings == []
    assert set(FOLDER.rglob("*")) == before, "it left files beside itself"


@each_notebook
def test_it_begins_with_what_to_expect(path):
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    text = "".join(first["source"])
    assert first["cell_type"] == "markdown"
    assert re.findall(r"^\| \*\*([A-Z][a-z ]+)\*\* \| \S", text, flags=re.MULTILINE) == [
        "Aim",
        "Time",
        "Hardware",
        "Expected score",
    ]


@each_notebook
def test_outputs_are_those_of_one_run_from_the_top(path):
    cells = cells_of(path, "code")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert lines_of(path, "stdout")[-1].startswith("score: ")
    assert "assert " in "".join(cells[-1]["source"])
    assert not [line for line in lines_of(path, "stderr") if re.search("warn|error", line, re.IGNORECASE)]


@each_notebook
def test_nothing_of_the_machine_is_in_it(path):
    content = path.read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|work|root|home|Users)/|site-packages|127\.0\.0\.1:\d{5}", content)
    assert not re.search(r'"(iopub|shell)\.', content), "times of cells"


@each_notebook
def test_only_public_names_are_used(path):
    """What begins with an underscore may change; a learner must not need it."""
    source = "\n".join("".join(cell["source"]) for cell in cells_of(path, "code"))
    source = re.sub(r"^%.*$", "", source, flags=re.MULTILINE)
    private = [node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    assert [name for name in private if re.match(r"_[a-z]", name)] == []


def test_other_data_goes_into_the_tagged_cell():
    nbformat = pytest.importorskip("nbformat")
    change = runner()._change
    for value in ("'ag_news_subset'", repr(("a.csv", "C:\\new\\b.csv"))):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell('DATA = "sample"  # x\nprint(DATA)')])
        with pytest.raises(ValueError, match="no cell that chooses DATA"):
            change(notebook, "DATA", value)
        notebook.cells[0].metadata.tags = ["data"]
        change(notebook, "DATA", value)
        assert notebook.cells[0].source.splitlines() == [f"DATA = {value}", "print(DATA)"]
        with pytest.raises(ValueError, match="no cell that chooses DTYPE"):
            change(notebook, "DTYPE", "'mixed_bfloat16'")


def test_links_lead_somewhere_and_the_readme_lists_all():
    """Also those between notebooks."""
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\w+\.ipynb)\)", readme) == [path.name for path in NOTEBOOKS]
    for path in NOTEBOOKS:
        text = "\n".join("".join(cell["source"]) for cell in cells_of(path, "markdown"))
        assert [link for link in re.findall(r"\]\((?!http)([^)]+)\)", text) if not (FOLDER / link).exists()] == []
