"""Filling masks: against NumPy, with a tiny model that knows three sentences by heart, and what is refused."""

import json
import sys

import numpy as np
import pytest
import tensorflow as tf
from fake_weights import VOCABULARY, write_hf_folder
from reference import Reference
from safetensors.numpy import load_file

from keras_bert_kit import cli
from keras_bert_kit.errors import CheckpointError, VocabularyError
from keras_bert_kit.fill_mask import fill_in, fill_mask
from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.text import BertPacker, BertTokenizer
from keras_bert_kit.training import AdamW, PretrainingLoss, Trainer

SENTENCES = ["the team wins the game", "we love the cafe in space", "a robot is able to play"]
TEXTS = ["the [MASK] wins the [MASK] .", "we love [MASK]", "[MASK]"]


def numpy_answers(reference, vocabulary, rows, top_k):
    """(token, probability) of each mask, from ids with [CLS] and [SEP] around them; one row at a time."""
    answers = []
    for row in rows:
        logits = reference([row])["mlm_logits"][0]
        logits = logits[np.flatnonzero(np.array(row) == vocabulary.index("[MASK]"))]
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares = odds / odds.sum(axis=-1, keepdims=True)
        best = np.argsort(-shares, axis=-1)[:, :top_k]
        answers.append([[(vocabulary[i], share[i]) for i in own] for share, own in zip(shares, best, strict=True)])
    return answers


def require_equal(found, expected):
    assert [len(masks) for masks in found] == [len(masks) for masks in expected]
    for ours, theirs in zip(found, expected, strict=True):
        for our, their in zip(ours, theirs, strict=True):
            assert [token for token, _ in our] == [token for token, _ in their]
            np.testing.assert_allclose([p for _, p in our], [p for _, p in their], atol=1e-5)
            assert all(isinstance(p, float) and isinstance(token, str) for token, p in our)


@pytest.mark.parametrize("heads", [("mlm", "nsp"), ("mlm",)])
def test_every_mask_of_every_text_as_numpy_computes_it(tmp_path, heads):
    reference = Reference(*write_hf_folder(tmp_path, heads=heads, pooler="nsp" in heads))
    rows = [["[CLS]", *text.split(), "[SEP]"] for text in TEXTS]
    ids = [[VOCABULARY.index(token) for token in row] for row in rows]
    bert = load_pretrained(tmp_path)
    require_equal(fill_mask(bert, TEXTS, top_k=3), numpy_answers(reference, VOCABULARY, ids, 3))
    require_equal(fill_mask(bert, TEXTS[1]), numpy_answers(reference, VOCABULARY, ids[1:2], 5))
    assert fill_mask(bert, []) == []


@pytest.mark.parametrize("name", ["pretraining_gelu", "pretraining_gelu_new"])
def test_the_fixtures_of_pytorch(shared, name):
    folder = shared / "fixtures/hf" / name
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    bert, reference = load_pretrained(folder), Reference(load_file(folder / "model.safetensors"), config)
    vocabulary = bert.tokenizer.vocabulary
    ids = [[vocabulary.index(token) for token in "[CLS] the [MASK] of the service [MASK] [SEP]".split()]]
    require_equal(fill_mask(bert, "The [MASK] of the SERVICE[MASK]"), numpy_answers(reference, vocabulary, ids, 5))


