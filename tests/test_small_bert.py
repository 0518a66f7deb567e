"""The kit's own small BERT in `saved_models/`: loadable, with words that fit, and every source named."""

import csv
from pathlib import Path

import pytest

import keras_bert_kit as kbk

SMALL_BERT = Path(__file__).resolve().parents[1] / "saved_models" / "small_bert"


@pytest.fixture(scope="module")
def bert():
    return kbk.load_pretrained(SMALL_BERT / "1")


def test_it_is_whole_and_has_both_heads(bert):
    assert bert.pretrainer is not None and bert.pretrainer.next_sentence
    assert bert.tokenizer.vocab_size == bert.config.vocab_size == 8192
    assert bert.config.hidden_dropout_prob == 0.1  # for fine-tuning


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the president of the united [MASK] spoke to the congress.", {"states"}),
        ("he opened the door and went [MASK] the room.", {"into", "to", "in", "through", "from", "out", "across"}),
    ],
)
def test_it_fills_in_words_that_fit(bert, text, words):
    ((guesses,),) = kbk.fill_mask(bert, text)
    assert words & {token for token, _ in guesses}, guesses


def test_its_card_names_every_source():
    with open(SMALL_BERT / "corpus.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) > 100 and all(row["sha256"] and row["commit"] and row["repository"] for row in rows)
    assert f"{len(rows)} files" in (SMALL_BERT / "README.md").read_text(encoding="utf-8")
