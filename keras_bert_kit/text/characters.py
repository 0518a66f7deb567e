"""The table that takes a code point to what the rest of the tokenizer works with: symbols and their classes.

Normalisation (`normalizer.py`) and the vocabulary's alphabet meet here. Every character that occurs in the
vocabulary has a number, its *symbol*; all others share the symbol UNKNOWN, with which no piece is spelled. So a code
point becomes none, one or a few symbols, each with its class, in a single look-up.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.text.code_points import NUM_CODE_POINTS, CodePointTable, compress, look_up, unpack
from keras_bert_kit.text.normalizer import OTHER, SINGLE
from keras_bert_kit.text.vocabulary import CONTINUATION_PREFIX

# Symbol END stands for "no further character in this word"; no token is spelled with END or UNKNOWN.
END, UNKNOWN = 0, 1
CLASS_BITS, COUNT_BITS = 2, 5
# Code points beyond Unicode, for the special tokens: each counts as one character.
NUM_EXTRA = 256


class CharacterTable(NamedTuple):
    """What each code point becomes.

    table: CodePointTable of `value << 5 | count`. count is how many symbols the code point becomes (0 to 18). For 1 the
        value is `symbol << 2 | class` itself; for more it is where in `sequences` they are.
    sequences: int32 (n,), `symbol << 2 | class`, of the code points that become several.
    """

    table: CodePointTable
    sequences: np.ndarray


class Normalized(NamedTuple):
    """The normalised texts of a batch, one after the other.

    symbols: int32 (symbols,).
    classes: int32 (symbols,), SPACE, SINGLE or OTHER.
    sources: int32 (symbols,), the position of the code point that each was made of.
    row_splits: int64 (batch + 1,), where each text begins.
    """

    symbols: tf.Tensor
    classes: tf.Tensor
    sources: tf.Tensor
    row_splits: tf.Tensor


def alphabet_of(vocabulary, num_special_tokens):
    """Numbers the characters of a vocabulary and the special tokens. Returns a dict of code point to symbol."""
    code_points = sorted(ord(character) for character in set().union(*vocabulary))
    code_points += range(NUM_CODE_POINTS, NUM_CODE_POINTS + num_special_tokens)
    return {code_point: symbol for symbol, code_point in enumerate(code_points, start=UNKNOWN + 1)}


def build_character_table(alphabet, rules):
    """Composes normalisation, classes and the alphabet into one table.

    Args:
        alphabet: dict of code point to symbol.
        rules: the result of `normalization_rules`.
    """
    replacements, dropped_ranges, classes = rules
    codes = np.full(NUM_CODE_POINTS + NUM_EXTRA, UNKNOWN, np.int32)
    codes[np.fromiter(alphabet, np.int64)] = np.fromiter(alphabet.values(), np.int32)
    codes <<= CLASS_BITS
    codes[:NUM_CODE_POINTS] |= classes
    codes[NUM_CODE_POINTS:] |= SINGLE

    entries = codes << COUNT_BITS | 1
    sequences = [0]
    for code_point, text in replacements.items():
        if len(text) == 1:
            entries[code_point] = codes[ord(text)] << COUNT_BITS | 1
        else:
            entries[code_point] = len(sequences) << COUNT_BITS | len(text)
            sequences.extend(codes[ord(character)] for character in text)
    for first, last in dropped_ranges:
        entries[first : last + 1] = 0
    return CharacterTable(compress(entries), np.array(sequences, np.int32))


def spell(ids, alphabet, rules):
    """Spells every token that can be met in a text.

    A word is either one character of class SINGLE or a run of class OTHER, so a longer token with punctuation in it
    ("[unused1]") never occurs and is left out. Without those, no walk through the trie can run past the end of a
    word: the next character has no transition.

    Args:
        ids: dict of token to id.
        alphabet: dict of code point to symbol.
        rules: the result of `normalization_rules`.

    Returns:
        `(spellings, continues, tokens)`: list of lists of symbols; bool array, whether each is a "##" token; int array.
    """
    classes = rules[-1]
    spellings, continues, tokens = [], [], []
    for token, i in ids.items():
        body = token.removeprefix(CONTINUATION_PREFIX) or token
        code_points = [ord(character) for character in body]
        if len(body) == 1 or (classes[code_points] == OTHER).all():
            spellings.append([alphabet[code_point] for code_point in code_points])
            continues.append(body != token)
            tokens.append(i)
    return spellings, np.array(continues, bool), np.array(tokens, np.int32)


def normalize(code_points, row_splits, characters):
    """Looks up every code point of a batch.

    Args:
        code_points: int32 (code points,), the texts one after the other.
        row_splits: int64 (batch + 1,), where each begins.
        characters: CharacterTable of tensors.

    Returns:
        Normalized.
    """
    values, counts = unpack(look_up(characters.table, code_points), COUNT_BITS)

    def expand():
        before = tf.cumsum(tf.concat([[0], counts], axis=0))
        sources = tf.repeat(tf.range(tf.size(counts)), counts)
        value, several = tf.gather(values, sources), tf.gather(counts, sources) > 1
        place = value + tf.range(tf.size(sources)) - tf.gather(before, sources)
        sequence = tf.gather(characters.sequences, tf.where(several, place, 0))
        splits = tf.cast(tf.gather(before, row_splits), row_splits.dtype)
        return tf.where(several, sequence, value), sources, splits

    def keep():
        return values, tf.range(tf.size(values)), row_splits

    codes, sources, row_splits = tf.cond(tf.reduce_all(counts == 1), keep, expand)
    return Normalized(*unpack(codes, CLASS_BITS), sources, row_splits)
