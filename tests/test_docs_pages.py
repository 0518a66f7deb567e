"""The Python of docs/quickstart.md and docs/recipes.md runs on tiny weights; links and tests that pages name exist.

In a folder of its own lie small models and files with the names that the pages use. `test_docs.py` has the other pages.
"""

import re

import doc_blocks
import pytest
from doc_blocks import ROOT
from fake_checkpoints import write_google_folder
from fake_weights import write_hf_folder

import keras_bert_kit as kbk
from keras_bert_kit.serving import check

DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md"))
ELSEWHERE = {"lesson.py", "create_pretraining_data.py", "tokenization.py"}  # the reader's file, and two of Google's

NEWS = [
    ("Sports", "the team wins the game"),
    ("World", "we love the news"),
    ("Business", "the bank and the market rise"),
]
NEWS += [("Sci/Tech", "a robot in space"), ("Sports", "game report"), ("World", "cafe in space 中")]
TICKETS = "topic,subject,body\nbilling,the bank,we love the report\ntechnical,a robot,robot in space\nother,news,cafe\n"
CORPUS = (
    "the sun is warm\n\nit shines on the sea\n\n\nthe rain is cold\n\nit falls on the sea\n\n\nwe go in\n\nthe cafe\n"
)


def text_of(page):
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def python_of(page):
    return doc_blocks.blocks(f"docs/{page}.md", "python")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with small models and files under the names of the pages."""
    folder = tmp_path_factory.mktemp("pages")
    write_hf_folder(folder / "all-MiniLM-L6-v2", heads=(), max_position_embeddings=128)
    write_hf_folder(folder / "my_model", heads=("classifier",), class_names=["no", "yes"], max_position_embeddings=128)
    write_hf_folder(folder / "my_bert", max_position_embeddings=128)
    write_google_folder(folder / "uncased_L-12_H-768_A-12")
    for name in ("train.csv", "test.csv"):
        rows = "".join(f"{label},{text}\n" for label, text in NEWS)
        (folder / name).write_text("label,text\n" + rows, encoding="utf-8")
    (folder / "tickets.csv").write_text(TICKETS, encoding="utf-8")
    (folder / "corpus.txt").write_text(CORPUS, encoding="utf-8")
    return folder


@pytest.fixture
def in_folder(prepared, monkeypatch):
    monkeypatch.chdir(prepared)
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # see test_serving_export.py


def run(code, page, names):
    exec(compile(code, f"docs/{page}.md", "exec"), names)
    return names


def test_quickstart(in_folder, monkeypatch, tmp_path, capsys):
    train, held_out = kbk.read_sample()
    few = train.select(range(0, 480, 12)), held_out.select(range(0, 120, 10))
    monkeypatch.setattr(kbk, "read_sample", lambda: few)
    names = {}
    for block in python_of("quickstart")[:2]:
        run(block, "quickstart", names)
    monkeypatch.chdir(tmp_path)
    run(python_of("quickstart")[2], "quickstart", names)
    assert len(python_of("quickstart")) == 3
    assert kbk.read_examples("train.csv").texts == train.select(range(0, 480, 12)).texts
    assert (names["model"].output_shape, names["steps"]) == ((None, 4), 6)


def test_the_lines_of_the_lesson_are_readmes():
    """The same swap on both pages, so that what was timed is what README shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lesson = readme.split("```python\n# vectorizer = ")[1].split("```")[0]
    assert lesson in text_of("quickstart")


first, *recipes = python_of("recipes")


@pytest.mark.parametrize("recipe", recipes, ids=range(len(recipes)))
def test_recipe(recipe, in_folder):
    run(recipe, "recipes", run(first, "recipes", {}))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", text_of(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (DOCS / path) if path else DOCS / f"{page}.md"
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def anchors(path):
    """What the headings of a page are called in links: GitHub's rule, which MyST has too."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_what_is_named_exists(page):
    """Files of Python, with their folder or without; tests such as `test_x.py::test_y`; words behind -k."""
    text = text_of(page)
    folders = ("keras_bert_kit", "tests", "benchmarks", "notebooks")
    for file in set(re.findall(r"\b(\w+\.py)\b", text)) - ELSEWHERE:
        assert any(list((ROOT / folder).rglob(file)) for folder in folders), file
    for path in re.findall(r"\b((?:tests|benchmarks|notebooks)/[\w/]+\.py)\b", text):
        assert (ROOT / path).is_file(), path
    for file, name in re.findall(r"(test_\w+\.py)::(test_\w+)", text):
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{file}::{name}"
    for file, word in re.findall(r"(tests/\w+\.py) -k (\w+)", text):
        names = re.findall(r"^def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert any(word in name for name in names), f"{file} -k {word}"


@pytest.mark.parametrize("page", PAGES)
def test_one_title(page):
    outside = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"^# ", outside, flags=re.MULTILINE)) == 1
