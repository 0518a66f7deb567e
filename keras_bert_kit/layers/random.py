"""Random numbers for dropout, a few integer operations for each.

Drawing is a function of seed and place. So the backward pass draws the same numbers once more instead of keeping them,
and a resumed run draws those of the run that was killed.
"""

import numpy as np
import tensorflow as tf


def keep(shape, rate, seed):
    """Says for each place whether dropout keeps its value: true with probability 1 - `rate`.

    Args:
        shape: int32 tensor or list, less than 2³¹ places.
        rate: float or float32 scalar in [0, 1).
        seed: uint32 tensor (2,).

    Returns:
        Boolean tensor of that shape.
    """
    places = tf.bitcast(tf.range(tf.reduce_prod(shape)), tf.uint32)
    bits = _scramble(_scramble(places ^ seed[0]) + seed[1])
    fraction = tf.cast(_shift_right(bits, 8), tf.float32) * 2.0**-24  # 24 bits, as many as float32 holds
    return tf.reshape(fraction >= rate, shape)


def seed_of(state):
    """Makes the seed that `keep` takes of the state of a Keras `SeedGenerator`.

    Args:
        state: int tensor (2,), the layer's own number and the number of the draw, up to 64 bits each.

    Returns:
        uint32 tensor (2,).
    """
    state = tf.cast(state, tf.int64)
    low, high = tf.cast(state & 0xFFFFFFFF, tf.uint32), tf.cast(tf.bitwise.right_shift(state, 32), tf.uint32)
    first = _scramble(_scramble(low[0] + high[0]) ^ high[1])
    return tf.stack([first, _scramble(first + low[1])])


def _scramble(x):
    """Maps 32 bits to 32 bits, one to one, such that each bit of `x` changes about half of the bits of the result.

    Source: Chris Wellons 2018, "Prospecting for Hash Functions", https://nullprogram.com/blog/2018/07/31/ (lowbias32).
    """
    x = (x ^ _shift_right(x, 16)) * np.uint32(0x7FEB352D)
    x = (x ^ _shift_right(x, 15)) * np.uint32(0x846CA68B)
    return x ^ _shift_right(x, 16)


def _shift_right(x, bits):
    return tf.bitwise.right_shift(x, tf.constant(bits, tf.uint32))
