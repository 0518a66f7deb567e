"""Presets of keras-hub: its own numbers, a small one written here, faults named; no class of keras-hub is needed."""

import json

import numpy as np
import pytest
from fake_h5 import write_preset
from fake_weights import write_json
from reference import Reference

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.models import BertPretrainer
from keras_bert_kit.pretrained import load_pretrained, save_pretrained

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}


def test_a_preset_equals_numpy(tmp_path):
    written = write_preset(tmp_path)
    bert = load_pretrained(tmp_path)
    np.testing.assert_allclose(bert.classifier(INPUTS), Reference(*written)(*INPUTS.values())["logits"], atol=1e-5)
    assert bert.report.kind == "keras-hub preset" and bert.config.hidden_dropout_prob == 0.2
    assert not bert.tokenizer.lowercase and bert.tokenizer.strip_accents is False
    assert "the classifier gives logits, before the activation softmax that task.json names" in bert.report.notes
    assert bert.report.left_out == {"task:optimizer/vars/0": "of the optimizer, no weight"}


def test_presets_of_other_models_and_incomplete_ones_are_refused(tmp_path):
    write_preset(tmp_path / "other", "RobertaBackbone")
    with pytest.raises(CheckpointError, match="must hold a BertBackbone. Received: 'RobertaBackbone'"):
        load_pretrained(tmp_path / "other")
    write_preset(tmp_path / "m")
    config = json.loads((tmp_path / "m/config.json").read_text(encoding="utf-8"))
    del config["config"]["num_heads"]
    write_json(tmp_path / "m/config.json", config)
    with pytest.raises(CheckpointError, match="config.json must say num_heads. Received: vocabulary_size"):
        load_pretrained(tmp_path / "m")
    write_json(tmp_path / "m/config.json", {"class_name": "BertBackbone", "config": [1]})
    with pytest.raises(CheckpointError, match="config.json: config must be a JSON object. Received: .1"):
        load_pretrained(tmp_path / "m")
    (tmp_path / "m/tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match="must hold config.json.*Missing: tokenizer.json"):
        load_pretrained(tmp_path / "m")


def test_a_backbone_that_was_saved_alone_has_no_tokenizer(tmp_path):
    write_preset(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "assets/tokenizer/vocabulary.txt").unlink()
    bert = load_pretrained(tmp_path)
    assert bert.tokenizer is None and "no vocabulary in the source: there is no tokenizer" in bert.report.notes


def golden_of(folder):
    golden = np.load(folder / "goldens.npz")
    keys = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
    return golden, {ours: golden[theirs] for ours, theirs in keys.items()}


def test_keras_hubs_own_classifier(shared):
    folder = shared / "fixtures/keras_hub/text_classifier"
    (golden, inputs), bert = golden_of(folder), load_pretrained(folder)
    np.testing.assert_allclose(bert.classifier(inputs), golden["logits"], atol=1e-5)
    outputs = bert.encoder(inputs)
    for key in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(outputs[key], golden[key], atol=1e-5)


def test_keras_hubs_own_masked_lm_head_keeps_its_gelu_and_epsilon(shared, tmp_path):
    folder = shared / "fixtures/keras_hub/masked_lm"
    (golden, inputs), bert = golden_of(folder), load_pretrained(folder)
    inputs |= {"masked_lm_positions": golden["masked_lm_positions"]}
    logits = bert.pretrainer(inputs)["mlm_logits"]
    np.testing.assert_allclose(logits, golden["mlm_probabilities_or_logits"], atol=1e-5)
    again = BertPretrainer.from_config(bert.pretrainer.get_config())
    assert (again.masked_lm.activation, again.masked_lm.layer_norm.epsilon) == ("gelu_erf", 1e-5)
    assert (again.encoder.config.hidden_act, again.encoder.config.layer_norm_eps) == ("gelu_tanh", 1e-12)
    assert "masked-LM head: gelu_erf, epsilon 1e-05 (by rule: MaskedLMHead of keras-hub)" in bert.report.notes
    with pytest.raises(ValueError, match="must have one activation and epsilon.*'gelu_erf', 1e-05.*'gelu_tanh', 1e-12"):
        save_pretrained(bert.pretrainer, tmp_path / "m", tokenizer=bert.tokenizer)
    save_pretrained(bert.encoder, tmp_path / "m", tokenizer=bert.tokenizer)
