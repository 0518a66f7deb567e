"""format="tf-hub": TensorFlow alone opens and trains it, it has TF-Hub's interface, and comes back bit-equal."""

import dataclasses
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from fake_checkpoints import tf_models_arrays, write_google_folder, write_saved_model
from fake_weights import VOCABULARY, write_hf_folder
from reference import Reference

from keras_bert_kit.errors import CheckpointError, ConfigError
from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer
from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.text import BertTokenizer

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]], "int32")
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}
POSITIONS = np.array([[1, 2], [0, 6]], "int32")


def require_equal_weights(bert, again):
    models = [one.pretrainer or one.encoder for one in (bert, again)]
    ours, theirs = ({variable.path: variable for variable in model.trainable_variables} for model in models)
    assert ours.keys() == theirs.keys()
    for path, variable in ours.items():
        np.testing.assert_array_equal(variable, theirs[path])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder written by the kit, the tensors in it under Hugging Face's names, and their config."""
    folder = tmp_path_factory.mktemp("tf-hub")
    tensors, config = write_saved_model(folder / "in", lowercase=False)
    bert = load_pretrained(folder / "in")
    save_pretrained(bert.pretrainer, folder / "Modelle für 模型", tokenizer=bert.tokenizer, format="tf-hub")
    return folder / "Modelle für 模型", tensors, config


def test_a_saved_model_has_the_interface_of_tf_hub(written):
    folder, tensors, config = written
    loaded, expected = tf.saved_model.load(str(folder)), Reference(tensors, config)
    expected = expected(*INPUTS.values(), masked_lm_positions=POSITIONS)
    inputs = {name: tf.constant(array) for name, array in INPUTS.items()}
    outputs = loaded(inputs)
    assert set(outputs) == {"pooled_output", "sequence_output", "encoder_outputs", "default"}
    np.testing.assert_array_equal(outputs["default"], outputs["pooled_output"])
    for layer, states in zip(outputs["encoder_outputs"], expected["hidden_states"][1:], strict=True):
        np.testing.assert_allclose(layer, states, atol=1e-5)
    outputs |= loaded.mlm(inputs | {"masked_lm_positions": tf.constant(POSITIONS)})
    outputs |= {f"served_{name}": array for name, array in loaded.signatures["serving_default"](**inputs).items()}
    for key in ("pooled_output", "sequence_output", "mlm_logits"):
        np.testing.assert_allclose(outputs[key], expected[key], atol=1e-5)
    np.testing.assert_allclose(outputs["served_pooled_output"], expected["pooled_output"], atol=1e-5)
    assert load_pretrained(folder, verify=True).report.verified < 1e-5
    assert loaded.vocab_file.asset_path.numpy().decode().endswith("/assets/vocab.txt") and not loaded.do_lower_case


def test_its_variables_are_those_of_tf_models(written):
    folder, *_ = written
    arrays, _, _ = tf_models_arrays()
    arrays = {f"bert/{name.removeprefix('bert/')}" if "cls/" in name else name: arrays[name] for name in arrays}
    loaded = tf.saved_model.load(str(folder))
    found = {variable.name.removesuffix(":0"): variable for variable in loaded.mlm.trainable_variables}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    encoder = {name for name in arrays if "cls/" not in name}
    assert {variable.name.removesuffix(":0") for variable in loaded.trainable_variables} == encoder


def test_it_trains_with_dropout(written):
    loaded = tf.saved_model.load(str(written[0]))
    with tf.GradientTape() as tape:
        first, second = (loaded(INPUTS, training=True)["pooled_output"] for _ in range(2))
        loss = tf.reduce_sum(first)
    assert np.abs(first - second).max() > 1e-3  # dropout draws anew
    gradients = tape.gradient(loss, loaded.trainable_variables)
    assert all(gradient is not None for gradient in gradients)
    before = loaded(INPUTS)["pooled_output"]
    loaded.trainable_variables[0].assign(loaded.trainable_variables[0] * 2)
    assert np.abs(loaded(INPUTS)["pooled_output"] - before).max() > 1e-3


def test_it_opens_in_a_process_without_the_kit(written):
    program = """
import sys, tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
ids = tf.constant([[2, 20, 3, 0]])
inputs = {"input_word_ids": ids, "input_mask": tf.cast(ids != 0, tf.int32), "input_type_ids": 0 * ids}
shapes = [loaded(inputs, training=training)["sequence_output"].shape for training in (True, False)]
shapes.append(loaded.mlm(inputs | {"masked_lm_positions": ids * 0})["mlm_logits"].shape)
assert shapes == [(1, 4, 16), (1, 4, 16), (1, 4, int(sys.argv[2]))], shapes
assert not any(name.startswith("keras_bert_kit") for name in sys.modules)
"""
    command = [sys.executable, "-c", program, str(written[0]), str(len(VOCABULARY))]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("heads", [(), ("mlm",)])
