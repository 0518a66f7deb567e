"""What may be given as texts, and as ids: checked here, with one clear error for everything else."""

import keras
import numpy as np
import tensorflow as tf


def as_texts(texts, name="texts"):
    """Makes a rank-1 string tensor of what a user calls texts.

    Args:
        texts: str or bytes (one text); list, tuple, generator, NumPy array or pandas Series of them; string tensor of
            rank 0 or 1. A symbolic input of a functional model is checked and stays as it is.
        name: str, how the error calls it.

    Returns:
        tf.Tensor string (batch,).

    Raises:
        ValueError: something is not a string (the first position is named), cannot be UTF-8 (a lone surrogate), or the
            rank is above 1.
    """
    if isinstance(texts, (tf.RaggedTensor, tf.SparseTensor)):
        raise ValueError(f"{name} must be a string tensor of rank 1. Received: a {type(texts).__name__}.")
    is_symbolic = isinstance(texts, keras.KerasTensor)
    if not is_symbolic and not tf.is_tensor(texts):
        texts = _from_python(texts, name)
    if tf.as_dtype(texts.dtype) != tf.string:
        raise ValueError(f"{name} must be strings. Received: a tensor of dtype {tf.as_dtype(texts.dtype).name}.")
    rank = len(texts.shape) if is_symbolic else texts.shape.rank
    if rank is None:
        return tf.ensure_shape(texts, [None])
    if rank > 1 or (is_symbolic and rank != 1):
        raise ValueError(_rank_message(name, tuple(texts.shape)))
    return tf.reshape(texts, [-1]) if rank == 0 else texts


def _from_python(texts, name):
    """Strings in Python, NumPy or pandas to a string tensor; says which element is not a string."""
    if isinstance(texts, np.ndarray) and texts.ndim > 1:
        raise ValueError(_rank_message(name, texts.shape))
    if hasattr(texts, "tolist"):
        texts = texts.tolist()
    if isinstance(texts, (dict, set, frozenset)):
        raise ValueError(f"{name} must be a list of strings, in order. Received: a {type(texts).__name__}.")
    if not isinstance(texts, (list, tuple)):
        texts = [texts] if isinstance(texts, (str, bytes)) or not hasattr(texts, "__iter__") else list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            is_missing = text is None or isinstance(text, float)
            raise ValueError(
                f"{name} must be strings. Received: {str(text)[:80]} ({type(text).__name__}) at position {position}. "
                f"{'Drop or replace missing values' if is_missing else 'Give a list of str'}."
            )
    try:
        return tf.constant(texts, tf.string, shape=[len(texts)])
    except ValueError:  # says neither which text nor why
        return tf.constant([_encoded(text, name, i) for i, text in enumerate(texts)], tf.string)


def _rank_message(name, shape):
    return (
        f"{name} must be of rank 1: one string an example. Received: shape={shape}. "
        f"Flatten it, or give two segments as a tuple of two rank-1 tensors."
    )


def _encoded(text, name, position):
    try:
        return text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} must be text that UTF-8 can encode. Received: a lone surrogate, "
            f"{text[error.start]!r} at character {error.start} of the text at position {position}. "
            f"Repair it with text.encode('utf-8', 'replace').decode()."
        ) from error


def as_segments(texts):
    """Makes checked texts of what a user gives to pack: a string tensor, or a tuple of two of the same batch size.

    A tuple holds segments, a list holds texts. A list of two tensors counts as a tuple, because that is what Keras
    makes of one in a saved functional model. Symbolic inputs of functional models stay as they are.

    Raises:
        ValueError: as in `as_texts`; another number of segments; segments of different batch sizes.
    """
    if isinstance(texts, list) and len(texts) == 2 and all(_is_batch_tensor(segment) for segment in texts):
        texts = tuple(texts)
    if not isinstance(texts, tuple):
        return as_texts(texts)
    if len(texts) != 2:
        raise ValueError(
            f"A tuple must hold the two segments of each example. Received: a tuple of {len(texts)}. "
            f"Give the texts of a batch as a list."
        )
    first, second = as_texts(texts[0], "texts[0]"), as_texts(texts[1], "texts[1]")
    if isinstance(first, keras.KerasTensor):
        return first, second
    if None in (first.shape[0], second.shape[0]):
        tf.debugging.assert_equal(tf.size(first), tf.size(second), "Both segments must have one text an example.")
    elif first.shape[0] != second.shape[0]:
        raise ValueError(
            f"Both segments must have one text an example. Received: {first.shape[0]} and {second.shape[0]} texts."
        )
    return first, second


def _is_batch_tensor(segment):
    """Whether a tensor holds a batch of texts, not a single one."""
    return isinstance(segment, keras.KerasTensor) or (tf.is_tensor(segment) and segment.shape.rank != 0)


def as_ids(ids, vocab_size):
    """Makes an int32 ragged tensor (batch, tokens) of what a user calls ids; a flat list is one text.

    Raises:
        ValueError: not whole numbers, of rank above 2, or out of range (the first one is named).
    """
    if not isinstance(ids, tf.RaggedTensor):
        ids = tf.convert_to_tensor(ids) if tf.is_tensor(ids) or isinstance(ids, np.ndarray) else tf.ragged.constant(ids)
    if ids.shape.rank == 1:
        ids = ids[None]
    if ids.shape.rank == 2 and not isinstance(ids, tf.RaggedTensor):
        ids = tf.RaggedTensor.from_tensor(ids)
    if ids.shape.rank != 2 or not (ids.dtype.is_integer or ids.flat_values.shape[0] == 0):  # [] is float32
        raise ValueError(
            f"ids must be whole numbers of shape (batch, tokens). Received: dtype {ids.dtype.name}, shape {ids.shape}."
        )
    values = tf.cast(ids.flat_values, tf.int32)
    if tf.executing_eagerly():
        outside = tf.boolean_mask(values, (values < 0) | (values >= vocab_size))
        if tf.size(outside) > 0:
            raise ValueError(f"ids must be from 0 to {vocab_size - 1}. Received: {int(outside[0])}.")
    return ids.with_flat_values(values)
