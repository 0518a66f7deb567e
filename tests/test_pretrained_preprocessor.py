"""`load_preprocessor`: TF-Hub's preprocessing SavedModels become our tokenizer and packer."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from fake_preprocessor import FOLDS, PIECES, SPLITS, VOCABULARY, write_preprocessor
from fake_weights import write_hf_folder

import keras_bert_kit as kbk
from keras_bert_kit.pretrained import load_preprocessor


def test_vocabulary_lowercasing_and_length_are_the_saved_models(tmp_path):
    write_preprocessor(tmp_path / "uncased")
    write_preprocessor(tmp_path / "cased", sequence_length=64, ops=(SPLITS, PIECES))
    uncased, cased = load_preprocessor(tmp_path / "uncased"), load_preprocessor(str(tmp_path / "cased"))
    assert isinstance(uncased, kbk.BertPacker) and uncased.tokenizer.vocabulary == VOCABULARY
    assert (uncased.sequence_length, uncased.tokenizer.lowercase) == (128, True)
    assert (cased.sequence_length, cased.tokenizer.lowercase) == (64, False)
    assert uncased.tokenizer.reference == cased.tokenizer.reference == "google"
    assert load_preprocessor(tmp_path / "cased", sequence_length=16).sequence_length == 16
    assert load_preprocessor(tmp_path / "cased", 600).sequence_length == 600


def test_ids_are_those_of_pretraining_or_the_saved_models_own(tmp_path):
    write_preprocessor(tmp_path / "m")
    texts = ["ﬁ Straße the"]
    packed = load_preprocessor(tmp_path / "m", 8)(texts)
    assert sorted(packed) == ["input_mask", "input_type_ids", "input_word_ids"]
    assert packed["input_word_ids"].numpy().tolist() == [[2, 7, 8, 10, 3, 0, 0, 0]]
    pack = load_preprocessor(tmp_path / "m", 8, tf_hub_normalisation=True)
    assert pack(texts)["input_word_ids"].numpy().tolist() == [[2, 5, 9, 10, 3, 0, 0, 0]]
    again = kbk.BertPacker.from_config(json.loads(json.dumps(pack.get_config())))
    assert again(texts)["input_word_ids"].numpy().tolist() == [[2, 5, 9, 10, 3, 0, 0, 0]]


def test_its_accents_may_be_kept(tmp_path):
    write_preprocessor(tmp_path / "m", ops=("StringLower", SPLITS, PIECES))
    tokenizer = load_preprocessor(tmp_path / "m").tokenizer
    assert tokenizer.lowercase and tokenizer.strip_accents is False
    with pytest.raises(
        kbk.CheckpointError, match=r"which is different \(StringLower\). Leave tf_hub_normalisation out"
    ):
        load_preprocessor(tmp_path / "m", tf_hub_normalisation=True)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"bytes_per_word": 200}, "{200}"),
        ({"constant": r"\[unused\d+\]"}, "{100}"),
        ({"ops": ("NormalizeUTF8", SPLITS, PIECES)}, "NormalizeUTF8"),
        ({"ops": ("FastBertNormalize", "FastWordpieceTokenizeWithOffsets")}, f"{SPLITS}, {PIECES}"),
    ],
)
def test_what_normalises_in_another_way_is_not_called_tf_hubs(tmp_path, options, what):
    write_preprocessor(tmp_path / "m", **options)
    load_preprocessor(tmp_path / "m")
    with pytest.raises(kbk.CheckpointError, match="words of at most 100 bytes.*Received: .*different") as error:
        load_preprocessor(tmp_path / "m", tf_hub_normalisation=True)
    assert what in str(error.value)


def test_an_archive_of_it_is_unpacked(tmp_path):
    write_preprocessor(tmp_path / "m")
    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path / "m")
    assert load_preprocessor(archive).tokenizer.vocabulary == VOCABULARY


def test_weights_with_a_vocabulary_will_do(tmp_path):
    write_hf_folder(tmp_path)
    bert, pack = kbk.load_pretrained(tmp_path), load_preprocessor(tmp_path)
    assert pack.tokenizer.get_config()["vocabulary"] == bert.tokenizer.vocabulary
    assert pack.tokenizer.reference == bert.tokenizer.reference == "hugging_face"
    assert pack.max_sequence_length == bert.config.max_position_embeddings
    assert pack.sequence_length == min(128, bert.config.max_position_embeddings)
    assert load_preprocessor(tmp_path, tf_hub_normalisation=True).tokenizer.reference == "tf_hub"
    bert.encoder(pack(["a text"]))


def test_it_is_refused_as_a_source_of_weights(tmp_path):
    write_preprocessor(tmp_path / "m")
    with pytest.raises(kbk.CheckpointError, match="must be given weights.*Give it to load_preprocessor"):
        kbk.load_pretrained(tmp_path / "m")


def test_other_saved_models_of_texts_and_damaged_ones_are_refused(tmp_path):
    write_preprocessor(tmp_path / "m", ops=(FOLDS, "SentencepieceTokenizeOp"))
    with pytest.raises(kbk.CheckpointError, match="must cut words into pieces.*Give the preprocessor of a BERT"):
        load_preprocessor(tmp_path / "m")
    write_preprocessor(tmp_path / "n")
    next((tmp_path / "n/assets").iterdir()).unlink()
    with pytest.raises(kbk.CheckpointError, match="must be a file in .*assets. Received: 'vocab-n.txt'"):
        load_preprocessor(tmp_path / "n")
    (tmp_path / "n/saved_model.pb").write_bytes(b"\xff" * 50)
    with pytest.raises(kbk.CheckpointError, match="cannot be read"):
        load_preprocessor(tmp_path / "n")


def test_its_packer_works_in_a_saved_model_of_ours(tmp_path):
    write_preprocessor(tmp_path / "m")
    module = tf.Module()
    module.pack = load_preprocessor(tmp_path / "m", 8, tf_hub_normalisation=True)
    module.run = tf.function(module.pack, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path / "exported"))
    ids = tf.saved_model.load(str(tmp_path / "exported")).run(tf.constant(["ﬁne the"]))["input_word_ids"]
    assert ids.numpy().tolist() == [[2, 5, 6, 10, 3, 0, 0, 0]]


def test_the_lesson_in_a_functional_model(tmp_path):
    write_preprocessor(tmp_path / "m")
    vectorizer = load_preprocessor(tmp_path / "m", 16)
    config = kbk.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    text = keras.Input((), dtype="string")
    model = keras.Model(text, kbk.BertEncoder(config)(vectorizer(text))["pooled_output"])
    assert model(tf.constant(["the ﬁ", "x"])).shape == (2, 8)


def test_ids_of_the_fixture_under_its_own_normalisation(shared):
    folder = shared / "fixtures/hub/preprocess_v3"
    golden = json.loads((shared / "fixtures/hub/goldens_preprocess.json").read_text(encoding="utf-8"))
    pack = load_preprocessor(folder, tf_hub_normalisation=True)
    packed = pack(golden["texts"])
    np.testing.assert_array_equal(packed["input_word_ids"], golden["input_word_ids"])
    np.testing.assert_array_equal(np.sum(packed["input_mask"], axis=1), golden["input_mask_sum"])
    pair = golden["pair"]
    packed = load_preprocessor(folder, pair["seq_length"], tf_hub_normalisation=True)(([pair["a"]], [pair["b"]]))
    for name, values in packed.items():
        np.testing.assert_array_equal(values, pair[name])
    simple = [0, 1, 3, 4]  # the text between has characters that the two ways of normalising treat differently
    packed = load_preprocessor(folder)([golden["texts"][i] for i in simple])
    np.testing.assert_array_equal(packed["input_word_ids"], np.array(golden["input_word_ids"])[simple])


def test_an_encoders_saved_model_gives_the_same_vocabulary(shared):
    packs = [load_preprocessor(shared / "fixtures/hub" / name) for name in ("preprocess_v3", "encoder_v3")]
    assert packs[0].tokenizer.vocabulary == packs[1].tokenizer.vocabulary
    assert packs[0].tokenizer.lowercase and packs[1].tokenizer.lowercase
