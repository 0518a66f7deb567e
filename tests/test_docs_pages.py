"""Pages of docs/ whose every block is executed: Python on tiny weights, command lines by the parsers of the commands.

quickstart, recipes, faq and reliability. In a folder of its own lie small models and files with the names
that the pages use. `test_docs.py` has the other pages.
"""

import re
import shlex
from pathlib import Path

import click
import pytest
from fake_checkpoints import write_google_folder
from fake_weights import write_hf_folder

import keras_bert_kit as kbk
from keras_bert_kit.cli.command import cli
from keras_bert_kit.serving import check

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = ("quickstart", "recipes", "faq", "reliability")

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


def blocks(page):
    """The fenced blocks of a page: list of (language, content)."""
    return re.findall(r"^```(\S*)\n(.*?)^```", text_of(page), flags=re.DOTALL | re.MULTILINE)


def python_of(page):
    return [content for language, content in blocks(page) if language == "python"]


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


def test_every_block_is_executed():
    """Only these kinds are run here or in a test below; another kind would be one that nobody runs."""
    for page in PAGES:
        assert {language for language, _ in blocks(page)} <= {"python", "sh"}, page
        assert text_of(page).count("\n```") == 2 * len(blocks(page)), page


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


def commands(text):
    """The command lines of a block: continued lines are joined, `&&` and comments taken apart."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while "&&" in words:
            yield words[: words.index("&&")]
            words = words[words.index("&&") + 1 :]
        if words:
            yield words


SHELL = [(page, words) for page in PAGES for kind, text in blocks(page) if kind == "sh" for words in commands(text)]


@pytest.mark.parametrize("page, words", SHELL, ids=[f"{page}: {' '.join(words)[:60]}" for page, words in SHELL])
def test_command_line(page, words):
    program, *arguments = words
    if program.endswith("keras-bert-kit"):
        parse(cli, arguments)
    elif program.endswith("python") and arguments[0].endswith(".py"):
        script = ROOT / arguments[0]
        assert script.is_file()
        options = {word.split("=")[0] for word in arguments[1:] if word.startswith("--")}
        assert all(option in script.read_text(encoding="utf-8") for option in options)
    elif program.endswith("python"):
        assert arguments[:2] in (["-m", "venv"], ["-m", "pytest"])
        assert arguments[1] != "pytest" or all((ROOT / word).exists() for word in arguments if "/" in word)
    elif program.endswith("pip"):
        assert arguments[0] == "install"
        setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
        assert all(f"\n{extra} =\n" in setup for extra in re.findall(r"\[([a-z-]+)\]", " ".join(arguments)))
    else:
        assert program in ("cp", "source", "git"), f"{page}: what is {program}?"


def parse(command, arguments):
    """As click parses them; a wrong option or a missing one is an exception."""
    with click.Context(command, info_name="keras-bert-kit") as context:
        if isinstance(command, click.Group):
            name, found, rest = command.resolve_command(context, list(arguments))
            return parse(found, rest)
        remaining = list(arguments)
        return command.make_context("keras-bert-kit", remaining)


def test_a_wrong_command_line_is_noticed():
    for line in ("finetune --source a --train b", "predict --nonsense x", "nonsense"):
        with pytest.raises(click.UsageError):
            parse(cli, line.split())


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
def test_tests_that_are_named_exist(page):
    """`tests/test_x.py`, `tests/test_x.py::test_y` and `tests/test_x.py -k word` have to be there."""
    text = text_of(page)
    text = re.sub("`test_", "`tests/test_", text)
    for file, _, name in re.findall(r"((?:tests|benchmarks)/[\w/]+\.py)(::(test_\w+))?", text):
        assert (ROOT / file).is_file(), file
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file}::{name}"
    for file, word in re.findall(r"(tests/\w+\.py) -k (\w+)", text):
        names = re.findall(r"^def (test_\w+)", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert any(word in name for name in names), f"{file} -k {word}"


@pytest.mark.parametrize("page", PAGES)
def test_one_title(page):
    outside = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    assert len(re.findall(r"^# ", outside, flags=re.MULTILINE)) == 1
