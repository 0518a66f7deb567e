"""What training computes between the matrix products, each in one pass over memory, forward and backward.

TensorFlow runs one kernel for each operation, and on a CPU each of them reads and writes all activations once more.
Here XLA compiles the operations of a function into one loop, and gradients are written out, so that the backward pass
is one loop too. Without dropout the numbers are those of the plain layers; they are taken in float32 inside.
"""

import math

import tensorflow as tf

from keras_bert_kit.layers.random import keep
from keras_bert_kit.xla import compiled

VERY_NEGATIVE = -1e9
ROOT_OF_2_BY_PI = (2.0 / math.pi) ** 0.5


@tf.custom_gradient
def gelu_erf(x):
    """Exact GELU of a float tensor of any shape: see `functions.gelu_erf`."""
    return _gelu_erf(x), lambda upstream: _gelu_erf_gradient(x, upstream)


@compiled
def _gelu_erf(x):
    wide = tf.cast(x, tf.float32)
    return tf.cast(wide * _normal_cdf(wide), x.dtype)


@compiled
def _gelu_erf_gradient(x, upstream):
    wide = tf.cast(x, tf.float32)
    density = tf.exp(-0.5 * wide * wide) * (2.0 * math.pi) ** -0.5
    return tf.cast(tf.cast(upstream, tf.float32) * (_normal_cdf(wide) + wide * density), x.dtype)


def _normal_cdf(x):
    return 0.5 * (1.0 + tf.math.erf(x * 0.5**0.5))


@tf.custom_gradient
def gelu_tanh(x):
    """GELU's approximation by tanh of a float tensor of any shape: see `functions.gelu_tanh`."""
    return _gelu_tanh(x), lambda upstream: _gelu_tanh_gradient(x, upstream)


@compiled
def _gelu_tanh(x):
    wide = tf.cast(x, tf.float32)
    return tf.cast(0.5 * wide * (1.0 + _inner_tanh(wide)), x.dtype)


@compiled
def _gelu_tanh_gradient(x, upstream):
    wide = tf.cast(x, tf.float32)
    tanh = _inner_tanh(wide)
    slope = ROOT_OF_2_BY_PI * (1.0 + 3 * 0.044715 * wide * wide)  # of what is inside the tanh
    return tf.cast(
        tf.cast(upstream, tf.float32) * (0.5 * (1.0 + tanh) + 0.5 * wide * (1.0 - tanh * tanh) * slope), x.dtype
    )


def _inner_tanh(x):
    return tf.tanh(ROOT_OF_2_BY_PI * (x + 0.044715 * x * x * x))


def dropout_add_norm(branch, residual, gamma, beta, epsilon, rate, seed):
    """LayerNorm(dropout(branch) + residual), what ends each half of an encoder block.

    Args:
        branch: float tensor (tokens, hidden).
        residual: float tensor (tokens, hidden).
        gamma: float32 tensor (hidden,).
        beta: float32 tensor (hidden,).
        epsilon: float, added to the variance.
        rate: float, probability of dropping a value of `branch`.
        seed: uint32 tensor (2,), see `keep`.

    Returns:
        Tensor (tokens, hidden) in the dtype of `residual`.
    """

    @tf.custom_gradient
    def function(branch, residual, gamma, beta):
        normalized, scaled, inverse_deviation = _dropout_add_norm(branch, residual, gamma, beta, epsilon, rate, seed)

        def gradient(upstream):
            return _dropout_add_norm_gradient(upstream, normalized, inverse_deviation, gamma, rate, seed)

        return scaled, gradient

    return function(branch, residual, gamma, beta)


@compiled
def _dropout_add_norm(branch, residual, gamma, beta, epsilon, rate, seed):
    x = _dropped(tf.cast(branch, tf.float32), rate, seed) + tf.cast(residual, tf.float32)
    mean = tf.reduce_mean(x, axis=1, keepdims=True)
    inverse_deviation = tf.math.rsqrt(tf.reduce_mean(tf.square(x - mean), axis=1, keepdims=True) + epsilon)
    normalized = (x - mean) * inverse_deviation
    return (
        tf.cast(normalized, residual.dtype),
        tf.cast(normalized * gamma + beta, residual.dtype),
        inverse_deviation,
    )


@compiled
def _dropout_add_norm_gradient(upstream, normalized, inverse_deviation, gamma, rate, seed):
    dtype, upstream, normalized = normalized.dtype, tf.cast(upstream, tf.float32), tf.cast(normalized, tf.float32)
    scaled = upstream * gamma
    mean = tf.reduce_mean(scaled, axis=1, keepdims=True)
    along = tf.reduce_mean(scaled * normalized, axis=1, keepdims=True)
    to_sum = inverse_deviation * (scaled - mean - normalized * along)
    return (
        tf.cast(_dropped(to_sum, rate, seed), dtype),
        tf.cast(to_sum, dtype),
        tf.reduce_sum(upstream * normalized, axis=0),
        tf.reduce_sum(upstream, axis=0),
    )


def attention_weights(logits, mask, scale, rate, seed):
    """dropout(softmax(scale·logits)), where keys that the mask leaves out get the weight 0.

    Args:
        logits: float tensor (batch, heads, query sequence, key sequence).
        mask: boolean tensor that broadcasts to it, true where attention is allowed.
        scale: float, 1 / √(head size).
        rate: float, probability of dropping a weight.
        seed: uint32 tensor (2,), see `keep`.

    Returns:
        Pair of tensors of the shape and dtype of `logits`: with dropout, and without.
    """

    @tf.custom_gradient
    def function(logits):
        dropped, weights = _attention_weights(logits, mask, scale, rate, seed)

        def gradient(of_dropped, of_weights):
            return _attention_weights_gradient(of_dropped, of_weights, weights, mask, scale, rate, seed)

        return (dropped, weights), gradient

    return function(logits)


@compiled
def _attention_weights(logits, mask, scale, rate, seed):
    weights = tf.nn.softmax(tf.where(mask, tf.cast(logits, tf.float32) * scale, VERY_NEGATIVE))
    return tf.cast(_dropped(weights, rate, seed), logits.dtype), tf.cast(weights, logits.dtype)


@compiled
def _attention_weights_gradient(of_dropped, of_weights, weights, mask, scale, rate, seed):
    dtype, weights = weights.dtype, tf.cast(weights, tf.float32)
    upstream = _dropped(tf.cast(of_dropped, tf.float32), rate, seed) + tf.cast(of_weights, tf.float32)
    of_logits = scale * weights * (upstream - tf.reduce_sum(upstream * weights, axis=-1, keepdims=True))
    return tf.cast(tf.where(mask, of_logits, 0.0), dtype)  # where a query sees nothing, its weights are not 0


def dropout(x, rate, seed):
    """Sets values to 0 with probability `rate`, and scales the others up by 1 / (1 - rate).

    Args:
        x: float tensor of any shape.
        rate: float in [0, 1).
        seed: uint32 tensor (2,), see `keep`.
    """

    @tf.custom_gradient
    def function(x):
        return _dropout(x, rate, seed), lambda upstream: _dropout(upstream, rate, seed)

    return function(x)


@compiled
def _dropout(x, rate, seed):
    return tf.cast(_dropped(tf.cast(x, tf.float32), rate, seed), x.dtype)


def _dropped(x, rate, seed):
    """Dropout of a float32 tensor; its gradient is the same function of the gradient."""
    if rate == 0:
        return x
    return tf.where(keep(tf.shape(x), rate, seed), x / (1.0 - rate), 0.0)
