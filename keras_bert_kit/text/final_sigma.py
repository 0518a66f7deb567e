"""Python's rule for the Greek capital sigma, which Google's tokenizer follows: "ς" at the end of a word, else "σ".

The end of a word is defined over the characters around (Unicode, SpecialCasing.txt, Final_Sigma): a cased letter
comes before, and none comes after, apart from case-ignorable characters such as apostrophes and accents.
"""

import functools

import numpy as np
import tensorflow as tf

from keras_bert_kit.text.code_points import NUM_CODE_POINTS, compress, look_up
from keras_bert_kit.text.normalizer import GOOGLE, normalize_character

CAPITAL_SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
_UNCASED, _CASED, _IGNORED = 0, 1, 2


@functools.cache
def casing_table():
    """CodePointTable: how each character counts around a sigma, found out by lower-casing one beside it.

    What the tokenizer drops before it lower-cases is ignored too.
    """
    classes = np.full(NUM_CODE_POINTS, _UNCASED, np.int8)
    for code_points in (range(0x20000), range(0xE0000, 0xE1000)):
        for code_point in code_points:
            character = chr(code_point)
            if f"{character}Σ".lower()[-1] == "ς":
                classes[code_point] = _CASED
            elif f"a{character}Σ".lower()[-1] == "ς" or not normalize_character(character, False, False, GOOGLE):
                classes[code_point] = _IGNORED
    return compress(classes)


def lower_final_sigmas(code_points, table):
    """Replaces each capital sigma that ends a word by the small final one.

    Args:
        code_points: int32 (code points,); the texts of a batch, each with a space at the end.
        table: `casing_table()` as tensors.
    """

    def lower():
        casing = look_up(table, code_points)
        counts = casing != _IGNORED
        # `cased[k]` belongs to the k-th character that counts, from 1 on; before the first one comes nothing.
        cased = tf.pad(tf.boolean_mask(casing, counts) == _CASED, [[1, 1]])
        rank = tf.cumsum(tf.cast(counts, tf.int32))
        before, after = tf.gather(cased, tf.maximum(rank - 1, 0)), tf.gather(cased, rank + 1)
        return tf.where((code_points == CAPITAL_SIGMA) & before & ~after, FINAL_SIGMA, code_points)

    return tf.cond(tf.reduce_any(code_points == CAPITAL_SIGMA), lower, lambda: code_points)
