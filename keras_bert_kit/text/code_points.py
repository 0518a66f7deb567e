"""Texts as code points, and tables with a number for each of Unicode's 1,114,112 code points.

The tables are small enough to be part of an exported graph. As Unicode tables usually do, they have two levels: the
code points are cut into pages of 256, and most pages are equal (all private-use characters, say, or all ideographs
that a vocabulary does not know). Only distinct pages are stored.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

PAGE_BITS = 8
NUM_CODE_POINTS = 0x110000


class CodePointTable(NamedTuple):
    """A two-level table; int32 arrays or tensors.

    pages: (code points / 256,), where in `entries` each page begins.
    entries: (distinct pages * 256,).
    """

    pages: np.ndarray
    entries: np.ndarray


def decode(texts):
    """Code points of a batch of texts, with a space at the end of each, which keeps the words of neighbours apart.

    Args:
        texts: string (batch,), UTF-8. Bytes that are not become U+FFFD.

    Returns:
        `(code_points, row_splits)`: int32 (code points,), all texts in a row; int64 (batch + 1,), where each begins.
    """
    texts = texts + " "
    utf8 = tf.io.decode_raw(tf.strings.reduce_join(texts), tf.uint8)

    def decode_ascii():  # bytes are code points: 20 times faster
        return tf.cast(utf8, tf.int32), tf.cumsum(tf.pad(tf.cast(tf.strings.length(texts), tf.int64), [[1, 0]]))

    def decode_unicode():
        decoded = tf.strings.unicode_decode(texts, "UTF-8")
        return decoded.values, decoded.row_splits

    return tf.cond(tf.reduce_all(utf8 < 128), decode_ascii, decode_unicode)


def compress(values):
    """Makes a CodePointTable of an int array with a value for each code point, a multiple of 256 in all."""
    place_of = {}
    pages = [place_of.setdefault(page.tobytes(), len(place_of)) for page in values.reshape(-1, 2**PAGE_BITS)]
    entries = np.frombuffer(b"".join(place_of), values.dtype)
    return CodePointTable(np.array(pages, np.int32) << PAGE_BITS, entries.astype(np.int32))


def look_up(table, code_points):
    """Values of int32 code points, in a graph: two reads each."""
    page, place = unpack(code_points, PAGE_BITS)
    return tf.gather(table.entries, tf.gather(table.pages, page) + place)


def unpack(packed, bits):
    """Splits `high << bits | low`. Returns `(high, low)`."""
    return tf.bitwise.right_shift(packed, bits), tf.bitwise.bitwise_and(packed, 2**bits - 1)
