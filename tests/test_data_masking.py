"""Masking: how many, which, behind what; whole words; packed rows; static and in `tf.data` the same."""

from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.data.masking import IGNORED_LABEL, mask_tokens, num_to_mask, vocabulary_tables
from keras_bert_kit.errors import VocabularyError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
WORDS, PIECES = 60, 35
VOCABULARY = [*SPECIAL, *(f"w{i}" for i in range(WORDS)), *(f"##p{i}" for i in range(PIECES))]
FIRST_PIECE = len(SPECIAL) + WORDS
TABLES = vocabulary_tables(
    SimpleNamespace(vocabulary=VOCABULARY, vocab_size=100, cls_id=CLS, sep_id=SEP, pad_id=PAD, mask_id=MASK)
)


def random_rows(num_rows, length, seed=0, packed=False):
    """Rows of random tokens, int32 (rows, length), and their sequence ids. A third of the tokens are pieces."""
    rng = np.random.default_rng(seed)
    ids, sequence_ids = np.zeros((2, num_rows, length), np.int32)
    for row in range(num_rows):
        start, number = 0, 1
        while start + 5 <= length:
            end = rng.integers(start + 5, length + 1)
            split = rng.integers(start + 2, end - 2)
            tokens = rng.integers(len(SPECIAL), FIRST_PIECE, end - start)
            pieces = rng.random(end - start) < 1 / 3
            tokens[pieces] = rng.integers(FIRST_PIECE, len(VOCABULARY), pieces.sum())
            tokens[[0, split - start, -1]] = CLS, SEP, SEP
            ids[row, start:end], sequence_ids[row, start:end] = tokens, number
            start, number = end if packed else length, number + 1
    return ids, sequence_ids


def mask(ids, sequence_ids, seed=(1, 2), **arguments):
    arguments = {"tables": TABLES, "masked_share": 0.15, "max_predictions": 20, **arguments}
    return [x.numpy() for x in mask_tokens(ids, sequence_ids, seed, **arguments)]


def chosen_tokens(positions, labels, shape):
    chosen = np.zeros(shape, bool)
    rows, places = np.nonzero(labels != IGNORED_LABEL)
    chosen[rows, positions[rows, places]] = True
    return chosen


def words_of(ids, sequence_ids):
    """Lists of places of each word of each (row, sequence), by a loop."""
    words = {}
    for row, (tokens, numbers) in enumerate(zip(ids, sequence_ids, strict=True)):
        for place, (token, number) in enumerate(zip(tokens, numbers, strict=True)):
            known = words.setdefault((row, number), [])
            if token in (PAD, CLS, SEP):
                continue
            if token >= FIRST_PIECE and known and known[-1][-1] == place - 1:
                known[-1].append(place)
            else:
                known.append([place])
    return {key: value for key, value in words.items() if key[1] > 0}


