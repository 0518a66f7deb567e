"""Presets of keras-hub: its own numbers, a small one written here, faults named; no class of keras-hub is needed."""

import json

import h5py
import numpy as np
import pytest
from fake_checkpoints import fake_bert, google_array, google_name
from fake_weights import VOCABULARY, write_json
from reference import Reference

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.models import BertPretrainer
from keras_bert_kit.pretrained import load_pretrained, save_pretrained

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}
LAYERS = {
    "bert/embeddings/word_embeddings": "reversible_embedding/vars/0",
    "bert/embeddings/position_embeddings": "position_embedding/vars/0",
    "bert/embeddings/token_type_embeddings": "embedding/vars/0",
    "bert/embeddings/LayerNorm/": "layer_normalization/vars/",
    "bert/encoder/layer_0/": "transformer_encoder/",
    "bert/encoder/layer_": "transformer_encoder_",
    "attention/self/query/": "_self_attention_layer/query_dense/vars/",
    "attention/self/key/": "_self_attention_layer/key_dense/vars/",
    "attention/self/value/": "_self_attention_layer/value_dense/vars/",
    "attention/output/dense/": "_self_attention_layer/output_dense/vars/",
    "attention/output/LayerNorm/": "_self_attention_layer_norm/vars/",
    "intermediate/dense/": "_feedforward_intermediate_dense/vars/",
    "output/dense/": "_feedforward_output_dense/vars/",
    "output/LayerNorm/": "_feedforward_layer_norm/vars/",
    "bert/pooler/dense/": "dense/vars/",
    "kernel": "0",
    "gamma": "0",
    "bias": "1",
    "beta": "1",
}


def write_preset(folder, class_name="BertBackbone"):
    """Writes a preset with a classifier; returns the tensors under Hugging Face's names and their config."""
    tensors, config = fake_bert(("classifier",))
    heads = config["num_attention_heads"]
    (folder / "assets/tokenizer").mkdir(parents=True)
    text = "".join(f"{token}\n" for token in VOCABULARY)
    (folder / "assets/tokenizer/vocabulary.txt").write_text(text, encoding="utf-8")
    values = {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["num_hidden_layers"],
        "num_heads": heads,
        "hidden_dim": config["hidden_size"],
        "intermediate_dim": config["intermediate_size"],
        "dropout": 0.2,
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": 2,
    }
    write_json(folder / "config.json", {"class_name": class_name, "config": values})
    write_json(folder / "tokenizer.json", {"config": {"lowercase": False, "strip_accents": False}})
    write_json(folder / "task.json", {"class_name": "BertTextClassifier", "config": {"activation": "softmax"}})
    with h5py.File(folder / "task.weights.h5", "w") as task, h5py.File(folder / "model.weights.h5", "w") as model:
        task["layers/dense/vars/0"], task["layers/dense/vars/1"] = (
            tensors["classifier.weight"].T,
            tensors["classifier.bias"],
        )
        task["optimizer/vars/0"] = 3
        for name, array in tensors.items():
            name, array = google_name(name), google_array(name, array)
            for theirs, preset in LAYERS.items():
                name = name.replace(theirs, preset)
            if "/query_" in name or "/key_" in name or "/value_" in name:
                array = array.reshape(*array.shape[:-1], heads, -1)
            if name.endswith("_self_attention_layer/output_dense/vars/0"):
                array = array.reshape(heads, -1, array.shape[-1])
            if not name.startswith("output_"):
                model[f"layers/{name}"] = array
    return tensors, config


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
