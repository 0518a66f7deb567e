"""Packing sequences into rows: all of them, once, with little padding, the same way each time, fast."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_kit.data.packing import pack_sequences


def padding_share(lengths, rows, row_length):
    return 1 - sum(lengths) / (len(rows) * row_length)


@given(st.lists(st.integers(1, 20)), st.integers(20, 30))
def test_every_sequence_is_in_one_row_that_it_fits(lengths, row_length):
    rows = pack_sequences(lengths, row_length)
    assert sorted(number for row in rows for number in row) == list(range(len(lengths)))
    assert all(sum(lengths[number] for number in row) <= row_length for row in rows)
    assert all(row == sorted(row) for row in rows) and rows == sorted(rows)
    open_rows = sum(sum(lengths[number] for number in row) <= row_length / 2 for row in rows)
    assert open_rows <= 1  # two such rows would have been one


def test_known_rows():
    assert pack_sequences([], 8) == []
    assert pack_sequences([8, 8], 8) == [[0], [1]]
    assert pack_sequences([3, 5, 2, 4, 1], 8) == [[0, 1], [2, 3, 4]]
    assert pack_sequences(np.array([6, 5, 2, 3]), 8) == [[0, 2], [1, 3]]  # each into the fullest row with room


@pytest.mark.parametrize(
    "lengths",
    [
        np.clip(np.random.default_rng(0).geometric(1 / 100, 20_000) + 4, 5, 512),  # sentences and paragraphs
        np.where(  # Google's pairs: most are cut to the full length, a tenth is short, documents end anywhere
            np.random.default_rng(1).random(20_000) < 0.2, np.random.default_rng(2).integers(5, 513, 20_000), 512
        ),
        np.random.default_rng(3).integers(5, 129, 20_000),
    ],
    ids=["geometric", "pairs", "short"],
)
def test_little_padding(lengths):
    assert padding_share(lengths, pack_sequences(lengths, 512), 512) < 0.02


def test_a_hundred_thousand_lengths_in_seconds_and_the_same_again():
    lengths = np.clip(np.random.default_rng(0).geometric(1 / 60, 100_000) + 4, 5, 512)
    began = time.process_time()
    rows = pack_sequences(lengths, 512)
    assert time.process_time() - began < 3  # 0.3 s, with room for a busy machine
    assert pack_sequences(lengths.tolist(), 512) == rows


@pytest.mark.parametrize("length", [0, -1, 9])
def test_lengths_that_fit_no_row_are_refused(length):
    with pytest.raises(ValueError, match=f"from 1 to row_length tokens. Received: row_length=8, .*such as {length}. "):
        pack_sequences([3, length], 8)
