"""Statistics of texts, learned vocabularies, added tokens."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.config import BertConfig
from keras_bert_kit.errors import DataError
from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer, add_tokens
from keras_bert_kit.text.added_tokens import extend_table, extend_tokenizer
from keras_bert_kit.text.learn_vocabulary import learn_vocabulary, write_vocabulary
from keras_bert_kit.text.statistics import case_warnings, text_statistics
from keras_bert_kit.text.tokenizer import BertTokenizer
from keras_bert_kit.text.vocabulary import read_vocabulary

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIALS, "[unused0]", "[unused1]", "co", "##vid", "a", "##a", "é"]


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def test_statistics(tokenizer):
    texts = ["a " * n for n in range(10)] + ["x", "covid", ""]
    found = text_statistics((text for text in texts), tokenizer, sequence_length=8)
    assert (found.num_texts, found.num_empty_texts, found.num_tokens, found.num_unknown) == (13, 2, 48, 1)
    assert (found.num_truncated, found.tokens_lost, found.longest) == (3, 1 + 2 + 3, 9)
    assert found.percentiles == {50: 3, 90: 8, 95: 9, 99: 9, 100: 9}
    assert sum(count for *_, count in found.histogram) == 13
    assert found.unknown_share == pytest.approx(1 / 48) and found.truncated_share == pytest.approx(3 / 13)
    assert "more than 1 % of the tokens are [UNK]" in found.warnings[0] and "truncated" in found.warnings[1]
    assert json.loads(json.dumps(found.as_dict()))["truncated_share"] == found.truncated_share
    assert "truncated            3" in str(found) and "warning: more than 10 %" in str(found)


def test_statistics_of_one_length_and_of_nothing(tokenizer):
    assert text_statistics(["", ""], tokenizer).histogram == [(0, 1, 2)]
    assert text_statistics("a covid", tokenizer) == text_statistics(["a covid"], tokenizer)
    with pytest.raises(ValueError, match="at least one text"):
        text_statistics([], tokenizer)
    with pytest.raises(ValueError, match="None .*position 1"):
        text_statistics(["a", None], tokenizer)


def test_a_vocabulary_of_the_other_case_is_noticed():
    cased = BertTokenizer([*SPECIALS, "The", "the", "##ing"])
    assert "33% of the tokens have capital letters" in case_warnings(cased)[0]
    uncased = [*SPECIALS, *(f"w{i}" for i in range(2000))]
    assert "an uncased vocabulary?" in case_warnings(BertTokenizer(uncased, lowercase=False))[0]
    assert case_warnings(BertTokenizer(uncased)) == []


@pytest.fixture
def corpus(tmp_path):
    pytest.importorskip("tokenizers")
    generator = np.random.default_rng(0)
    words = ["play", "played", "playing", "stay", "stayed", "staying", "Zürich", "möchte"]
    lines = [" ".join(generator.choice(words, 8)) for _ in range(300)]
    (tmp_path / "a.txt").write_text("\n".join(lines[:150]), encoding="utf-8")
    (tmp_path / "b.txt").write_text("\n".join(lines[150:]), encoding="utf-8")
    return [tmp_path / "a.txt", tmp_path / "b.txt"]


def test_a_learned_vocabulary_is_reproducible_and_usable(corpus, tmp_path):
    vocabulary = learn_vocabulary(corpus, 60, num_unused=3)
    assert vocabulary[:8] == [*SPECIALS, "[unused0]", "[unused1]", "[unused2]"]
    assert len(vocabulary) <= 60 and len(set(vocabulary)) == len(vocabulary)
    program = (
        "import sys, json\n"
        "from keras_bert_kit.text.learn_vocabulary import learn_vocabulary\n"
        "print(json.dumps(learn_vocabulary(sys.argv[1:], 60, num_unused=3)))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    command = [sys.executable, "-c", program, *map(str, corpus)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(run.stdout.splitlines()[-1]) == vocabulary  # another process, another order of hash tables
    path = write_vocabulary(vocabulary, tmp_path / "new" / "vocab.txt")
    assert read_vocabulary(path) == vocabulary
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".")] == []
    tokenizer = BertTokenizer.from_vocab_file(path)
    assert tokenizer.unk_id not in tokenizer("Playing in Zurich, stayed".replace(",", "").replace("in ", ""))[0]
    assert learn_vocabulary(str(corpus[0]), 60) == learn_vocabulary([corpus[0]], 60)
    assert "zurich" in vocabulary and "Zürich" in learn_vocabulary(corpus, 90, lowercase=False)


def test_the_seed_fixes_the_sample(corpus):
    first = learn_vocabulary(corpus, 60, max_lines=5, min_frequency=1, seed=1)
    assert first == learn_vocabulary(corpus, 60, max_lines=5, min_frequency=1, seed=1)
    assert len({tuple(learn_vocabulary(corpus, 60, max_lines=2, min_frequency=1, seed=s)) for s in range(5)}) > 1


def test_what_cannot_be_learned_from_is_refused(corpus, tmp_path):
    with pytest.raises(DataError, match="readable.*none.txt"):
        learn_vocabulary([tmp_path / "none.txt"], 60)
    (tmp_path / "latin.txt").write_bytes(b"M\xf6chte")
    with pytest.raises(DataError, match="UTF-8.*latin.txt"):
        learn_vocabulary([tmp_path / "latin.txt"], 60)
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(DataError, match="text to learn from"):
        learn_vocabulary([tmp_path / "empty.txt"], 60)
    with pytest.raises(ValueError, match="leave room.*vocab_size=8, num_unused=3"):
        learn_vocabulary(corpus, 8, num_unused=3)


def test_added_tokens_fill_unused_slots_then_grow(tokenizer):
    added = extend_tokenizer(tokenizer, ["covid", "a", "##xyz", "lockdown", "covid"])
    assert added.ids == {"covid": 5, "##xyz": 6, "lockdown": 12}
    assert added.tokenizer.vocab_size == 13 and tokenizer.vocabulary == VOCABULARY
    assert added.tokenizer(["Covid axyz lockdown"]).to_list() == [[5, 9, 6, 12]]
    assert added.pieces == {"covid": [7, 8], "##xyz": [1], "lockdown": [1]}
    table = np.arange(24, dtype=np.float32).reshape(12, 2)
    extended = extend_table(table, added)
    assert extended.shape == (13, 2)
    np.testing.assert_array_equal(extended[5], table[[7, 8]].mean(axis=0))
    np.testing.assert_array_equal(extended[12], table[1])
    np.testing.assert_array_equal(extended[7:12], table[7:])


def test_tokens_that_no_text_leads_to_are_refused(tokenizer):
    lost = ["COVID", "two words", "a-b", "##", "##!", "a" * 101, "##" + "a" * 100]
    with pytest.raises(ValueError, match="lower case, at most 100 characters. Received: " + ", ".join(map(repr, lost))):
        extend_tokenizer(tokenizer, [*lost, "fine"])
    met = extend_tokenizer(tokenizer, ["a" * 100, "##" + "b" * 99, "!", "中"])
    texts = ["a" * 100, "a" + "b" * 99, "!", "中"]
    assert [row[-1] for row in met.tokenizer(texts).to_list()] == list(met.ids.values())
    assert extend_tokenizer(tokenizer, []).ids == {}


def test_an_encoder_and_its_heads_grow_with_the_vocabulary(tokenizer):
    config = BertConfig(vocab_size=12, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    pretrainer = BertPretrainer(BertEncoder(config))
    pretrainer.masked_lm.bias.assign(np.arange(12.0))
    larger_tokenizer, larger, ids = add_tokens(tokenizer, pretrainer, ["covid", "lockdown", "mask"])
    assert ids == {"covid": 5, "lockdown": 6, "mask": 12} and larger_tokenizer.vocab_size == 13
    assert larger.encoder.config.vocab_size == 13
    np.testing.assert_array_equal(larger.masked_lm.bias[:5], np.arange(5.0))
    assert larger.masked_lm.bias[5] == (7 + 8) / 2 and larger.masked_lm.bias[12] == 1

    ids = tf.constant([[2, 9, 10, 3]])
    inputs = {"input_word_ids": ids, "input_mask": tf.ones_like(ids), "input_type_ids": tf.zeros_like(ids)}
    inputs["masked_lm_positions"] = tf.constant([[1]])
    before, after = pretrainer(inputs), larger(inputs)
    np.testing.assert_allclose(after["sequence_output"], before["sequence_output"], atol=1e-6)
    np.testing.assert_allclose(after["mlm_logits"][..., 7:12], before["mlm_logits"][..., 7:], atol=1e-6)

    classifier = BertClassifier(pretrainer.encoder, 3, ["x", "y", "z"])
    _, larger_classifier, _ = add_tokens(tokenizer, classifier, ["covid", "lockdown", "mask"])
    assert larger_classifier.class_names == ("x", "y", "z")
    np.testing.assert_allclose(larger_classifier(inputs), classifier(inputs), atol=1e-6)

    other_head = BertPretrainer(pretrainer.encoder, head_activation="relu", head_epsilon=1e-5)
    _, larger_head, _ = add_tokens(tokenizer, other_head, ["covid", "lockdown", "mask"])
    expected = other_head(inputs)["mlm_logits"][..., 7:]
    np.testing.assert_allclose(larger_head(inputs)["mlm_logits"][..., 7:12], expected, atol=1e-6)

    _, encoder, _ = add_tokens(tokenizer, pretrainer.encoder, ["covid"])
    assert encoder.config.vocab_size == 12
    np.testing.assert_allclose(encoder(inputs)["pooled_output"], before["pooled_output"], atol=1e-6)
    with pytest.raises(ValueError, match="12 tokens, a word table of 13 rows"):
        add_tokens(tokenizer, larger, ["covid"])
