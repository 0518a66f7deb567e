"""memory: arrays that become tensors and variables without a copy."""

import io

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.layers.functions import initializer
from keras_bert_kit.memory import ALIGNMENT, as_tensor, copy_into, is_for_tensorflow, new_array, read_into


@pytest.mark.parametrize("shape", [(3,), (2, 5), (7, 3, 2)])
def test_a_tensor_shares_the_memory_of_the_array_and_a_variable_that_of_the_tensor(shape):
    array = new_array(shape)
    assert array.shape == shape and array.dtype == np.float32 and array.ctypes.data % ALIGNMENT == 0
    array[...] = 1
    tensor = as_tensor(array)
    variable = tf.Variable(tf.zeros(shape))
    variable.assign(tensor)
    array[...] = 2
    np.testing.assert_array_equal(variable, np.full(shape, 2, np.float32))


def test_a_variable_can_be_trained_in_the_memory_that_it_took_over():
    array = new_array((4, 4), zeros=True)
    variable = tf.Variable(tf.ones((4, 4)))
    variable.assign(as_tensor(array))
    del array
    for _ in range(3):
        variable.assign_add(tf.ones((4, 4)))
    np.testing.assert_array_equal(variable, np.full((4, 4), 3, np.float32))


def test_arrays_that_tensorflow_would_copy_are_told_apart():
    whole = new_array((8, 8))
    assert is_for_tensorflow(whole) and not is_for_tensorflow(whole.T) and not is_for_tensorflow(whole[:, 1:])
    assert not is_for_tensorflow(whole.reshape(-1)[1:])
    whole.flags.writeable = False
    assert not is_for_tensorflow(whole)


def test_transposed_arrays_are_copied_in_strips():
    source = np.arange(150 * 70, dtype=np.float32).reshape(150, 70)
    target = new_array((70, 150))
    copy_into(target, source.T)
    np.testing.assert_array_equal(target, source.T)


def test_a_file_that_ends_too_early_is_an_error():
    array = new_array((3,))
    read_into(io.BytesIO(np.array([1, 2, 3], np.float32).tobytes()), array)
    np.testing.assert_array_equal(array, [1, 2, 3])
    with pytest.raises(EOFError, match="ends 5 bytes too early"):
        read_into(io.BytesIO(bytes(7)), array)


def test_an_initializer_without_range_makes_zeros():
    assert not np.any(initializer(0)((2, 3), "float32"))
    half = initializer(0)((2, 3), "bfloat16")
    assert half.dtype == tf.bfloat16 and half.shape == (2, 3)
    assert np.any(initializer(0.02)((2, 3), "float32"))
