"""Padding is left out, and nothing else changes."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.layers import TokenLayout

MASK = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [1, 0, 1, 1, 1], [0, 1, 1, 0, 0]]) > 0  # holes and an empty row too


@pytest.mark.parametrize("multiple_of", [1, 4, 64])
def test_tokens_come_first_in_their_order(multiple_of):
    x = np.arange(20, dtype="int32").reshape(4, 5)
    flat = TokenLayout.without_padding(tf.constant(MASK), multiple_of).flat(tf.constant(x)).numpy()
    assert flat.tolist()[: MASK.sum()] == x[MASK].tolist()
    assert len(flat) == {1: 9, 4: 12, 64: 20}[multiple_of] and len(set(flat.tolist())) == len(flat)


@pytest.mark.parametrize("multiple_of", [1, 4, 64])
def test_there_and_back_with_gradients(multiple_of):
    x = tf.random.stateless_normal((4, 5, 3), [1, 2])
    upstream = tf.random.stateless_normal((4, 5, 3), [3, 4]) * MASK[..., None]
    layout = TokenLayout.without_padding(tf.constant(MASK), multiple_of)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        flat = layout.flat(x)
        padded = layout.padded(flat)
    np.testing.assert_array_equal(padded.numpy()[MASK], x.numpy()[MASK])
    np.testing.assert_array_equal(tape.gradient(padded, x, upstream), upstream)
    np.testing.assert_array_equal(tape.gradient(padded, flat, upstream), layout.flat(upstream))


def test_padding_gets_no_gradient():
    x = tf.ones((4, 5, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(TokenLayout.without_padding(tf.constant(MASK)).flat(x))
    np.testing.assert_array_equal(tape.gradient(total, x), np.repeat(MASK[..., None], 2, axis=-1))


def test_with_padding_it_is_a_reshape():
    x = tf.random.stateless_normal((4, 5, 3), [1, 2])
    layout = TokenLayout(4, 5)
    np.testing.assert_array_equal(layout.flat(x), tf.reshape(x, (20, 3)))
    np.testing.assert_array_equal(layout.padded(layout.flat(x)), x)


@pytest.mark.parametrize("tokens", [0, 1, 4, 5])
def test_filled_up_to_one_of_a_few_lengths(tokens):
    """Behind the tokens stands the first place; what is given back is the same."""
    mask = tf.sequence_mask([tokens, 0], maxlen=6)[: 2 if tokens else 0]
    layout = TokenLayout.without_padding(mask)
    filled = layout.filled_up([0, 4, 8])
    x = tf.reshape(tf.range(2.0 * 12)[: 12 * mask.shape[0]], (mask.shape[0], 6, 2))
    flat = filled.flat(x)
    assert len(flat) == {0: 0, 1: 4, 4: 4, 5: 8}[tokens]
    np.testing.assert_array_equal(flat[:tokens], layout.flat(x))
    assert all((row == x[0, 0]).numpy().all() for row in flat[tokens:])
    np.testing.assert_array_equal(filled.padded(flat), layout.padded(layout.flat(x)))
