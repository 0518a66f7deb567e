"""Python blocks of docs/pretraining.md and docs/training.md run as they are printed."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("name", ["pretraining", "training"])
def test_the_code_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(compile(block, f"{name}.md", "exec"), {})


def test_every_command_exists():
    from keras_bert_kit.cli.command import cli

    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert set(re.findall(r"^keras-bert-kit ([a-z-]+)", text, flags=re.MULTILINE)) <= set(cli.commands)
