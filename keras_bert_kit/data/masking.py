"""Masked language modelling: which tokens of a sequence are hidden, and behind what.

    [CLS] my dog is hairy [SEP]                 tokens
              dog                               15 % are chosen, never [CLS], [SEP] or [PAD]
    [CLS] my [MASK] is hairy [SEP]              8 of 10 become [MASK], 1 of 10 a random token, 1 of 10 stays

All of it is in TensorFlow ops over whole batches, so the same function masks once and for all when data are created
(static) and anew each time that a batch is read (dynamic, in `tf.data`). Random numbers depend on a seed alone.

Reference: Devlin et al. 2018, section 3.1; google-research/bert `create_pretraining_data.py`.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import VocabularyError
from keras_bert_kit.text.vocabulary import CONTINUATION_PREFIX

IGNORED_LABEL = -100
"""Label of places in `positions` that hold no prediction."""

_MASK_SHARE, _KEPT_SHARE = 0.8, 0.1


class VocabularyTables(NamedTuple):
    """What masking needs to know of a vocabulary.

    maskable: bool (vocabulary,), false for [CLS], [SEP] and [PAD].
    continues: bool (vocabulary,), true for pieces that continue a word ("##ing").
    mask_id: int.
    """

    maskable: np.ndarray
    continues: np.ndarray
    mask_id: int


def vocabulary_tables(tokenizer) -> VocabularyTables:
    """Makes the tables for a `BertTokenizer`.

    Raises:
        VocabularyError: the vocabulary has no [MASK].
    """
    if tokenizer.mask_id is None:
        raise VocabularyError(
            f"Pre-training needs [MASK] in the vocabulary. Received: {tokenizer.vocab_size} tokens without it. "
            f"Add it at the end of vocab.txt."
        )
    maskable = np.ones(tokenizer.vocab_size, bool)
    maskable[[tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id]] = False
    continues = np.array([token.startswith(CONTINUATION_PREFIX) for token in tokenizer.vocabulary])
    return VocabularyTables(maskable, continues, tokenizer.mask_id)


def mask_tokens(
    word_ids,
    sequence_ids,
    seed,
    *,
    tables,
    masked_share=0.15,
    max_predictions=20,
    whole_word=False,
    num_predictions=None,
):
    """Hides tokens of a batch, and says which.

    Of a sequence of n tokens, special ones counted, `num_to_mask(n)` are chosen. Words are gone through in random
    order, and each is taken that still fits; a word is a single token, or with `whole_word` a token with the "##"
    pieces behind it, so that whole words may add up to a little less. Each chosen token is then replaced on its own
    account.

    Args:
        word_ids: int32 (batch, sequence).
        sequence_ids: int32 (batch, sequence), 0 on padding. Elsewhere 1, so that an input mask will do, or in rows of
            packed sequences 1, 2, … in ascending order.
        seed: int (2,), the state of all random numbers: the same seed and batch, the same masks.
        tables: VocabularyTables.
        masked_share: float, share of the tokens to predict.
        max_predictions: int, limit a sequence (not a row).
        whole_word: bool, whether words are hidden as a whole.
        num_predictions: int or scalar tensor, P. Default: `max_predictions` times the largest number of sequences in a
            row.

    Returns:
        word_ids: int32 (batch, sequence), masked.
        positions: int32 (batch, P), places of the predictions in the row, ascending, then 0.
        labels: int32 (batch, P), the tokens that were there, then -100.
    """
    word_ids, sequence_ids = tf.cast(word_ids, tf.int32), tf.cast(sequence_ids, tf.int32)
    order_seed, change_seed, word_seed = tf.unstack(tf.random.split(seed, 3))
    candidates = tf.gather(tables.maskable, word_ids) & (sequence_ids > 0)
    words = _words(word_ids, candidates, sequence_ids, tables.continues if whole_word else None)
    chosen = _choose(words, candidates, sequence_ids, order_seed, masked_share, max_predictions)

    draw = tf.random.stateless_uniform(tf.shape(word_ids), change_seed)
    random_ids = tf.random.stateless_uniform(tf.shape(word_ids), word_seed, 0, len(tables.maskable), tf.int32)
    changed = tf.where(draw < _MASK_SHARE + _KEPT_SHARE, word_ids, random_ids)
    changed = tf.where(draw < _MASK_SHARE, tables.mask_id, changed)

    if num_predictions is None:
        num_predictions = max_predictions * tf.reduce_max(tf.concat([[1], tf.reshape(sequence_ids, [-1])], axis=0))
    positions, is_prediction = _positions_of(chosen, num_predictions)
    labels = tf.where(is_prediction, tf.gather(word_ids, positions, batch_dims=1), IGNORED_LABEL)
    return tf.where(chosen, changed, word_ids), positions, labels


def num_to_mask(num_tokens, masked_share, max_predictions):
    """Tokens to predict in sequences of these lengths: the share, rounded, at least 1, at most `max_predictions`.

    Args:
        num_tokens: int tensor or array, [CLS] and [SEP] counted.
        masked_share: float.
        max_predictions: int.

    Returns:
        int32 tensor of the same shape.
    """
    share = tf.cast(tf.round(tf.cast(num_tokens, tf.float64) * masked_share), tf.int32)
    return tf.minimum(max_predictions, tf.maximum(1, share))


def _words(word_ids, candidates, sequence_ids, continues):
    """Number of the word of each token, int32 (batch, sequence): ascending over the batch, words of one row after the
    other. Without `continues` each token is a word."""
    starts = tf.ones_like(candidates)
    if continues is not None:
        after_candidate = tf.pad(candidates[:, :-1], [[0, 0], [1, 0]])  # "##" behind [SEP] has lost its word's start
        same_sequence = sequence_ids == tf.pad(sequence_ids[:, :-1], [[0, 0], [1, 0]])
        starts = ~(tf.gather(continues, word_ids) & after_candidate & same_sequence)
    return tf.reshape(tf.cumsum(tf.cast(tf.reshape(starts, [-1]), tf.int32)) - 1, tf.shape(word_ids))


def _choose(words, candidates, sequence_ids, seed, masked_share, max_predictions):
    """Which tokens are to be predicted, bool (batch, sequence).

    Words are taken in random order as long as they fit. The loop does that for all sequences at once: a round takes
    every word up to the first that does not fit. That one is passed over, and the next round goes on behind it; what
    does not fit now never will. One token a word needs one round, whole words two or three.
    """
    shape = tf.shape(words)
    num_words = tf.reduce_max(tf.concat([[-1], tf.reshape(words, [-1])], axis=0)) + 1
    num_sequences = tf.reduce_max(tf.concat([[0], tf.reshape(sequence_ids, [-1])], axis=0)) + 1
    sequences = tf.reshape(sequence_ids + num_sequences * tf.range(shape[0])[:, None], [-1])

    # Per word: size, sequence and room in it.
    words, candidates = tf.reshape(words, [-1]), tf.reshape(candidates, [-1])
    size = tf.math.unsorted_segment_sum(tf.cast(candidates, tf.int32), words, num_words)
    sequence = tf.math.unsorted_segment_max(sequences, words, num_words)
    lengths = tf.math.bincount(sequences, minlength=num_sequences * shape[0])
    room = num_to_mask(lengths, masked_share, max_predictions)

    # Random order within each sequence.
    draw = tf.random.stateless_uniform([num_words], seed, dtype=tf.float64)
    order = tf.argsort(tf.cast(sequence, tf.float64) + draw)
    size, sequence = tf.gather(size, order), tf.gather(sequence, order)
    words_before = tf.cumsum(tf.math.bincount(sequence, minlength=tf.size(room)), exclusive=True)
    first = tf.gather(words_before, sequence)  # where the sequence of each word starts

    def take_what_fits(taken, undecided, room):
        undecided &= size <= tf.gather(room, sequence)
        total = tf.cumsum(tf.where(undecided, size, 0))
        total -= tf.gather(tf.pad(total, [[1, 0]]), first)
        fits = undecided & (total <= tf.gather(room, sequence))
        used = tf.math.unsorted_segment_sum(tf.where(fits, size, 0), sequence, tf.size(room))
        return taken | fits, undecided & ~fits, room - used

    taken, _, _ = tf.while_loop(
        lambda taken, undecided, room: tf.reduce_any(undecided),
        take_what_fits,
        (tf.zeros_like(size, tf.bool), size > 0, room),
    )
    taken = tf.scatter_nd(order[:, None], taken, [num_words])
    return tf.reshape(tf.gather(taken, words) & candidates, shape)


def _positions_of(chosen, num_predictions):
    """Where a mask (batch, sequence) is true, ascending: positions (batch, P), and which of them are not filler."""
    length = tf.shape(chosen)[1]
    positions = tf.sort(tf.where(chosen, tf.range(length), length))
    positions = tf.pad(positions, [[0, 0], [0, tf.maximum(num_predictions - length, 0)]], constant_values=2**31 - 1)
    positions = positions[:, :num_predictions]
    is_prediction = positions < length
    return tf.where(is_prediction, positions, 0), is_prediction
