"""Words and pieces: from the symbols of a whole batch to token ids.

All texts of a batch lie one after the other in one flat array, each followed by a space, so that neither words nor
array operations need to know where one text ends. Two steps:

1. `split_words` finds the words: a SINGLE character alone, or a run of OTHER characters.
2. `match_pieces` cuts each word into the longest pieces that the vocabulary has, from left to right (greedy
   longest-match-first, Wu et al. 2016): "playing" -> "play", "##ing". A word that cannot be cut to its end is [UNK]
   as a whole.

For step 2 every word of the batch walks through the trie of the vocabulary at the same time, one character a step:
the position and the trie node of each are elements of two vectors. Every few steps the words that are done leave the
vectors, so the work is about one step a character, and the number of rounds depends on the longest word alone.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_bert_kit.text.characters import END
from keras_bert_kit.text.normalizer import OTHER, SPACE
from keras_bert_kit.text.trie import CONTINUATION_ROOT, NONE, NOWHERE, WORD_ROOT

# More steps before words leave: fewer operations, but more of them on words that are done. 4 is fastest.
STEPS_PER_ROUND = 4


class Words(NamedTuple):
    """The words of a batch, as positions in the flat array of symbols; int32 (words,).

    starts: position of the first symbol.
    ends: position of the last symbol.
    following: int32 (symbols,), the symbol where it continues the word of the symbol before it, END elsewhere.
    """

    starts: tf.Tensor
    ends: tf.Tensor
    following: tf.Tensor


def split_words(symbols, classes):
    """Finds the words.

    Args:
        symbols: int32 (symbols,).
        classes: int32 (symbols,), SPACE, SINGLE or OTHER.

    Returns:
        Words.
    """
    other = classes == OTHER
    inside = tf.concat([[False], other[1:] & other[:-1]], axis=0)[: tf.size(symbols)]
    last = ~tf.concat([inside[1:], [False]], axis=0)[: tf.size(symbols)]
    visible = classes != SPACE
    return Words(
        starts=positions_of(visible & ~inside),
        ends=positions_of(visible & last),
        following=tf.where(inside, symbols, END),
    )


def match_pieces(symbols, words, acceptable, trie, unknown_id):
    """Cuts words into pieces.

    Args:
        symbols: int32 (symbols,).
        words: Words.
        acceptable: bool (words,), false for words that are too long to be cut.
        trie: Trie of int32 tensors.
        unknown_id: int, the id of [UNK], which stands for words that cannot be cut and for words too long.

    Returns:
        int32 (symbols,): at the position where a piece starts its id, NONE elsewhere.
    """
    word = positions_of(acceptable)
    start = tf.gather(words.starts, word)
    piece_starts, piece_ids, piece_words = _walk(word, start, symbols, words.following, trie)

    # A word with one impossible piece loses all of them and becomes [UNK]; so does a word that is too long.
    impossible = tf.boolean_mask(piece_words, piece_ids == NONE)
    failed = tf.tensor_scatter_nd_update(~acceptable, impossible[:, None], tf.ones_like(impossible, tf.bool))
    kept = positions_of(~tf.gather(failed, piece_words))
    unknown_starts = tf.boolean_mask(words.starts, failed)
    starts = tf.concat([tf.gather(piece_starts, kept), unknown_starts], axis=0)
    ids = tf.concat([tf.gather(piece_ids, kept), tf.fill(tf.shape(unknown_starts), unknown_id)], axis=0)
    return tf.tensor_scatter_nd_update(tf.fill(tf.shape(symbols), NONE), starts[:, None], ids)


def _walk(word, start, symbols, following, trie):
    """Walks all words through the trie. Returns start, id (or NONE) and word of every piece, in no useful order."""
    following = tf.pad(following, [[0, STEPS_PER_ROUND]], constant_values=END)

    def play_round(i, word, start, position, node, best_id, best_end, pieces):
        symbol = tf.gather(symbols, position)
        for _ in range(STEPS_PER_ROUND):
            child = tf.gather(trie.base, node) + symbol
            node = tf.where(tf.gather(trie.parent, child) == node, child, NOWHERE)
            token = tf.gather(trie.token, node)
            best_id = tf.where(token != NONE, token, best_id)
            best_end = tf.where(token != NONE, position, best_end)
            position += 1
            symbol = tf.gather(following, position)
        is_going = (node != NOWHERE) & (symbol != END)

        # Pieces that cannot grow any more are written down.
        done = positions_of(~is_going)
        done_id, done_end, done_word = (tf.gather(state, done) for state in (best_id, best_end, word))
        new_pieces = (tf.gather(start, done), done_id, done_word)
        pieces = [array.write(i, values) for array, values in zip(pieces, new_pieces, strict=True)]

        # Their words go on behind them, if anything is left.
        next_start = done_end + 1
        rest = positions_of((done_id != NONE) & (tf.gather(following, next_start) != END))
        next_start = tf.gather(next_start, rest)
        none = tf.fill(tf.shape(rest), NONE)

        going = positions_of(is_going)
        return (
            i + 1,
            tf.concat([tf.gather(word, going), tf.gather(done_word, rest)], axis=0),
            tf.concat([tf.gather(start, going), next_start], axis=0),
            tf.concat([tf.gather(position, going), next_start], axis=0),
            tf.concat([tf.gather(node, going), tf.fill(tf.shape(rest), CONTINUATION_ROOT)], axis=0),
            tf.concat([tf.gather(best_id, going), none], axis=0),
            tf.concat([tf.gather(best_end, going), none], axis=0),
            pieces,
        )

    none = tf.fill(tf.shape(word), NONE)
    root = tf.fill(tf.shape(word), WORD_ROOT)
    array = tf.TensorArray(tf.int32, 0, dynamic_size=True, infer_shape=False, element_shape=[None])
    pieces = [array.write(0, none[:0])] * 3  # one empty entry each, since there may be no word at all
    *_, pieces = tf.while_loop(
        lambda i, word, *_: tf.size(word) > 0,
        play_round,
        (1, word, start, start, root, none, none, pieces),
        shape_invariants=(tf.TensorShape([]), *[tf.TensorShape([None])] * 6, [tf.TensorShape(None)] * 3),
    )
    return [array.concat() for array in pieces]


def positions_of(mask):
    """Where a rank-1 mask is true, int32."""
    return tf.cast(tf.where(mask)[:, 0], tf.int32)