@pytest.mark.parametrize("whole_word", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_what_holds_for_every_row(whole_word, packed):
    ids, sequence_ids = random_rows(200, 96, packed=packed)
    masked, positions, labels = mask(ids, sequence_ids, whole_word=whole_word, max_predictions=9)
    assert masked.dtype == positions.dtype == labels.dtype == np.int32
    assert positions.shape == labels.shape == (200, 9 * sequence_ids.max())
    is_prediction = labels != IGNORED_LABEL
    assert (np.sort(~is_prediction, axis=1) == ~is_prediction).all(), "filler comes last"
    assert (positions[~is_prediction] == 0).all()
    steps = np.diff(positions, axis=1)[is_prediction[:, 1:]]
    assert (steps > 0).all(), "ascending"

    chosen = chosen_tokens(positions, labels, ids.shape)
    assert not chosen[np.isin(ids, [CLS, SEP, PAD])].any()
    assert (masked[~chosen] == ids[~chosen]).all()
    assert (labels[is_prediction] == ids[chosen]).all(), "labels are the tokens that were there"

    for (row, number), words in words_of(ids, sequence_ids).items():
        is_here = sequence_ids[row] == number
        limit = min(9, max(1, round(int(is_here.sum()) * 0.15)))
        taken = int((chosen[row] & is_here).sum())
        if not whole_word:
            assert taken == limit
            continue
        assert taken <= limit
        for word in words:
            of_word = chosen[row, word]
            assert of_word.all() or not of_word.any(), "words are never split"
            assert of_word.all() or len(word) > limit - taken, "a word that still fits is taken"


def test_number_is_googles():
    lengths = np.arange(1, 600)
    for share, limit in ((0.15, 20), (0.3, 5), (0.15, 76), (0.5, 1000)):
        expected = [min(limit, max(1, int(round(n * share)))) for n in range(1, 600)]
        assert num_to_mask(lengths, share, limit).numpy().tolist() == expected


def test_shares_of_mask_random_and_kept():
    """At least 100,000 tokens; bounds of 4.5 standard deviations."""
    ids, sequence_ids = random_rows(4000, 64, seed=3)
    ids[ids == SEP] = 7  # no special tokens but [CLS], so that shares are of all the rest
    masked, positions, labels = mask(ids, sequence_ids, max_predictions=64)
    tokens = int((sequence_ids > 0).sum())
    chosen = chosen_tokens(positions, labels, ids.shape)
    assert tokens > 100_000
    assert chosen.sum() / tokens == pytest.approx(0.15, abs=0.003)
    before, after = ids[chosen], masked[chosen]
    uniform = 0.1 / len(VOCABULARY)  # a random token may be the same, or [MASK]
    for share, expected in (
        ((after == MASK).mean(), 0.8 + uniform),
        ((after == before).mean(), 0.1 + uniform),
        (((after != MASK) & (after != before)).mean(), 0.1 - 2 * uniform),
    ):
        assert abs(share - expected) < 4.5 * np.sqrt(expected * (1 - expected) / len(before))
    counts = np.bincount(after[(after != MASK) & (after != before)], minlength=len(VOCABULARY))
    counts = np.delete(counts, MASK)
    deviations = (counts - counts.mean()) / np.sqrt(counts.mean())
    assert abs(deviations).max() < 5, "random tokens are even over the vocabulary"


@pytest.mark.parametrize("whole_word", [False, True])
def test_every_place_is_as_likely(whole_word):
    ids, sequence_ids = random_rows(1, 40, seed=5)
    ids[:, 1:12] = 10  # single words, among others
    rows = 4000
    masked, positions, labels = mask(np.repeat(ids, rows, 0), np.repeat(sequence_ids, rows, 0), whole_word=whole_word)
    counts = chosen_tokens(positions, labels, (rows, ids.shape[1])).sum(axis=0)[1:12]
    deviations = (counts - counts.mean()) / np.sqrt(counts.mean())
    assert counts.mean() > 300
    assert abs(deviations).max() < 4.5


def test_whole_words_are_taken_as_googles_loop_takes_them():
    """How often each word is taken, and how many tokens in all, against the loop itself; sizes are very different."""
    sizes = np.array([2, 3, 4, 6, 5, 2, 3, 7, 4, 9])
    starts = 1 + np.cumsum(sizes) - sizes
    ids = np.array([[CLS, *(t for size in sizes for t in [8, *[FIRST_PIECE] * (size - 1)]), SEP]], np.int32)
    limit, rows = 10, 5000
    arguments = {"whole_word": True, "masked_share": 0.9, "max_predictions": limit}
    _, positions, labels = mask(np.repeat(ids, rows, 0), np.ones((rows, ids.shape[1]), np.int32), **arguments)
    ours = chosen_tokens(positions, labels, (rows, ids.shape[1]))[:, starts]

    rng = np.random.default_rng(0)
    loops = np.zeros((rows, len(sizes)), bool)
    for taken in loops:
        for word in rng.permutation(len(sizes)):
            taken[word] = (sizes * taken).sum() + sizes[word] <= limit
    for a, b in ((ours, loops), (ours @ sizes == limit, loops @ sizes == limit)):
        share = (a.mean(axis=0) + b.mean(axis=0)) / 2
        assert (share > 0.01).all()
        assert (abs(a.mean(axis=0) - b.mean(axis=0)) < 4.5 * np.sqrt(2 * share * (1 - share) / rows)).all()


def test_the_seed_decides():
    ids, sequence_ids = random_rows(8, 64)
    first, again, other = (mask(ids, sequence_ids, seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert (first[1] != other[1]).any()


def test_in_tf_data_as_eagerly():
    ids, sequence_ids = random_rows(16, 64, packed=True)

    def mask_batch(ids, sequence_ids):
        return mask_tokens(ids, sequence_ids, (1, 2), tables=TABLES, max_predictions=5, whole_word=True)

    dataset = tf.data.Dataset.from_tensor_slices((ids, sequence_ids)).batch(16).map(mask_batch)
    for found, expected in zip(next(iter(dataset)), mask_batch(ids, sequence_ids), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_number_of_columns_is_given():
    ids, sequence_ids = random_rows(4, 12)
    for num_predictions in (3, 12, 30):
        masked, positions, labels = mask(ids, sequence_ids, num_predictions=num_predictions)
        assert positions.shape == labels.shape == (4, num_predictions)


def test_nothing_to_mask():
    masked, positions, labels = mask([[CLS, SEP, SEP, PAD]], [[1, 1, 1, 0]], max_predictions=2)
    assert masked.tolist() == [[CLS, SEP, SEP, PAD]]
    assert (positions.tolist(), labels.tolist()) == ([[0, 0]], [[IGNORED_LABEL] * 2])
    empty = np.zeros((0, 8), np.int32)
    assert [x.shape for x in mask(empty, empty, max_predictions=2)] == [(0, 8), (0, 2), (0, 2)]


def test_a_vocabulary_without_mask_is_refused():
    with pytest.raises(VocabularyError, match=r"needs \[MASK\] in the vocabulary. Received: 4 tokens without it"):
        vocabulary_tables(SimpleNamespace(mask_id=None, vocab_size=4))
