"""The tensorflow-text path: the same ids, or none of it."""

import json
import logging
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.text.fast import faster, probe_texts
from keras_bert_kit.text.packer import BertPacker
from keras_bert_kit.text.tokenizer import BertTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing", "##s", "a", "##a", "!", "é", "[", "]", "b"]
TEXTS = ["Playing!", "", "é a", "[MASK]", "plays a\x00a", "x", " a\r\nb ", "a" * 101]


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def fake(monkeypatch, tokenize):
    class FastWordpieceTokenizer:
        def __init__(self, vocab, **_):
            self.ids = {token: i for i, token in enumerate(vocab)}

        def tokenize(self, texts):
            return tokenize(texts)

    module = types.ModuleType("tensorflow_text")
    module.FastWordpieceTokenizer = FastWordpieceTokenizer
    monkeypatch.setitem(sys.modules, "tensorflow_text", module)


def test_without_tensorflow_text_the_layer_itself_is_used(tokenizer, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with caplog.at_level(logging.INFO, "keras_bert_kit"):
        assert faster(tokenizer) is tokenizer
    assert "core ops; tensorflow-text is not used" in caplog.text and len(caplog.records) == 1


def test_a_kernel_that_differs_is_refused(tokenizer, monkeypatch, caplog):
    def other_ids(texts):
        return tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), tf.zeros([tf.size(texts) + 1], tf.int64))

    fake(monkeypatch, other_ids)
    pack = BertPacker(tokenizer, 8)
    with caplog.at_level(logging.INFO, "keras_bert_kit"):
        assert faster(pack) is pack
    assert "gives other ids for" in caplog.text


def test_an_equal_kernel_is_used_and_rows_keep_their_order(tokenizer, monkeypatch, caplog):
    seen = []

    def same_ids(texts):
        seen.append(texts)
        return tokenizer(texts)

    fake(monkeypatch, same_ids)
    with caplog.at_level(logging.INFO, "keras_bert_kit"):
        fast = faster(tokenizer)
    assert "printable ASCII" in caplog.text and seen
    assert fast(TEXTS).to_list() == tokenizer(TEXTS).to_list()
    pack = BertPacker(tokenizer, 8)
    for texts in (TEXTS, (TEXTS, TEXTS[::-1])):
        expected, found = pack(texts), faster(pack)(texts)
        assert found.keys() == expected.keys()
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3).map(faster(pack))
    assert dataset.element_spec["input_mask"].shape == (None, 8)
    rows = np.concatenate([batch["input_word_ids"] for batch in dataset])
    np.testing.assert_array_equal(rows, pack(TEXTS)["input_word_ids"])


def test_with_tensorflow_text(tokenizer):
    pytest.importorskip("tensorflow_text", reason="needs tensorflow-text", exc_type=ImportError)
    fast = faster(tokenizer)
    assert fast is not tokenizer
    texts = [*TEXTS, *probe_texts(tokenizer)]
    assert fast(texts).to_list() == tokenizer(texts).to_list()


@pytest.mark.parametrize("name, lowercase", [("uncased", True), ("cased", False), ("chinese", True)])
def test_golden_texts_with_tensorflow_text(shared, name, lowercase):
    pytest.importorskip("tensorflow_text", reason="needs tensorflow-text", exc_type=ImportError)
    tokenizer = BertTokenizer.from_vocab_file(shared / f"data/vocab/{name}_vocab.txt", lowercase=lowercase)
    fast = faster(tokenizer)
    assert fast is not tokenizer
    cases = json.loads((shared / f"golden/generated_tokenization_{name}.json").read_text())["cases"]
    texts = [case["text"] for case in cases]
    assert fast(texts).to_list() == tokenizer(texts).to_list()
