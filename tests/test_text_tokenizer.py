"""BertTokenizer: the ids of Google's and Hugging Face's tokenizers, however it is called."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.errors import VocabularyError
from keras_bert_kit.text.tokenizer import BertTokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIALS, "play", "##ing", "##s", "plays", "i", "a", "##a", "!", "$", "[", "mask", "]", "博", "推", "ah"]
TEXTS = ["Playing plays", "", "I!$ a博推ah", "aaa\u200ba \u00e1 playx", "[MASK] [mask]", "  \t\r\n\u2028i\x00i\ufffd"]
IDS = [
    [5, 6, 8],
    [],
    [9, 12, 13, 10, 17, 18, 19],
    [10, 11, 11, 11, 10, 1],
    [4, 14, 15, 16],
    [1],
]


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def test_hand_written_cases(tokenizer):
    assert tokenizer(TEXTS).to_list() == IDS
    assert tokenizer(TEXTS).dtype == tf.int32
    # Alone, each text gives what it gives among others.
    assert [tokenizer([text]).to_list()[0] for text in TEXTS] == IDS


@pytest.mark.parametrize("name, lowercase", [("uncased", True), ("cased", False), ("chinese", True)])
def test_golden_ids(shared, name, lowercase):
    tokenizer = BertTokenizer.from_vocab_file(shared / f"data/vocab/{name}_vocab.txt", lowercase=lowercase)
    cases = json.loads((shared / f"golden/generated_tokenization_{name}.json").read_text())["cases"]
    ids = tokenizer([case["text"] for case in cases]).to_list()
    for case, found in zip(cases, ids, strict=True):
        assert found == (case["ids"] if case["agree"] else case["hf_ids"]), case["text"]


def test_every_way_of_calling_gives_the_same(tokenizer, tmp_path):
    def ragged(dataset):
        return [row for ids in dataset for row in ids.to_list()]

    texts = tf.constant(TEXTS)
    assert tf.function(tokenizer)(texts).to_list() == IDS
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS)
    assert ragged(dataset.batch(4).map(tokenizer)) == IDS
    assert ragged(dataset.map(tokenizer)) == IDS
    inputs = keras.Input(shape=(), dtype="string")
    assert keras.Model(inputs, tokenizer(inputs))(texts).to_list() == IDS

    module = tf.Module()
    module.tokenizer = tokenizer
    signature = [tf.TensorSpec([None], tf.string)]
    module.values = tf.function(lambda texts: tokenizer(texts).values, input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "saved"))
    assert tf.saved_model.load(str(tmp_path / "saved")).values(texts).numpy().tolist() == sum(IDS, [])


def test_a_tokenizer_made_inside_a_graph_works():
    dataset = tf.data.Dataset.from_tensors(TEXTS).map(lambda texts: BertTokenizer(VOCABULARY)(texts))
    assert next(iter(dataset)).to_list() == IDS


def test_forms_of_input_and_the_bare_string(tokenizer):  # FC45
    expected = [[5, 6]]
    for text in [
        "playing",
        b"playing",
        ["playing"],
        ("playing",),
        np.array(["playing"]),
        np.array(["playing"], object),
    ]:
        assert tokenizer(text).to_list() == expected
    assert tokenizer(tf.constant("playing")).to_list() == expected
    assert tokenizer(np.array("playing")).to_list() == expected
    assert tokenizer(text for text in ["playing"]).to_list() == expected
    assert tokenizer([]).shape == (0, None)


def test_invalid_utf8_is_dropped(tokenizer):
    assert tokenizer([b"pl\xffay\xc3", b"\xe4\xb8", b"i", b"\xed\xa0\x80a"]).to_list() == [[5], [], [9], [10]]


@pytest.mark.parametrize(
    "texts, message",
    [
        (["a", None], r"None \(NoneType\) at position 1. Drop or replace"),
        ([float("nan"), "a"], r"nan \(float\) at position 0"),
        ([["a"]], r"\(list\) at position 0. Give a list of str"),
        ({"a": 1}, "in order. Received: a dict"),
        ({"a"}, "in order. Received: a set"),
        (keras.KerasTensor((None, 1), dtype="string"), r"rank 1.*shape=\(None, 1\)"),
        (keras.KerasTensor((None,), dtype="int32"), "must be strings.*int32"),
        (np.array([["a"]]), r"rank 1.*shape=\(1, 1\)"),
        (tf.constant([["a"]]), r"rank 1.*shape=\(1, 1\)"),
        (tf.constant([1]), "must be strings.*int32"),
        (np.array([1.5]), r"1.5 \(float\) at position 0"),
        (["a", "b\ud800"], "lone surrogate, '.ud800' at character 1 of the text at position 1"),
        (tf.ragged.constant([["a"]]), "RaggedTensor"),
        (7, r"7 \(int\) at position 0"),
    ],
)
def test_what_is_not_text_is_refused(tokenizer, texts, message):
    with pytest.raises(ValueError, match=message):
        tokenizer(texts)


def test_strip_accents():  # FC13
    vocabulary = [*SPECIALS, "möchte", "mochte"]
    assert BertTokenizer(vocabulary, strip_accents=False)("Möchte").to_list() == [[5]]
    assert BertTokenizer(vocabulary)("Möchte").to_list() == [[6]]
    assert BertTokenizer(vocabulary, lowercase=False)("möchte").to_list() == [[5]]
    assert BertTokenizer(vocabulary, lowercase=False, strip_accents=True)("möchte").to_list() == [[6]]


def test_kana_lose_their_voicing_mark_only_when_lowercased():  # FC15
    vocabulary = [*SPECIALS, "ア", "##リ", "##ハ", "株", "式", "会", "社", "##バ"]
    assert BertTokenizer(vocabulary)("アリババ株式会社").to_list() == [[5, 6, 7, 7, 8, 9, 10, 11]]
    assert BertTokenizer(vocabulary, lowercase=False)("アリババ株式会社").to_list() == [[5, 6, 12, 12, 8, 9, 10, 11]]


def test_long_words_become_unk():
    tokenizer = BertTokenizer(VOCABULARY)
    google = BertTokenizer(VOCABULARY, max_characters_per_word=200)
    texts = ["a" * 100, "a" * 101, "a" * 200, "a" * 201]
    assert [len(ids) for ids in tokenizer(texts).to_list()] == [100, 1, 1, 1]
    assert [len(ids) for ids in google(texts).to_list()] == [100, 101, 200, 1]
    with pytest.raises(ValueError, match="positive int.*max_characters_per_word=0"):
        BertTokenizer(VOCABULARY, max_characters_per_word=0)


def test_special_tokens_in_the_text_can_be_plain_text():
    assert BertTokenizer(VOCABULARY, special_tokens_in_text=False)("[MASK]").to_list() == [[14, 15, 16]]


def test_huge_and_many_texts(tokenizer):
    assert tokenizer("a" * 1_000_000).to_list() == [[1]]
    assert tokenizer("i " * 500_000).values.shape == (500_000,)
    assert tokenizer([""] * 100_000).row_lengths().numpy().sum() == 0


@pytest.mark.parametrize("reference", ["hugging_face", "google", "tf_hub"])
def test_a_vocabulary_of_special_tokens_alone(reference):
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"], reference=reference)
    assert tokenizer(["a b!", ""]).to_list() == [[1, 1, 1], []]


def test_vocabulary_and_ids_of_special_tokens():
    vocabulary = ["x", "[SEP]", "[CLS]", "[UNK]", "[PAD]"]
    tokenizer = BertTokenizer(vocabulary)
    assert tokenizer.vocabulary == vocabulary
    assert (tokenizer.vocab_size, tokenizer.mask_id) == (5, None)
    assert (tokenizer.sep_id, tokenizer.cls_id, tokenizer.unk_id, tokenizer.pad_id) == (1, 2, 3, 4)
    assert tokenizer("x y [MASK]").to_list() == [[0, 3, 3, 3, 3]]
    with pytest.raises(VocabularyError, match="without .CLS."):
        BertTokenizer(["[PAD]", "[UNK]", "[SEP]"])


def test_config_round_trip():
    tokenizer = BertTokenizer(VOCABULARY, lowercase=False, strip_accents=True, max_characters_per_word=7)
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(tokenizer)))
    copy = keras.saving.deserialize_keras_object(config)
    assert copy.get_config() == tokenizer.get_config()
    assert copy(TEXTS).to_list() == tokenizer(TEXTS).to_list()


def test_equal_to_the_tokenizers_library():
    tokenizers = pytest.importorskip("tokenizers")
    letters = [
        *"abcdehiou",
        *(f"##{letter}" for letter in "abcdehiou"),
        "##é",
        "é",
        "ά",
        "α",
        "##ά",
        "##ς",
        "##σ",
        "한",
        "ᄒ",
    ]
    vocabulary = [*SPECIALS, *letters, "hi", "##hi", "there", "##ere", "##ᅡ", "##ᆫ", "-", "ß", "ss", "½", "€", "`"]
    texts = [
        "Hi there, hihi! thé re",
        "Ά άΆΣ Σ",
        "한글 한",
        "a-b`c ß SS ½ €5",
        "e\u0301\u200de",
        "\u0130i",
        "[UNK][CLS] [sep]",
    ]
    for lowercase in (True, False):
        for strip_accents in (None, True, False):
            ours = BertTokenizer(vocabulary, lowercase, strip_accents)
            theirs = tokenizers.BertWordPieceTokenizer(
                {token: i for i, token in enumerate(vocabulary)}, lowercase=lowercase, strip_accents=strip_accents
            )
            expected = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
            assert ours(texts).to_list() == expected, (lowercase, strip_accents)
