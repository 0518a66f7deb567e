"""BertConfig: sizes from names and files, and one clear error for each wrong one."""

import dataclasses
import json

import pytest

from keras_bert_kit.config import SIZES, BertConfig
from keras_bert_kit.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "vocab_size", "layers", "hidden", "heads"),
    [
        ("bert_uncased_L-12_H-768_A-12", 30522, 12, 768, 12),
        ("google/bert_uncased_L-2_H-128_A-2", 30522, 2, 128, 2),
        ("small_bert/bert_en_uncased_L-4_H-512_A-8", 30522, 4, 512, 8),
        ("https://tfhub.dev/tensorflow/bert_en_cased_L-24_H-1024_A-16/4", 28996, 24, 1024, 16),
        ("bert_en_wwm_uncased_L-24_H-1024_A-16", 30522, 24, 1024, 16),
        ("bert_multi_cased_L-12_H-768_A-12", 119547, 12, 768, 12),
        ("multilingual_L-12_H-768_A-12", 105879, 12, 768, 12),
        ("bert_zh_L-12_H-768_A-12", 21128, 12, 768, 12),
        ("chinese_L-12_H-768_A-12", 21128, 12, 768, 12),
    ],
)
def test_from_name_reads_every_google_name(name, vocab_size, layers, hidden, heads):
    config = BertConfig.from_name(name)
    assert (config.vocab_size, config.num_hidden_layers) == (vocab_size, layers)
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == (hidden, heads, 4 * hidden)
    assert (config.hidden_act, config.layer_norm_eps, config.max_position_embeddings) == ("gelu_tanh", 1e-12, 512)


def test_from_name_takes_a_size_and_overrides():
    config = BertConfig.from_name("tiny", vocab_size=100, hidden_act="relu")
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads) == SIZES["tiny"]
    assert (config.vocab_size, config.hidden_act) == (100, "relu")


def test_from_name_refuses_what_the_name_does_not_say():
    with pytest.raises(ConfigError, match=r"must hold L-<layers>_H-<hidden>_A-<heads>.*Received: 'roberta'"):
        BertConfig.from_name("roberta")
    with pytest.raises(ConfigError, match=r"must say the vocabulary.*Pass vocab_size=30522"):
        BertConfig.from_name("my_L-2_H-8_A-2")


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ConfigError, match=r"multiple of num_attention_heads. Received: hidden_size=768, num_attention"):
        BertConfig(vocab_size=10, hidden_size=768, num_attention_heads=7)


def test_all_faults_come_in_one_message():
    with pytest.raises(ConfigError) as error:
        BertConfig(vocab_size=0, hidden_dropout_prob=1.5, num_hidden_layers="2", hidden_act="geglu")
    for name in ("vocab_size=0", "hidden_dropout_prob=1.5", "num_hidden_layers='2'", "'geglu'"):
        assert name in str(error.value)


def test_a_bare_gelu_is_refused():
    with pytest.raises(ConfigError, match=r"which GELU.*'gelu_tanh' for weights of Google"):
        BertConfig(vocab_size=10, hidden_act="gelu")


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig(vocab_size=10).vocab_size = 11


GOOGLE = dict(
    vocab_size=15, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, hidden_act="gelu"
)


def test_gelu_is_tanh_in_googles_files_and_erf_in_hugging_faces():
    assert BertConfig.from_dict(GOOGLE).hidden_act == "gelu_tanh"
    assert BertConfig.from_dict(GOOGLE | {"model_type": "bert"}).hidden_act == "gelu_erf"
    assert BertConfig.from_dict(GOOGLE | {"layer_norm_eps": 1e-5, "hidden_act": "gelu_new"}).hidden_act == "gelu_tanh"
    assert BertConfig.from_dict(GOOGLE | {"layer_norm_eps": 1e-5}).layer_norm_eps == 1e-5


def test_dictionary_round_trip():
    config = BertConfig.from_name("mini", vocab_size=7)
    assert BertConfig(**config.to_dict()) == config
    assert BertConfig.from_dict(config.to_dict()) == config


def test_an_unknown_key_is_refused_with_the_nearest_known_one():
    with pytest.raises(ConfigError, match=r"unknown key 'hiden_size'; did you mean 'hidden_size'\?"):
        BertConfig.from_dict(GOOGLE | {"hiden_size": 8})


@pytest.mark.parametrize(
    ("key", "value"), [("model_type", "roberta"), ("position_embedding_type", "relative_key"), ("is_decoder", True)]
)
def test_what_is_not_bert_is_refused(key, value):
    with pytest.raises(ConfigError, match=rf"{key} must be .* in a BERT. Received: {value!r}"):
        BertConfig.from_dict(GOOGLE | {key: value})


def test_files_are_read_or_refused_by_name(tmp_path):
    path = tmp_path / "bert_config.json"
    with pytest.raises(ConfigError, match="must exist. Received: .*bert_config.json"):
        BertConfig.from_json_file(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="bert_config.json must hold JSON"):
        BertConfig.from_json_file(path)
    path.write_text("[1]", encoding="utf-8")
    with pytest.raises(ConfigError, match="one JSON object. Received: a list"):
        BertConfig.from_json_file(path)
    path.write_text(json.dumps({"hidden_size": 8}), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"(?s)bert_config.json.*vocab_size is missing"):
        BertConfig.from_json_file(path)
    path.write_text(json.dumps(GOOGLE), encoding="utf-8")
    assert BertConfig.from_json_file(path).vocab_size == 15


def test_files_of_others(shared):
    assert BertConfig.from_json_file(shared / "fixtures/tf1_checkpoint/bert_config.json").hidden_act == "gelu_tanh"
    assert BertConfig.from_json_file(shared / "fixtures/hf/pretraining_gelu/config.json").hidden_act == "gelu_erf"
    assert BertConfig.from_json_file(shared / "fixtures/hf/pretraining_gelu_new/config.json").hidden_act == "gelu_tanh"
