"""The table that takes a code point to what the rest of the tokenizer works with: symbols and their classes.

Normalisation (`normalizer.py`) and the vocabulary's alphabet meet here. Every character that occurs in the
vocabulary has a number, its *symbol*; all others share the symbol UNKNOWN, with which no piece is spelled. So a code
point becomes none, one or a few symbols, each with its class, in a single look-up.

The table has two levels, as Unicode tables usually have: 0x110000 code points are 4,352 pages of 256, and most pages
are equal (all ideographs that the vocabulary does not know, say). Only distinct pages are stored.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.text.normalizer import NUM_CODE_POINTS, OTHER, SINGLE, normalization_rules
from keras_bert_kit.text.vocabulary import CONTINUATION_PREFIX

# Symbol END stands for "no further character in this word"; no token is spelled with END or UNKNOWN.
END, UNKNOWN = 0, 1
PAGE_BITS, CLASS_BITS, COUNT_BITS = 8, 2, 2
PAGE_SIZE = 2**PAGE_BITS


class CharacterTable(NamedTuple):
    """What each code point becomes; all arrays int32.

    pages: (4353,), where in `entries` the page of 256 code points begins.
    entries: (distinct pages * 256,), `value << 2 | count`. count is how many symbols the code point becomes (0 to 3).
        For 1 the value is `symbol << 2 | class` itself; for more it is where in `sequences` they are.
    sequences: (n,), `symbol << 2 | class`, of the code points that become several.
    """

    pages: np.ndarray
    entries: np.ndarray
    sequences: np.ndarray


def alphabet_of(vocabulary, special_tokens):
    """Numbers the characters of a vocabulary.

    A special token counts as one character: a code point beyond Unicode stands for it in the text.

    Returns:
        dict of code point to symbol, from 2 on; frequent symbols have no particular place.
    """
    characters = sorted(set().union(*vocabulary))
    code_points = [ord(character) for character in characters]
    code_points += [NUM_CODE_POINTS + i for i in range(len(special_tokens))]
    return {code_point: symbol for symbol, code_point in enumerate(code_points, start=UNKNOWN + 1)}


def build_character_table(alphabet, lowercase, strip_accents):
    """Composes normalisation, classes and the alphabet into one table."""
    replacements, dropped_ranges, classes = normalization_rules(lowercase, strip_accents)
    num_entries = NUM_CODE_POINTS + PAGE_SIZE  # one page more, for the special tokens
    codes = np.full(num_entries, UNKNOWN, np.int32)
    codes[np.fromiter(alphabet, np.int64)] = np.fromiter(alphabet.values(), np.int32)
    codes <<= CLASS_BITS
    codes[:NUM_CODE_POINTS] |= classes
    codes[NUM_CODE_POINTS:] |= SINGLE

    entries = codes << COUNT_BITS | 1
    sequences = []
    for code_point, text in replacements.items():
        if len(text) == 1:
            entries[code_point] = codes[ord(text)] << COUNT_BITS | 1
        else:
            entries[code_point] = len(sequences) << COUNT_BITS | len(text)
            sequences.extend(codes[ord(character)] for character in text)
    for first, last in dropped_ranges:
        entries[first : last + 1] = 0
    distinct, page_of = np.unique(entries.reshape(-1, PAGE_SIZE), axis=0, return_inverse=True)
    return CharacterTable(
        pages=(page_of.ravel() * PAGE_SIZE).astype(np.int32),
        entries=distinct.ravel().astype(np.int32),
        sequences=np.array(sequences or [0], np.int32),
    )


def spell(ids, alphabet, lowercase, strip_accents):
    """Spells every token that can be met in a text.

    A word is either one character of class SINGLE or a run of class OTHER, so a longer token with punctuation in it
    ("[unused1]") never occurs and is left out. Without those, no walk through the trie can run past the end of a
    word: the next character has no transition.

    Args:
        ids: dict of token to id.
        alphabet: dict of code point to symbol.

    Returns:
        `(spellings, continues, tokens)`: list of int32 arrays; bool array, whether each is a "##" token; int array.
    """
    classes = normalization_rules(lowercase, strip_accents)[-1]
    spellings, continues, tokens = [], [], []
    for token, i in ids.items():
        body = token.removeprefix(CONTINUATION_PREFIX) or token
        code_points = np.frombuffer(body.encode("utf-32-le", "surrogatepass"), np.uint32)
        if len(body) == 1 or (classes[code_points] == OTHER).all():
            spellings.append([alphabet[code_point] for code_point in code_points.tolist()])
            continues.append(body != token)
            tokens.append(i)
    return spellings, np.array(continues), np.array(tokens)


def unpack(packed, bits):
    """Splits `high << bits | low`. Returns `(high, low)`."""
    return tf.bitwise.right_shift(packed, bits), tf.bitwise.bitwise_and(packed, 2**bits - 1)


def normalize(code_points, row_splits, table):
    """Looks up every code point of a batch.

    Args:
        code_points: int32 (code points,), the texts one after the other.
        row_splits: int64 (batch + 1,), where each begins.
        table: CharacterTable of int32 tensors.

    Returns:
        `(codes, row_splits)`: int32 (symbols,), `symbol << 2 | class`, and int64 (batch + 1,), where each text begins.
    """
    page, place = unpack(code_points, PAGE_BITS)
    values, counts = unpack(tf.gather(table.entries, tf.gather(table.pages, page) + place), COUNT_BITS)

    def expand():
        before = tf.cumsum(tf.concat([[0], counts], axis=0))
        source = tf.repeat(tf.range(tf.size(counts)), counts)
        value, several = tf.gather(values, source), tf.gather(counts, source) > 1
        place = value + tf.range(tf.size(source)) - tf.gather(before, source)
        sequence = tf.gather(table.sequences, tf.where(several, place, 0))
        return tf.where(several, sequence, value), tf.cast(tf.gather(before, row_splits), row_splits.dtype)

    return tf.cond(tf.reduce_all(counts == 1), lambda: (values, row_splits), expand)


def mark_special_tokens(code_points, special_tokens):
    """Puts one code point beyond Unicode in the place of each special token that is written out, as in "a [MASK]".

    The characters left over become NUL, which normalisation drops, so that nothing moves.

    Args:
        code_points: int32 (code points,).
        special_tokens: list of str, each between brackets, as all of BERT's are.
    """

    def mark():
        marked = code_points
        opened = tf.cast(tf.where(code_points == ord("["))[:, 0], tf.int32)
        padded = tf.pad(code_points, [[0, max(map(len, special_tokens))]])
        for i, token in enumerate(special_tokens):
            token_range = tf.range(len(token))
            written = tf.gather(padded, opened[:, None] + token_range) == [ord(character) for character in token]
            places = tf.boolean_mask(opened, tf.reduce_all(written, axis=1))[:, None] + token_range
            replacement = tf.broadcast_to([NUM_CODE_POINTS + i] + [0] * (len(token) - 1), tf.shape(places))
            marked = tf.tensor_scatter_nd_update(marked, places[..., None], replacement)
        return marked

    if not special_tokens:
        return code_points
    return tf.cond(tf.reduce_any(code_points == ord("[")), mark, lambda: code_points)
