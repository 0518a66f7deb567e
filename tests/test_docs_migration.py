"""The new lines of docs/migration.md run, on small random weights. The old ones: test_peers_migration.py."""

import re

import numpy as np
import pytest
from doc_blocks import ROOT, blocks
from fake_checkpoints import write_google_folder, write_tf_models_checkpoint
from fake_h5 import write_preset
from fake_preprocessor import write_preprocessor
from fake_weights import VOCABULARY, write_hf_folder

PAGE = "docs/migration.md"
CLASS_NAMES = ["World", "Sports", "Business", "Sci/Tech"]
TF_HUB = "cache/tf-hub/tfhub.dev/tensorflow"


def code_of(language):
    """{title of a section: what a reader of it runs, with the lines that all need before it}."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    (first, *_), *rest = [
        re.findall(rf"^```{language}\n(.*?)^```", part, re.DOTALL | re.MULTILINE) for part in parts(text)
    ]
    return {title: "\n".join([first, *each]) for title, each in zip(titles(text), rest, strict=True)}


def parts(text):
    return re.split(r"^## ", text, flags=re.MULTILINE)


def titles(text):
    return re.findall(r"^## (.*)$", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder with small models under the names of the page."""
    folder = tmp_path_factory.mktemp("migration")
    (folder / TF_HUB / "bert_en_uncased_preprocess").mkdir(parents=True)
    write_preprocessor(folder / TF_HUB / "bert_en_uncased_preprocess/3")
    write_hf_folder(folder / TF_HUB / "bert_en_uncased_L-12_H-768_A-12/4", heads=("mlm",), max_position_embeddings=128)
    write_hf_folder(folder / "bert-base-uncased", max_position_embeddings=128)
    write_hf_folder(folder / "news_classifier", heads=("classifier",), class_names=CLASS_NAMES)
    write_tf_models_checkpoint(folder / "uncased_tf2")
    (folder / "uncased_tf2/vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8")
    write_preset(folder / "news_preset")
    write_preset(folder / "masked_preset", head="mlm")
    write_google_folder(folder / "uncased_L-12_H-768_A-12")
    return folder


NEW = code_of("python")


def names_of_new_lines(title, folder, monkeypatch):
    """Runs the new lines of a section in a folder, as a user would, without a network: {name: value}."""
    monkeypatch.setenv("KERAS_BERT_KIT_CACHE", str(folder / "cache"))
    monkeypatch.setenv("KERAS_BERT_KIT_OFFLINE", "1")
    monkeypatch.chdir(folder)
    names = {}
    exec(compile(NEW[title], PAGE, "exec"), names)
    return names


@pytest.mark.parametrize("title", NEW)
def test_new_lines_run(title, sources, monkeypatch):
    names = names_of_new_lines(title, sources, monkeypatch)
    assert names["sequence"].shape[-1] == 16
    if "rates_here" in names:
        np.testing.assert_allclose(names["rates_here"], [2.25e-5, 3e-5, 2.5e-5], rtol=1e-6)


def test_every_old_line_has_a_new_one():
    """Blocks come in pairs, the old one first, which says so."""
    found = re.findall(
        r"^```(python3?)\n(# (?:before|after))?", (ROOT / PAGE).read_text(encoding="utf-8"), re.MULTILINE
    )
    (first, second), pairs = found[:2], found[2:]
    assert (first[0], second[0]) == ("python3", "python")
    assert pairs == [("python3", "# before"), ("python", "# after")] * (len(pairs) // 2)
    assert len(blocks(PAGE, "python")) == len(blocks(PAGE, "python3"))
