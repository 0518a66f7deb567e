"""The old lines of docs/migration.md run where their libraries are, and give the numbers of the new ones."""

import shutil

import numpy as np
import pytest
from fake_checkpoints import write_google_folder
from fake_weights import VOCABULARY, write_hf_folder
from peers import run_peer
from peers.old_lines_peer import arrays_of, folder_of
from test_docs_migration import CLASS_NAMES, TF_HUB, code_of, names_of_new_lines

pytestmark = pytest.mark.peers
SCRIPT = "old_lines_peer.py"
OLD = code_of("python3")
# Which environment has the library of a section, where it is not that of most.
ENVIRONMENTS = {"keras-hub, keras-nlp": "KIT_PEER_TF_MODELS"}
OTHERS = "KIT_PEER_OLD_LIBRARIES"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with small models under the names of the page; those of TF-Models and keras-hub are made by these."""
    folder = tmp_path_factory.mktemp("migration")
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8")
    write_hf_folder(folder / "bert-base-uncased", max_position_embeddings=128)
    write_hf_folder(folder / "news_classifier", heads=("classifier",), class_names=CLASS_NAMES)
    write_google_folder(folder / "uncased_L-12_H-768_A-12")
    run_peer(OTHERS, SCRIPT, "tf-models", folder)
    run_peer(ENVIRONMENTS["keras-hub, keras-nlp"], SCRIPT, "keras-hub", folder)
    for name in ("preprocess/3", "L-12_H-768_A-12/4"):
        shutil.copytree(folder_of(folder, name), folder / TF_HUB / f"bert_en_uncased_{name}")
    return folder


@pytest.mark.parametrize("title", OLD)
def test_old_and_new_lines_agree(title, made, tmp_path, monkeypatch):
    for side in ("old", "new"):
        shutil.copytree(made, tmp_path / side)
    (tmp_path / "old/old.py").write_text(OLD[title], encoding="utf-8")
    run_peer(ENVIRONMENTS.get(title, OTHERS), SCRIPT, "run", tmp_path / "old")
    old = dict(np.load(tmp_path / "old/old.npz"))
    new = arrays_of(names_of_new_lines(title, tmp_path / "new", monkeypatch))
    shared_names = old.keys() & new.keys()
    assert "sequence" in shared_names
    for name in sorted(shared_names):
        if old[name].dtype.kind == "U":
            assert old[name].tolist() == new[name].tolist(), name
        else:
            atol = 1e-5 * np.abs(old[name]).max(initial=0)
            np.testing.assert_allclose(new[name], old[name], rtol=0, atol=atol, err_msg=name)
    if "rates_there" in old:
        np.testing.assert_allclose(old["rates_there"], [2.25e-5, 1.8e-5, 1.5e-5], rtol=1e-6)
