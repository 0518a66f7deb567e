"""Where pieces come from, what they join to, and the choices of Google's tokenizer."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.text.tokenizer import BertTokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def offsets(tokenizer, texts):
    ids, starts, ends = (x.to_list() for x in tokenizer.tokenize_with_offsets(texts))
    pairs = [[list(pair) for pair in zip(*row, strict=True)] for row in zip(starts, ends, strict=True)]
    return ids, pairs


@pytest.mark.parametrize("name, lowercase", [("uncased", True), ("cased", False), ("chinese", True)])
def test_golden_offsets(shared, name, lowercase):
    tokenizer = BertTokenizer.from_vocab_file(shared / f"data/vocab/{name}_vocab.txt", lowercase=lowercase)
    cases = json.loads((shared / f"golden/generated_tokenization_{name}.json").read_text())["cases"]
    ids, pairs = offsets(tokenizer, [case["text"] for case in cases])
    for case, found_ids, found in zip(cases, ids, pairs, strict=True):
        assert found == case["hf_char_offsets"], case["text"]
        assert found_ids == (case["ids"] if case["agree"] else case["hf_ids"])


@pytest.mark.parametrize("name, lowercase", [("uncased", True), ("cased", False), ("chinese", True)])
def test_golden_ids_of_google(shared, name, lowercase):
    path = shared / f"data/vocab/{name}_vocab.txt"
    tokenizer = BertTokenizer.from_vocab_file(path, lowercase=lowercase, reference="google")
    cases = json.loads((shared / f"golden/generated_tokenization_{name}.json").read_text())["cases"]
    for case, found in zip(cases, tokenizer([case["text"] for case in cases]).to_list(), strict=True):
        assert found == case["ids"], case["text"]


def test_offsets_by_hand():
    vocabulary = [*SPECIALS, "play", "##ing", "e", "##e", "ᄒ", "##ᅡ", "##ᆫ", "!", "it", "'", "s"]
    tokenizer = BertTokenizer(vocabulary)
    texts = ["Playing!", "", " e\u0301\u200dÉ", "한", "it's [MASK]x", "\u00a0it"]
    ids, pairs = offsets(tokenizer, texts)
    assert ids == [[5, 6, 12], [], [7, 8], [9, 10, 11], [13, 14, 15, 4, 1], [13]]
    assert pairs == [
        [[0, 4], [4, 7], [7, 8]],
        [],
        [[1, 2], [4, 5]],
        [[0, 1]] * 3,
        [[0, 2], [2, 3], [3, 4], [5, 11], [11, 12]],
        [[1, 3]],
    ]
    assert tokenizer.locate(texts).words.to_list() == [[0, 0, 1], [], [0, 0], [0, 0, 0], [0, 1, 2, 3, 4], [0]]


def test_kana_offsets():  # FC15
    tokenizer = BertTokenizer([*SPECIALS, "ア", "##リ", "##ハ", "株", "式", "会", "社"])
    ids, pairs = offsets(tokenizer, "アリババ株式会社")
    assert ids == [[5, 6, 7, 7, 8, 9, 10, 11]]
    assert pairs == [[[i, i + 1] for i in range(8)]]


def test_offsets_of_nothing_and_in_a_dataset():
    tokenizer = BertTokenizer([*SPECIALS, "a"])
    assert [x.to_list() for x in tokenizer.locate([])] == [[]] * 4
    assert [x.to_list() for x in tokenizer.locate(["", " "])] == [[[], []]] * 4
    dataset = tf.data.Dataset.from_tensor_slices(["a", "", "b a"]).batch(3).map(tokenizer.tokenize_with_offsets)
    ids, starts, ends = next(iter(dataset))
    assert (ids.to_list(), starts.to_list(), ends.to_list()) == (
        [[5], [], [1, 5]],
        [[0], [], [0, 2]],
        [[1], [], [1, 3]],
    )


def test_googles_choices():
    vocabulary = [*SPECIALS, "ο", "##ς", "##σ", "σ", "a", "##a", "##\ue000", "ab", "[", "]", "mask"]
    google = BertTokenizer(vocabulary, reference="google")
    default = BertTokenizer(vocabulary)

    texts = ["ΟΣ", "ΟΣΣ", "Σ", "a\ue000", "[MASK]"]
    assert google(texts).to_list() == [[5, 6], [5, 7, 6], [8], [9, 11], [13, 15, 14]]
    assert default(texts).to_list() == [[5, 7], [5, 7, 7], [8], [9], [4]]
    assert [len(ids) for ids in google(["a" * 200, "a" * 201]).to_list()] == [200, 1]
    mixed = BertTokenizer(vocabulary, reference="google", special_tokens_in_text=True, max_characters_per_word=1)
    assert mixed("[MASK] ab").to_list() == [[4, 1]]
    assert mixed.get_config()["special_tokens_in_text"] is True


def test_final_sigma_is_pythons():
    vocabulary = [*SPECIALS, *"οσςa'.-", *(f"##{letter}" for letter in "οσςa"), "\u02b0", "##\u02b0", "1", "##1"]
    google = BertTokenizer(vocabulary, reference="google", strip_accents=False)
    ids = {token: i for i, token in enumerate(vocabulary)}
    generator = np.random.default_rng(0)
    alphabet = [*"ΣΣΣΟa' .-1", "\u02b0", "\u200d", "\x00"]
    texts = ["".join(generator.choice(alphabet, 7)) for _ in range(500)]
    for text, found in zip(texts, google(texts).to_list(), strict=True):
        pieces = []
        for token in text.replace("\u200d", "").replace("\0", "").split():
            inside = False
            for character in token.lower():
                pieces.append(f"##{character}" if inside and character not in "'.-" else character)
                inside = character not in "'.-"
        assert found == [ids[piece] for piece in pieces], text


def test_bad_reference_is_refused():
    with pytest.raises(ValueError, match="reference must be one of.*'bert'"):
        BertTokenizer(SPECIALS, reference="bert")


def test_detokenize():
    tokenizer = BertTokenizer([*SPECIALS, "play", "##ing", "##s", "it", "'", "é"])
    ids = tokenizer(["Playings it", "", "it's"])
    assert tokenizer.detokenize(ids).numpy().tolist() == [b"playings it", b"", b"it ' [UNK]"]
    padded = [[2, 5, 6, 3, 0, 0], [2, 10, 3, 0, 0, 0]]
    for form in (padded, np.array(padded), tf.constant(padded, tf.int64), tf.ragged.constant(padded)):
        assert [text.decode() for text in tokenizer.detokenize(form).numpy()] == ["playing", "é"]
    assert tokenizer.detokenize([5, 6]).numpy().tolist() == [b"playing"]
    assert tokenizer.detokenize([[], [5]]).numpy().tolist() == [b"", b"play"]
    assert tokenizer.detokenize(tokenizer([""]).to_list()).numpy().tolist() == [b""]
    assert tokenizer.detokenize([[], []]).numpy().tolist() == [b"", b""]


@pytest.mark.parametrize(
    "ids, message", [([[0, 11]], "0 to 10. Received: 11"), ([[-1]], "-1"), ([[0.5]], "float32"), ([[[1]]], "shape")]
)
def test_bad_ids_are_refused(ids, message):
    tokenizer = BertTokenizer([*SPECIALS, "play", "##ing", "##s", "it", "'", "é"])
    with pytest.raises(ValueError, match=message):
        tokenizer.detokenize(ids)
