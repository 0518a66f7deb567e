"""The small functions that several layers share: activations, table look-up, shapes, and checks of ids.

They are written in the form that TensorFlow's graph optimizer fuses on CPU: two-dimensional matrix products with a
bias, GELU with `erf` written out, residuals by `tf.add_n`.
"""

import math

import keras
import tensorflow as tf

from keras_bert_kit.layers import fused
from keras_bert_kit.memory import as_tensor, new_array

PACKAGE = "keras_bert_kit"


def gelu_erf(x):
    """Exact GELU, x·P(X <= x) for a standard normal X: Hugging Face's `"gelu"`.

    Source: Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415.
    """
    return 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))


def gelu_tanh(x):
    """GELU's approximation by tanh: the `"gelu"` of Google's BERT and of TF-Models, Hugging Face's `"gelu_new"`."""
    # The order of factors is that of no textbook: TensorFlow's optimizer moves constants about before it looks for a
    # GELU to fuse, and from here alone it finds one in whole models too (2.21; tests/test_serving_fusion.py).
    return (1.0 + tf.tanh((2.0 / math.pi) ** 0.5 * (x + x * (0.044715 * tf.square(x))))) * (0.5 * x)


ACTIVATIONS = {"gelu_erf": gelu_erf, "gelu_tanh": gelu_tanh, "relu": tf.nn.relu, "silu": tf.nn.silu, "tanh": tf.tanh}


# The same functions with gradients that cost less than those of the forms above.
IN_TRAINING = ACTIVATIONS | {"gelu_erf": fused.gelu_erf, "gelu_tanh": fused.gelu_tanh}


def activation_by_name(name, training=False):
    """Returns the function behind one of the names of `ACTIVATIONS`; in training, one of the same values.

    Raises:
        ValueError: Unknown name. A bare `"gelu"` is refused, since files mean two different functions by it.
    """
    if name not in ACTIVATIONS:
        hint = " A bare 'gelu' does not say which." if name == "gelu" else ""
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}.{hint} Received: activation={name!r}.")
    return (IN_TRAINING if training else ACTIVATIONS)[name]


def initializer(initializer_range):
    """BERT's initializer: a normal distribution cut at two standard deviations.

    Args:
        initializer_range: float, the standard deviation. 0 makes zeros, for a model that is about to be filled.
    """
    if initializer_range == 0:
        return untouched_zeros
    return keras.initializers.TruncatedNormal(stddev=initializer_range)


def untouched_zeros(shape, dtype=None):
    """An initializer: zeros that cost neither time nor memory before they are used or replaced."""
    if dtype == "float32":
        return as_tensor(new_array(shape, zeros=True))
    return tf.zeros(shape, dtype)


def shape_of(x):
    """Returns the shape of `x` as a list: integers where they are known, scalar tensors where they are not."""
    dynamic = tf.shape(x)
    return [dynamic[axis] if size is None else size for axis, size in enumerate(x.shape)]


def flatten_tokens(x):
    """Returns (batch, sequence, hidden) as (tokens, hidden), where tokens = batch · sequence."""
    return tf.reshape(x, (-1, x.shape[-1]))  # (T, D)


def look_up(table, indices):
    """Rows of a table, as `tf.gather`, with a dense gradient.

    `tf.gather` gives `IndexedSlices`, in which a row that was looked up twice stands twice. Optimizers that clip by
    global norm or keep moments then compute something else than for the dense gradient. Here repeated rows are summed.

    Args:
        table: float tensor or variable (rows, width).
        indices: int32 tensor of any shape, each in [0, rows).

    Returns:
        Tensor (*indices.shape, width).
    """
    return _look_up(tf.convert_to_tensor(table), indices)


def look_up_tokens(inputs, positions, name):
    """Takes the vectors at some positions out of each row.

    Args:
        inputs: float tensor (batch, sequence, hidden).
        positions: int tensor (batch, picked), each in [0, sequence).
        name: str, the input to name when a position is outside.

    Returns:
        Flat tokens (batch · picked, hidden).
    """
    batch, sequence, _ = shape_of(inputs)
    positions = require_below(positions, sequence, name, "the length of the sequence")
    rows = tf.range(batch)[:, tf.newaxis] * sequence + positions  # (B, P), in flat tokens
    return look_up(flatten_tokens(inputs), tf.reshape(rows, (-1,)))  # (B·P, D)


@tf.custom_gradient
def _look_up(table, indices):
    def gradient(upstream):
        rows = tf.reshape(upstream, (-1, table.shape[-1]))
        return tf.math.unsorted_segment_sum(rows, tf.reshape(indices, (-1,)), tf.shape(table)[0]), None

    return tf.gather(table, indices), gradient


def require_below(values, limit, name, limit_means):
    """Returns integer `values`, after a check that each lies in [0, limit); the check runs in graphs too.

    Without it, a GPU answers an id outside of the table with zeros and no error, a CPU with the name of an inner op.
    XLA (`jit_compile=True`) has no run-time checks and skips it.

    Args:
        values: int tensor of any shape.
        limit: int, or int tensor: the first value that is too large.
        name: str, the input to name in the message.
        limit_means: str, what the limit is, for the message.

    Raises:
        tf.errors.InvalidArgumentError: When it runs, with the name, the limit and the values found.
    """
    values = tf.cast(values, tf.int32)
    inside = tf.reduce_all((values >= 0) & (values < limit))
    lowest, highest = tf.reduce_min(values), tf.reduce_max(values)
    message = [f"{name} must lie in [0, ", limit, f"), {limit_means}. Received values from ", lowest, " to ", highest]
    with tf.control_dependencies([tf.debugging.Assert(inside, message)]):
        return tf.identity(values)


def require_length(sequence, limit, limit_means):
    """Returns the length of a sequence, after a check that a position table is long enough for it.

    Args:
        sequence: int, or scalar int tensor where it is known only at run time.
        limit: int, rows of the position table.
        limit_means: str, the argument that set the limit, for the message.

    Raises:
        ValueError: The length is known, and too large.
        tf.errors.InvalidArgumentError: The same at run time.
    """
    message = f"A sequence must not be longer than {limit_means}={limit}. Received: {{}} tokens. Truncate the text."
    if isinstance(sequence, int):
        if sequence > limit:
            raise ValueError(message.format(sequence))
        return sequence
    with tf.control_dependencies([tf.debugging.Assert(sequence <= limit, [message.format("more"), sequence])]):
        return tf.identity(sequence)