def test_any_config_comes_back_bit_equal(tmp_path, heads):
    write_hf_folder(
        tmp_path / "in", heads=heads, hidden_act="gelu", layer_norm_eps=1e-6, hidden_dropout_prob=0.2, vocab_size=99
    )
    bert = load_pretrained(tmp_path / "in")
    tokenizer = BertTokenizer(VOCABULARY, strip_accents=False, reference="google", max_characters_per_word=7)
    save_pretrained(bert.pretrainer or bert.encoder, tmp_path / "m", tokenizer=tokenizer, format="tf-hub")
    again = load_pretrained(tmp_path / "m")
    require_equal_weights(bert, again)
    assert again.config == bert.config and again.report.heads == bert.report.heads
    assert again.report.left_out == {"do_lower_case/.ATTRIBUTES/VARIABLE_VALUE": "a setting, no weight"}
    assert again.tokenizer.get_config() | {"name": ""} == tokenizer.get_config() | {"name": ""}
    assert "hidden_act=gelu_erf (kit.json says so, written by the kit)" in again.report.notes
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    np.testing.assert_allclose(loaded(INPUTS)["pooled_output"], bert.encoder(INPUTS)["pooled_output"], atol=1e-6)


def test_a_head_with_an_activation_and_epsilon_of_its_own_comes_back(tmp_path):
    write_google_folder(tmp_path / "in", heads=())
    bert = load_pretrained(tmp_path / "in")
    model = BertPretrainer(bert.encoder, next_sentence=False, head_activation="gelu_erf", head_epsilon=1e-5)
    save_pretrained(model, tmp_path / "m", tokenizer=bert.tokenizer, format="tf-hub")
    head = load_pretrained(tmp_path / "m").pretrainer.masked_lm
    assert (head.activation, head.epsilon) == ("gelu_erf", 1e-5)


def test_what_the_interface_has_no_place_for_is_refused(tmp_path):
    write_google_folder(tmp_path / "in")
    bert = load_pretrained(tmp_path / "in")
    with pytest.raises(ValueError, match="a place for every head. Received: classifier, which it has not"):
        model = BertClassifier(bert.encoder, 2)
        save_pretrained(model, tmp_path / "m", tokenizer=bert.tokenizer, format="tf-hub")
    with pytest.raises(ValueError, match="needs an encoder with a pooler.*Received: add_pooler=False"):
        encoder = BertEncoder(bert.config, add_pooler=False)
        save_pretrained(encoder, tmp_path / "m", tokenizer=bert.tokenizer, format="tf-hub")
    with pytest.raises(ValueError, match="computes in float32.*Received: mixed_bfloat16"):
        encoder = BertEncoder(bert.config, dtype="mixed_bfloat16")
        save_pretrained(encoder, tmp_path / "m", tokenizer=bert.tokenizer, format="tf-hub")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"config": {"vocab_size": 5, "hiden_size": 3}}, ConfigError, "unknown key 'hiden_size'"),
        ({"config": [1]}, CheckpointError, "config must be a JSON object"),
        ({"masked_lm": {"activation": 1, "epsilon": 0.1}}, ConfigError, "hidden_act"),
    ],
)
def test_a_kit_file_that_says_something_else_is_refused(written, tmp_path, change, error, message):
    folder = shutil.copytree(written[0], tmp_path / "m")
    values = json.loads((folder / "assets/kit.json").read_text(encoding="utf-8"))
    (folder / "assets/kit.json").write_text(json.dumps(values | change), encoding="utf-8")
    with pytest.raises(error, match=message):
        load_pretrained(folder)


def test_a_vocabulary_that_was_changed_later_is_noticed(written, tmp_path):
    folder = shutil.copytree(written[0], tmp_path / "m")
    words = (folder / "assets/vocab.txt").read_bytes()
    (folder / "assets/vocab.txt").write_bytes(words.replace(b"robot", b"rabot"))
    with pytest.raises(CheckpointError, match="vocab.txt must be the file that was recorded, with sha256"):
        load_pretrained(folder)


@pytest.mark.parametrize("name", ["encoder_v1", "encoder_v3", "encoder_v4_with_mlm"])
def test_saved_models_of_tf_models_come_back_bit_equal(shared, tmp_path, name):
    bert = load_pretrained(shared / "fixtures/hub" / name)
    save_pretrained(bert.pretrainer or bert.encoder, tmp_path / "m", tokenizer=bert.tokenizer, format="tf-hub")
    again = load_pretrained(tmp_path / "m")
    require_equal_weights(bert, again)
    assert dataclasses.asdict(again.config) == dataclasses.asdict(bert.config)
    goldens = "goldens_encoder_v1.npz" if name == "encoder_v1" else "goldens_encoder.npz"
    golden = np.load(shared / "fixtures/hub" / goldens)
    inputs = {key: tf.constant(golden[key], tf.int32) for key in INPUTS}
    outputs = tf.saved_model.load(str(tmp_path / "m"))(inputs)
    for key in {"pooled_output", "sequence_output"} & set(golden):
        np.testing.assert_allclose(outputs[key], golden[key], atol=1e-5)
