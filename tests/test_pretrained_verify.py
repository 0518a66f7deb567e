"""verify=True: the source runs beside the model, and what differs is refused."""

import shutil

import numpy as np
import pytest
from fake_checkpoints import write_google_folder, write_saved_model
from fake_tf1_hub import write_tf1_module
from fake_weights import write_hf_folder

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.pretrained.verify import _random_inputs


@pytest.mark.parametrize("name", ["encoder_v1", "encoder_v3", "encoder_v4_with_mlm"])
def test_saved_models_of_tf_hub_run_beside_ours(shared, name):
    report = load_pretrained(shared / "fixtures/hub" / name, verify=True).report
    assert 0 < report.verified < 1e-5 and "differ by at most" in str(report)


@pytest.mark.parametrize("heads", [("mlm",), ()])
def test_modules_of_tf1_run_beside_ours(tmp_path, heads):
    write_tf1_module(tmp_path / "m", heads=heads)
    assert 0 < load_pretrained(tmp_path / "m", verify=True).report.verified < 1e-5


def test_what_differs_is_refused(shared, tmp_path):
    folder = shutil.copytree(shared / "fixtures/hub/encoder_v3", tmp_path / "m")
    metadata = (folder / "keras_metadata.pb").read_bytes()
    (folder / "keras_metadata.pb").write_bytes(metadata.replace(b'"norm_epsilon": 1e-12', b'"norm_epsilon": 1e-01'))
    assert load_pretrained(folder).report.verified is None
    with pytest.raises(
        CheckpointError, match="must differ by at most 0.0001. Received: pooled_output .*, sequence_output .*e-0"
    ):
        load_pretrained(folder, verify=True)


def test_a_graph_that_cannot_run_is_refused(tmp_path):
    write_saved_model(tmp_path)
    with pytest.raises(CheckpointError, match="could not be run, as verify=True asks"):
        load_pretrained(tmp_path, verify=True)


def test_what_holds_no_graph_is_refused_before_loading(tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert_kit.pretrained.load.models_for", None)
    write_hf_folder(tmp_path / "hf")
    write_google_folder(tmp_path / "google")
    for name, kind in (("hf", "Hugging Face folder"), ("google", "TF1 checkpoint")):
        with pytest.raises(ValueError, match=f"verify=True needs a SavedModel.* Received: a {kind}"):
            load_pretrained(tmp_path / name, verify=True)
    write_saved_model(tmp_path / "hub")
    with pytest.raises(ValueError, match="verify=True compares in float32. Received: dtype='mixed_bfloat16'"):
        load_pretrained(tmp_path / "hub", verify=True, dtype="mixed_bfloat16")


def test_the_inputs_have_padding_and_two_segments(tmp_path):
    write_hf_folder(tmp_path)
    config = load_pretrained(tmp_path).config
    inputs = _random_inputs(config)
    lengths = inputs["input_mask"].sum(axis=1)
    assert lengths.tolist() == [16, 11, 6] and inputs["masked_lm_positions"].max() < 6
    assert set(np.unique(inputs["input_type_ids"])) == {0, 1} and inputs["input_word_ids"].max() < config.vocab_size
