"""README's code runs as it is printed, on a small model in a folder of the name that it uses."""

import re
import subprocess
from pathlib import Path

import pytest
from fake_weights import write_hf_folder

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def model_folder(tmp_path, monkeypatch):
    """A folder `all-MiniLM-L6-v2` in the working directory, with the real name and a tiny model."""
    monkeypatch.chdir(tmp_path)
    write_hf_folder("all-MiniLM-L6-v2", heads=(), max_position_embeddings=128)


def test_the_example_has_twelve_lines_and_runs(model_folder, capsys):
    (example,) = [block for block in BLOCKS if "export_for_serving" in block]
    assert len([line for line in example.splitlines() if line]) == 12
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.split()[-1] in {"Business", "Sci/Tech", "Sports", "World"}
    assert Path("saved_models/news/1/saved_model.pb").is_file()


def test_the_lessons_lines_run(model_folder):
    (lesson,) = [block for block in BLOCKS if "keras.Input" in block]
    names = {}
    exec(compile("import keras\nimport keras_bert_kit as kbk\n" + lesson, "README.md", "exec"), names)
    assert names["model"].output_shape == (None, 4)


def test_every_command_of_the_table_exists():
    from keras_bert_kit.cli.command import cli

    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `keras-bert-kit ([a-z-]+)", index, flags=re.MULTILINE)) == set(cli.commands)
    assert set(re.findall(r"`keras-bert-kit ([a-z]+[a-z-]*)", README)) <= set(cli.commands)


def test_saved_models_holds_what_readme_says():
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    tracked = subprocess.run(["git", "ls-files", "saved_models"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = tracked.stdout.split()
    assert "`saved_models/` with the small\nBERT, and where the demo and your exports go" in README
    assert {file.split("/")[1] for file in files} == {"README.md", "small_bert"}
    assert sum((ROOT / file).stat().st_size for file in files) < 12e6


def test_every_link_points_to_a_file():
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links and [link for link in links if not (ROOT / link).exists()] == []
