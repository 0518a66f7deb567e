"""The functions of training, against the plain layers and TensorFlow's own gradients in float64."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.layers import fused
from keras_bert_kit.layers.random import keep, seed_of

SEED = tf.constant([3, 4], tf.uint32)
RNG = np.random.default_rng(0)


def normal(*shape, dtype="float32"):
    return tf.constant(RNG.normal(size=shape).astype("float32"), dtype)


def run(function, inputs, upstream):
    """Outputs and gradients, as float64 arrays."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(*inputs)
    gradients = tape.gradient(outputs, inputs, tf.cast(upstream, outputs.dtype))
    return [tf.cast(tensor, tf.float64).numpy() for tensor in (outputs, *gradients)]


def check(function, reference, inputs, upstream, tolerance):
    """A function and its gradients are those of a reference in float64."""
    found = run(function, inputs, upstream)
    expected = run(reference, [tf.cast(x, tf.float64) for x in inputs], tf.cast(upstream, tf.float64))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance * max(1.0, np.abs(other).max()))


DTYPES = [("float32", 2e-6), ("bfloat16", 2e-2), ("float16", 3e-3)]


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize(("function", "approximate"), [(fused.gelu_erf, False), (fused.gelu_tanh, True)])
def test_gelu(function, approximate, dtype, tolerance):
    x = tf.concat([3.0 * normal(200), tf.constant([0.0, -0.0, 30.0, -30.0])], axis=0)
    x = tf.cast(x, dtype)
    check(function, lambda x: tf.nn.gelu(x, approximate=approximate), [x], normal(204, dtype=dtype), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_dropout_add_norm(rate, dtype, tolerance):
    branch, residual = normal(6, 32, dtype=dtype), normal(6, 32, dtype=dtype)
    gamma, beta = normal(32), normal(32)
    kept = keep([6, 32], rate, SEED)

    def reference(branch, residual, gamma, beta):
        x = tf.where(kept, branch / (1.0 - rate), 0.0) + residual
        mean, variance = tf.nn.moments(x, [1], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-12) * gamma + beta

    def function(branch, residual, gamma, beta):
        return fused.dropout_add_norm(branch, residual, gamma, beta, 1e-12, rate, SEED)

    check(function, reference, [branch, residual, gamma, beta], normal(6, 32, dtype=dtype), 3 * tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_attention_weights(rate, dtype, tolerance):
    mask = (
        tf.constant([[1, 1, 1, 1, 1], [1, 1, 0, 1, 0], [0, 0, 0, 0, 0]])[:, None, None, :] > 0
    )  # the last sees nothing
    kept = keep([3, 2, 5, 5], rate, SEED)

    def reference(logits):
        weights = tf.nn.softmax(tf.where(mask, logits * 0.5, -1e9))
        return tf.stack([tf.where(kept, weights / (1.0 - rate), 0.0), weights])

    def function(logits):
        return tf.stack(fused.attention_weights(logits, mask, 0.5, rate, SEED))

    check(function, reference, [3.0 * normal(3, 2, 5, 5, dtype=dtype)], normal(2, 3, 2, 5, 5, dtype=dtype), tolerance)
    weights = fused.attention_weights(normal(3, 2, 5, 5, dtype=dtype), mask, 0.5, rate, SEED)[1]
    assert np.all(tf.cast(weights, tf.float32).numpy()[1][..., [2, 4]] == 0)
    np.testing.assert_allclose(tf.cast(weights[2], tf.float32), 0.2, atol=1e-3)


def test_dropout_and_its_gradient_keep_the_same_places():
    x = tf.ones([1000])
    dropped, gradient = run(lambda x: fused.dropout(x, 0.1, SEED), [x], tf.ones([1000]))
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / 0.9], atol=1e-6)
    np.testing.assert_array_equal(dropped, gradient)


def test_the_share_kept_and_its_independence():
    """Within five standard deviations of the binomial: over places, from place to place, from seed to seed."""
    count, rate = 400_000, 0.1
    deviation = 5 * np.sqrt(rate * (1 - rate) / count)
    seeds = [tf.constant(pair, tf.uint32) for pair in ([0, 0], [0, 1], [1, 0], [2**32 - 1, 7])]
    drawn = [~keep([4, count // 4], rate, seed).numpy().ravel() for seed in seeds]
    for dropped in drawn:
        assert abs(dropped.mean() - rate) < deviation
        for shift in (1, 2, 3, 64, 768, 1024):
            both = np.mean(dropped[shift:] & dropped[:-shift])
            assert abs(both - rate**2) < 5 * np.sqrt(rate**2 / count)
    for number, one in enumerate(drawn):
        for other in drawn[:number]:
            assert abs(np.mean(one & other) - rate**2) < 5 * np.sqrt(rate**2 / count)


def test_every_draw_has_a_seed_of_its_own():
    states = [(layer, draw) for layer in (0, 1, 2**31, 2**32 - 1) for draw in (0, 1, 2**16, 2**32, 2**40)]
    seeds = {tuple(seed_of(tf.constant(state, tf.int64)).numpy()) for state in states}
    assert len(seeds) == len(states)
