"""save_pretrained: round trips are bit-equal, the folder is whole or absent, and changes are noticed."""

import json

import numpy as np
import pytest
from fake_weights import VOCABULARY, write_hf_folder
from safetensors.numpy import load_file

from keras_bert_kit.config import BertConfig
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import folder_written_beside
from keras_bert_kit.models import BertClassifier, BertEncoder
from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.text import BertTokenizer


@pytest.mark.parametrize("heads", [(), ("mlm",), ("mlm", "nsp"), ("classifier",)])
@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new"])
def test_tensors_names_and_config_come_back_bit_equal(tmp_path, heads, hidden_act):
    tensors, config = write_hf_folder(tmp_path / "in", heads=heads, hidden_act=hidden_act, lowercase=False)
    bert = load_pretrained(tmp_path / "in")
    save_pretrained(bert.classifier or bert.pretrainer or bert.encoder, tmp_path / "out", tokenizer=bert.tokenizer)
    written = load_file(tmp_path / "out/model.safetensors")
    assert written.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(written[name], array)
        assert written[name].dtype == np.float32
    saved = json.loads((tmp_path / "out/config.json").read_text(encoding="utf-8"))
    assert saved["architectures"] == config["architectures"] and saved["hidden_act"] == hidden_act
    again = load_pretrained(tmp_path / "out")
    assert again.config == bert.config and not again.tokenizer.lowercase
    assert again.tokenizer.vocabulary == bert.tokenizer.vocabulary


def classifier_and_tokenizer(class_names=("Fußball", "科技", "world news")):
    tokenizer = BertTokenizer(VOCABULARY, strip_accents=False)
    config = BertConfig(tokenizer.vocab_size, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    return BertClassifier(BertEncoder(config), len(class_names), class_names, dropout_rate=0.3), tokenizer


def test_a_fresh_classifier_keeps_names_dropout_and_tokenizer_settings(tmp_path):
    model, tokenizer = classifier_and_tokenizer()
    folder = tmp_path / "Modelle für BERT" / "模型 v1"
    save_pretrained(model, folder, tokenizer=tokenizer, format="hf")
    loaded = load_pretrained(folder)
    assert loaded.classifier.class_names == model.class_names and loaded.classifier.dropout_rate == 0.3
    assert loaded.tokenizer.strip_accents is False
    kit = json.loads((folder / "kit.json").read_text(encoding="utf-8"))
    assert kit["class_names"] == list(model.class_names)
    assert set(kit["sha256"]) == {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}


def test_float16_halves_the_file_and_rounds(tmp_path):
    model, tokenizer = classifier_and_tokenizer()
    save_pretrained(model, tmp_path / "half", tokenizer=tokenizer, dtype="float16")
    assert {array.dtype for array in load_file(tmp_path / "half/model.safetensors").values()} == {np.dtype("float16")}
    for ours, theirs in zip(model.weights, load_pretrained(tmp_path / "half").classifier.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy().astype("float16").astype("float32"), theirs.numpy())


def test_float16_is_refused_where_it_would_lose_more_than_digits(tmp_path):
    model, tokenizer = classifier_and_tokenizer()
    with pytest.raises(ValueError, match="'float16' with format='hf'. Received.*format='tf1'"):
        save_pretrained(model.encoder, tmp_path / "out", tokenizer=tokenizer, format="tf1", dtype="float16")
    model.encoder.pooler.dense.bias.assign(np.full(8, 1e6))
    with pytest.raises(ValueError, match="pooler.dense.bias must fit into float16. Received: numbers up to 1e.06"):
        save_pretrained(model, tmp_path / "out", tokenizer=tokenizer, dtype="float16")
    assert not (tmp_path / "out").exists()


def test_googles_choices_of_the_tokenizer_are_kept(tmp_path):
    model, _ = classifier_and_tokenizer()
    tokenizer = BertTokenizer(VOCABULARY, reference="google", max_characters_per_word=7)
    save_pretrained(model, tmp_path / "m", tokenizer=tokenizer)
    loaded = load_pretrained(tmp_path / "m").tokenizer
    assert (loaded.reference, loaded.max_characters_per_word, loaded.special_tokens_in_text) == ("google", 7, False)
    assert loaded(["the [MASK] marketable"]).to_list() == tokenizer(["the [MASK] marketable"]).to_list()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lowercase": "no"}, "kit.json: lowercase must be true or false. Received: 'no'"),
        ({"strip_accents": 2}, "kit.json: strip_accents must be true or false"),
        ({"special_tokens_in_text": []}, "kit.json: special_tokens_in_text must be true or false"),
    ],
)
def test_settings_of_the_tokenizer_in_kit_json_are_checked(tmp_path, settings, message):
    model, tokenizer = classifier_and_tokenizer()
    save_pretrained(model, tmp_path / "m", tokenizer=tokenizer)
    kit = json.loads((tmp_path / "m/kit.json").read_text(encoding="utf-8"))
    (tmp_path / "m/kit.json").write_text(json.dumps(kit | {"tokenizer": settings}), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        load_pretrained(tmp_path / "m")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"])
def test_a_file_that_was_changed_later_is_noticed(tmp_path, name):
    model, tokenizer = classifier_and_tokenizer()
    save_pretrained(model, tmp_path / "m", tokenizer=tokenizer)
    content = bytearray((tmp_path / "m" / name).read_bytes())
    content[-2] ^= 1
    (tmp_path / "m" / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{name} must be the file that was recorded, with sha256"):
        load_pretrained(tmp_path / "m")


def test_an_existing_folder_is_not_overwritten(tmp_path):
    model, tokenizer = classifier_and_tokenizer()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/mine.txt").write_text("keep", encoding="utf-8")
    with pytest.raises(FileExistsError, match="must not exist yet, or be empty.*Nothing was changed"):
        save_pretrained(model, tmp_path / "taken", tokenizer=tokenizer)
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "mine.txt"]


def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path):
    model, tokenizer = classifier_and_tokenizer()
    with pytest.raises(ValueError, match="format must be one of hf, tf1, tf-hub. Received: format='zip'"):
        save_pretrained(model, tmp_path / "m", tokenizer=tokenizer, format="zip")
    with pytest.raises(ValueError, match="must be a BertEncoder, or a model on one.*Received: a BertTokenizer"):
        save_pretrained(tokenizer, tmp_path / "m", tokenizer=tokenizer)
    with pytest.raises(ValueError, match="tokenizer must be a BertTokenizer. Received: a NoneType"):
        save_pretrained(model, tmp_path / "m", tokenizer=None)
    with pytest.raises(ValueError, match="not have more words than the model's word table has rows"):
        save_pretrained(model, tmp_path / "m", tokenizer=BertTokenizer([*VOCABULARY, "more"]))
    assert not list(tmp_path.iterdir())


def test_an_error_in_the_middle_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="disk full"), folder_written_beside(tmp_path / "m") as folder:
        (folder / "half.txt").write_text("half", encoding="utf-8")
        raise RuntimeError("disk full")
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "m").mkdir()
    with folder_written_beside(tmp_path / "m") as folder:
        (folder / "whole.txt").write_text("whole", encoding="utf-8")
    assert [path.name for path in tmp_path.rglob("*")] == ["m", "whole.txt"]
