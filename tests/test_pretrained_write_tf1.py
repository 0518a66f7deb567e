"""format="tf1": TensorFlow's reader finds Google's names, round trips are bit-equal, what cannot be said is refused."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf
from fake_checkpoints import google_array, google_name, write_google_folder
from fake_tf1_hub import Module
from fake_weights import VOCABULARY, write_hf_folder
from reference import Reference

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer, BertTokenClassifier
from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.text import BertTokenizer


def arrays_in(prefix):
    """{name: array} of a checkpoint, as TensorFlow's reader sees it."""
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def require_equal_arrays(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("heads", [(), ("mlm",), ("mlm", "nsp"), ("nsp",), ("classifier",), ("question_answering",)])
def test_tensorflows_own_reader_finds_what_was_loaded(tmp_path, heads):
    tensors, _ = write_hf_folder(tmp_path / "hf", heads=heads, hidden_act="gelu_new", lowercase=False)
    bert = load_pretrained(tmp_path / "hf")
    model = bert.classifier or bert.pretrainer or bert.next_sentence or bert.question_answering or bert.encoder
    save_pretrained(model, tmp_path / "m", tokenizer=bert.tokenizer, format="tf1")
    names = {name: name.removeprefix("bert.") for name in tensors}
    expected = {google_name(short): google_array(short, tensors[name]) for name, short in names.items()}
    require_equal_arrays(arrays_in(tmp_path / "m/bert_model.ckpt"), expected)
    again = load_pretrained(tmp_path / "m")
    assert again.config == bert.config and again.report.heads == bert.report.heads and not again.report.left_out
    assert again.tokenizer.vocabulary == bert.tokenizer.vocabulary and not again.tokenizer.lowercase
    config = json.loads((tmp_path / "m/bert_config.json").read_text(encoding="utf-8"))
    assert config["hidden_act"] == "gelu" and "layer_norm_eps" not in config  # what Google's code reads as tanh, 1e-12


def test_a_graph_of_tf1_restores_it(tmp_path):
    tensors, config = write_google_folder(tmp_path / "in")
    bert = load_pretrained(tmp_path / "in")
    save_pretrained(bert.pretrainer, tmp_path / "out", tokenizer=bert.tokenizer, format="tf1")
    prefix, ids = str(tmp_path / "out/bert_model.ckpt"), np.array([[2, 20, 31, 3, 0]])
    zeros = {name: array * 0 for name, array in arrays_in(prefix).items()}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = Module(zeros, "", config, None, True).signatures()["mlm"]
        tf.compat.v1.train.Saver().restore(session, prefix)
        fed = {"input_ids": ids, "input_mask": ids != 0, "segment_ids": ids > 30, "mlm_positions": [[1, 4]]}
        logits = session.run(
            signature.outputs["mlm_logits"].name, {signature.inputs[name].name: fed[name] for name in fed}
        )
    expected = Reference(tensors, config)(ids, ids != 0, (ids > 30).astype("int32"), [[1, 4]])
    np.testing.assert_allclose(logits, expected["mlm_logits"], atol=1e-5)


def test_a_checkpoint_of_the_original_bert_is_the_same_after_being_written_back(tmp_path):
    write_google_folder(tmp_path / "in")
    bert = load_pretrained(tmp_path / "in")
    save_pretrained(bert.pretrainer, tmp_path / "out", tokenizer=bert.tokenizer, format="tf1")
    slots = bert.report.left_out
    expected = {name: array for name, array in arrays_in(tmp_path / "in/bert_model.ckpt").items() if name not in slots}
    require_equal_arrays(arrays_in(tmp_path / "out/bert_model.ckpt"), expected)


def test_the_checkpoint_of_the_original_code_is_the_same_after_being_written_back(shared, tmp_path):
    folder = shared / "fixtures/tf1_checkpoint"
    bert = load_pretrained(folder)
    save_pretrained(bert.pretrainer, tmp_path / "m", tokenizer=bert.tokenizer, format="tf1")
    texts = [(where / "vocab.txt").read_text(encoding="utf-8").splitlines() for where in (folder, tmp_path / "m")]
    assert texts[0] == texts[1]
    theirs = arrays_in(folder / "bert_model.ckpt")
    require_equal_arrays(
        arrays_in(tmp_path / "m/bert_model.ckpt"), {name: theirs[name] for name in bert.report.assigned}
    )
    written = json.loads((tmp_path / "m/bert_config.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "bert_config.json").read_text(encoding="utf-8"))
    assert {key: config[key] for key in written} == written


def test_class_names_dropout_and_settings_of_the_tokenizer_come_back(tmp_path):
    write_google_folder(tmp_path / "in", heads=())
    encoder = load_pretrained(tmp_path / "in").encoder
    model = BertClassifier(encoder, 3, ["Fußball", "科技", "world news"], dropout_rate=0.3)
    tokenizer = BertTokenizer(VOCABULARY, strip_accents=False, reference="google", max_characters_per_word=7)
    folder = tmp_path / "Modelle für BERT/模型"
    save_pretrained(model, folder, tokenizer=tokenizer, format="tf1")
    again = load_pretrained(folder)
    assert again.classifier.class_names == model.class_names and again.classifier.dropout_rate == 0.3
    np.testing.assert_array_equal(again.classifier.dense.kernel, model.dense.kernel)
    settings = ("lowercase", "strip_accents", "reference", "max_characters_per_word", "special_tokens_in_text")
    assert [getattr(again.tokenizer, name) for name in settings] == [getattr(tokenizer, name) for name in settings]
    assert "lowercase=True, strip_accents=False (lowercase in kit.json)" in again.report.notes


@pytest.mark.parametrize("name", ["gelu_erf", "silu", "relu"])
def test_an_activation_is_written_so_that_nobody_misreads_it(tmp_path, name):
    """ "gelu" is the tanh form in Google's code, which refuses the names that it does not know."""
    write_google_folder(tmp_path / "in")
    bert = load_pretrained(tmp_path / "in")
    model = BertEncoder(dataclasses.replace(bert.config, hidden_act=name))
    save_pretrained(model, tmp_path / "m", tokenizer=bert.tokenizer, format="tf1")
    assert json.loads((tmp_path / "m/bert_config.json").read_text(encoding="utf-8"))["hidden_act"] == name
    assert load_pretrained(tmp_path / "m").config == model.config


@pytest.mark.parametrize("change", [{"layer_norm_eps": 1e-5}])
def test_what_googles_code_would_misread_is_refused(tmp_path, change):
    write_google_folder(tmp_path / "in")
    bert = load_pretrained(tmp_path / "in")
    model = BertEncoder(dataclasses.replace(bert.config, **change))
    with pytest.raises(ValueError, match="needs layer_norm_eps=1e-12: Google's code has no other"):
        save_pretrained(model, tmp_path / "m", tokenizer=bert.tokenizer, format="tf1")
    head = {"head_activation": change.get("hidden_act"), "head_epsilon": change.get("layer_norm_eps")}
    with pytest.raises(ValueError, match="model must have one activation and epsilon"):
        save_pretrained(BertPretrainer(bert.encoder, **head), tmp_path / "m", tokenizer=bert.tokenizer, format="tf1")
    assert not (tmp_path / "m").exists()


def test_heads_that_google_has_not_are_refused(tmp_path):
    write_google_folder(tmp_path / "in")
    bert = load_pretrained(tmp_path / "in")
    model = BertTokenClassifier(bert.encoder, 3)
    with pytest.raises(ValueError, match="format='tf1' must have a place for every head. Received: token_classifier"):
        save_pretrained(model, tmp_path / "m", tokenizer=bert.tokenizer, format="tf1")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_names": ["a", "a", "b"]}, "class_names must be 3 different names. Received: .'a', 'a', 'b'"),
        ({"class_names": [1, 2, 3]}, "class_names must be 3 different names"),
        ({"tokenizer": {"lowercase": True, "do_what": 1}}, "unknown settings of the tokenizer. Received: do_what"),
        ({"dropout_rate": 2}, "dropout_rate must be a number from 0 to below 1. Received: 2"),
    ],
)
def test_a_kit_file_that_says_something_else_is_refused(tmp_path, change, message):
    write_google_folder(tmp_path, heads=("classifier",), slots=False)
    (tmp_path / "kit.json").write_text(json.dumps(change), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        load_pretrained(tmp_path)
