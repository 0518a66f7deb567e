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
        num_predictions: int or scalar tensor, P, enough for every row. Default: `max_predictions` times the largest
            number of sequences in a row.

    Returns:
        word_ids: int32 (batch, sequence), masked.
        positions: int32 (batch, P), places of the predictions in the row, ascending, then 0.
        labels: int32 (batch, P), the tokens that were there, then -100.
    """
    word_ids, sequence_ids = tf.cast(word_ids, tf.int32), tf.cast(sequence_ids, tf.int32)
    order_seed, replacement_seed = tf.unstack(tf.random.split(seed, 2))
    num_sequences = tf.reduce_max(tf.concat([[1], tf.reshape(sequence_ids, [-1])], axis=0))
    sequences = sequence_ids - 1 + num_sequences * tf.range(tf.shape(word_ids)[0])[:, None]  # numbered over the batch
    is_token = tf.cast(sequence_ids > 0, tf.int32)
    lengths = tf.math.unsorted_segment_sum(is_token, sequences, num_sequences * tf.shape(word_ids)[0])
    room = num_to_mask(lengths, masked_share, max_predictions)

    places = tf.where(tf.gather(tables.maskable, word_ids) & (sequence_ids > 0))  # (T, 2): row and position
    sequences = tf.gather_nd(sequences, places)
    if whole_word:
        words = _words(places, sequences, tf.gather(tables.continues, tf.gather_nd(word_ids, places)))
        chosen = _choose_words(words, sequences, room, order_seed)
    else:
        chosen = _choose_tokens(sequences, room, max_predictions, order_seed)
    places = places[chosen]
    originals = tf.gather_nd(word_ids, places)
    masked_ids = tf.tensor_scatter_nd_update(word_ids, places, _replacements(originals, tables, replacement_seed))

    if num_predictions is None:
        num_predictions = max_predictions * num_sequences
    shape = [None, num_predictions] if isinstance(num_predictions, int) else tf.stack([-1, num_predictions])
    by_row = tf.RaggedTensor.from_value_rowids(originals, places[:, 0], tf.shape(word_ids, tf.int64)[0], validate=False)
    positions = by_row.with_values(tf.cast(places[:, 1], tf.int32))
    return masked_ids, positions.to_tensor(0, shape=shape), by_row.to_tensor(IGNORED_LABEL, shape=shape)


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


def _replacements(originals, tables, seed):
    """What stands in the place of the chosen tokens: of 10, 8 become [MASK], 1 a random token, 1 stays."""
    kind_seed, random_seed = tf.unstack(tf.random.split(seed, 2))
    kind = tf.random.stateless_uniform(tf.shape(originals), kind_seed)
    random_ids = tf.random.stateless_uniform(tf.shape(originals), random_seed, 0, tables.maskable.shape[0], tf.int32)
    replaced = tf.where(kind < _MASK_SHARE + _KEPT_SHARE, originals, random_ids)
    return tf.where(kind < _MASK_SHARE, tables.mask_id, replaced)


def _choose_tokens(sequences, room, max_predictions, seed):
    """Each token draws a number; those with the largest numbers of their sequence are chosen.

    Args:
        sequences: int32 (T,), ascending, the sequence of each token that may be masked.
        room: int32 (sequences,), how many to choose in each.
        max_predictions: int, limit of `room`.
        seed: int (2,).

    Returns:
        bool (T,).
    """
    draws = tf.random.stateless_uniform(tf.shape(sequences), seed, dtype=tf.float64)  # float32 would have ties
    matrix = _by_sequence(draws, sequences, room).to_tensor(-1.0)
    largest = tf.math.top_k(matrix, tf.minimum(max_predictions, tf.shape(matrix)[1])).values
    largest = tf.pad(largest, [[0, 0], [0, 1]], constant_values=-1.0)  # a sequence may have too few tokens
    smallest_chosen = tf.gather(largest, tf.minimum(room, tf.shape(largest)[1]) - 1, batch_dims=1)
    return draws >= tf.gather(smallest_chosen, sequences)


def _choose_words(words, sequences, room, seed):
    """Words are gone through in random order, and each that still fits is taken.

    The loop does that for all sequences at once: a round takes every word up to the first that does not fit. What does
    not fit now never will, so the next round goes on without it. Two or three rounds are enough.

    Args:
        words: int32 (T,), the word of each token that may be masked, counted over the batch.
        sequences, room, seed: as above.

    Returns:
        bool (T,).
    """
    sizes = tf.math.bincount(words)
    of_words = _by_sequence(sizes, tf.math.segment_max(sequences, words), room)
    draws = tf.random.stateless_uniform(tf.shape(sizes), seed, dtype=tf.float64)
    order = tf.argsort(of_words.with_values(draws).to_tensor(2.0))  # (sequences, words of the longest)
    sizes = tf.gather(of_words.to_tensor(0), order, batch_dims=1)

    def take_what_fits(taken, undecided, room):
        offered = tf.where(undecided, sizes, 0)
        fits = undecided & (tf.cumsum(offered, axis=1) <= room)
        room -= tf.reduce_sum(tf.where(fits, sizes, 0), axis=1, keepdims=True)
        return taken | fits, undecided & ~fits & (sizes <= room), room

    room = room[:, None]
    taken, _, _ = tf.while_loop(
        lambda taken, undecided, room: tf.reduce_any(undecided),
        take_what_fits,
        (tf.zeros_like(sizes, tf.bool), (sizes > 0) & (sizes <= room), room),
    )
    # Back from the random order to that of the text.
    places = order + tf.shape(order)[1] * tf.range(tf.shape(order)[0])[:, None]
    taken = tf.math.unsorted_segment_max(tf.cast(taken, tf.int32), places, tf.size(order))
    taken = tf.RaggedTensor.from_tensor(tf.reshape(taken, tf.shape(order)), of_words.row_lengths()).values
    return tf.gather(taken, words) > 0


def _words(places, sequences, continues):
    """The word of each token, counted over the batch, int32 (T,). A "##" piece behind [CLS] or [SEP] has lost the start
    of its word, and starts one itself."""
    rows, positions = places[:, 0], places[:, 1]
    follows = (rows[1:] == rows[:-1]) & (positions[1:] == positions[:-1] + 1) & (sequences[1:] == sequences[:-1])
    starts = ~(continues & tf.concat([[False], follows], axis=0)[: tf.size(continues)])
    return tf.cumsum(tf.cast(starts, tf.int32)) - 1


def _by_sequence(values, sequences, room):
    """The values of each sequence as a row of a ragged tensor."""
    return tf.RaggedTensor.from_value_rowids(values, sequences, tf.size(room), validate=False)