def test_more_texts_than_a_batch_and_all_tokens(tmp_path):
    write_hf_folder(tmp_path)
    bert = load_pretrained(tmp_path)
    found = fill_mask(bert, [TEXTS[0]] * 33 + [TEXTS[2]], top_k=10_000)
    assert [len(masks) for masks in found] == [2] * 33 + [1]
    assert sorted(token for token, _ in found[0][0]) == sorted(VOCABULARY)
    assert sum(probability for _, probability in found[33][0]) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose([p for _, p in found[32][1]], [p for _, p in found[0][1]], atol=1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that was trained to fill in any one word of three sentences, saved and to be loaded again."""
    random, learned = tmp_path_factory.mktemp("random"), tmp_path_factory.mktemp("Modelle für BERT") / "模型 v1"
    write_hf_folder(random, heads=("mlm",), pooler=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    bert = load_pretrained(random)
    words = [sentence.split() for sentence in SENTENCES]
    masked = [" ".join([*row[:i], "[MASK]", *row[i + 1 :]]) for row in words for i in range(len(row))]
    inputs = BertPacker(bert.tokenizer, None)(masked)
    places = [[i + 1] for row in words for i in range(len(row))]
    labels = [[VOCABULARY.index(word)] for row in words for word in row]
    data = (inputs | {"masked_lm_positions": np.array(places, "int32")}, {"mlm_logits": np.array(labels, "int32")})
    trainer = Trainer(bert.pretrainer, AdamW(0.02), PretrainingLoss(next_sentence=False), steps_per_call=20)
    history = trainer.fit(tf.data.Dataset.from_tensors(data), 120)
    assert history.records[-1]["mlm_accuracy"] == 1.0
    save_pretrained(bert.pretrainer, learned, tokenizer=bert.tokenizer)
    return learned


def test_a_model_that_knows_its_sentences_fills_them_in(folder):
    bert = load_pretrained(folder)
    masked = ["the team [MASK] the game", "We love the [MASK] in space", "a [MASK] is able to play"]
    answers = fill_mask(bert, masked, top_k=1)
    assert [masks[0][0][0] for masks in answers] == ["wins", "cafe", "robot"]
    assert min(masks[0][0][1] for masks in answers) > 0.9


def test_a_tokenizer_that_reads_special_tokens_as_text(folder):
    bert = load_pretrained(folder)
    assert bert.tokenizer.special_tokens_in_text
    config = bert.tokenizer.get_config() | {"special_tokens_in_text": False}
    other = type(bert)(bert.encoder, BertTokenizer.from_config(config), bert.config, bert.report, bert.pretrainer)
    text = "the team [MASK] the game"
    assert fill_mask(other, text) == fill_mask(bert, text)


def test_the_whole_text_filled_in():
    assert fill_in("the [MASK] wins the [MASK].", ["team", "game"]) == "the team wins the game."
    assert fill_in("they play [MASK] well", ["##ed"]) == "they played well"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a [MASK]", "a [mask]"], r"must hold \[MASK\], in capitals.*1 of 2 texts without.*position 1: 'a \[mask\]'"),
        (["[MASK] a", "a " * 40 + "[MASK]"], "among the first 32 tokens.*the text at position 1, where 1 of them lie"),
        ([3], "texts must be strings. Received: 3"),
    ],
)
def test_texts_that_cannot_be_filled_are_refused(folder, texts, message):
    with pytest.raises(ValueError, match=message):
        fill_mask(load_pretrained(folder), texts)


def test_a_long_text_with_its_mask_at_the_start(folder):
    assert len(fill_mask(load_pretrained(folder), "[MASK] " + "a " * 100)[0][0]) == 5


def test_models_that_cannot_fill_masks_are_refused(tmp_path, folder):
    write_hf_folder(tmp_path / "encoder", heads=())
    with pytest.raises(CheckpointError, match="needs a masked-LM head. Received: .*encoder with the heads pooler"):
        fill_mask(load_pretrained(tmp_path / "encoder"), "a [MASK]")
    bert = load_pretrained(folder)
    without = BertTokenizer([token if token != "[MASK]" else "[unused0]" for token in VOCABULARY])
    for tokenizer, kind, message in (
        (None, CheckpointError, "Texts need a vocabulary"),
        (without, VocabularyError, r"a vocabulary with \[MASK\]"),
    ):
        with pytest.raises(kind, match=message):
            fill_mask(type(bert)(bert.encoder, tokenizer, bert.config, bert.report, bert.pretrainer), "a [MASK]")
    with pytest.raises(ValueError, match="bert must be what load_pretrained returned.*Received: a BertPretrainer"):
        fill_mask(bert.pretrainer, "a [MASK]")
    with pytest.raises(ValueError, match="top_k must be 1 or more. Received: top_k=0"):
        fill_mask(bert, "a [MASK]", top_k=0)


def test_the_command(folder, monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["keras-bert-kit", "fill-mask", str(folder), *words])
        cli.main()
        return capsys.readouterr().out

    text = "the team [MASK] the game"
    first, second = run(text, "--top-k", "2").splitlines()
    assert first == "the team wins the game" and second.startswith("  wins 0.9")
    (answer,) = json.loads(run(text, "--json", "--top-k", "2"))["texts"]
    assert answer["text"] == text and answer["filled"] == "the team wins the game"
    assert answer["masks"][0][0]["token"] == "wins" and len(answer["masks"][0]) == 2
    monkeypatch.setattr(sys, "stdin", [text + "\n", "a robot [MASK] able to play\n"])
    assert len(run("--top-k", "1").splitlines()) == 4
    monkeypatch.setattr(sys, "stdin", [])
    with pytest.raises(SystemExit, match="2"):
        run()
