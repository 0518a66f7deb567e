"""Arrays whose memory TensorFlow takes over as it is, so that weights are in memory once and not twice."""

import math

import numpy as np
import tensorflow as tf

ALIGNMENT = 64  # bytes; TensorFlow copies an array that starts elsewhere
_BLOCK_BYTES = 1 << 22  # read at once: some files make a copy of it
_STRIP = 64  # columns that are copied at once from an array that is stored by columns


def new_array(shape, dtype=np.float32, zeros=False):
    """Makes an array at an address that suits TensorFlow.

    Args:
        shape: tuple of ints.
        dtype: NumPy dtype.
        zeros: bool, whether it holds zeros, which take no memory before they are first written to. Default: anything.

    Returns:
        NumPy array.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    block = (np.zeros if zeros else np.empty)(size + ALIGNMENT, np.uint8)
    first = -block.ctypes.data % ALIGNMENT
    return block[first : first + size].view(dtype).reshape(shape)


def is_for_tensorflow(array):
    """Says whether TensorFlow can take over the memory of an array."""
    return array.flags.c_contiguous and array.flags.writeable and array.ctypes.data % ALIGNMENT == 0


def as_tensor(array):
    """Returns a tensor that shares the memory of a float32 array of `new_array`, which nobody may use afterwards."""
    assert is_for_tensorflow(array)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def copy_into(target, source):
    """Copies an array into another one of that shape.

    What was transposed is copied in strips that stay in the processor's cache, in a third of the time.
    """
    if source.flags.c_contiguous or source.ndim < 2:
        target[...] = source
        return
    for first in range(0, source.shape[-1], _STRIP):
        target[..., first : first + _STRIP] = source[..., first : first + _STRIP]


def read_into(file, array):
    """Fills an array with the next bytes of a binary file.

    Raises:
        EOFError: The file ends before.
    """
    rest = memoryview(array.reshape(-1).view(np.uint8))
    while len(rest):
        count = file.readinto(rest[:_BLOCK_BYTES])
        if not count:
            raise EOFError(f"the file ends {len(rest)} bytes too early")
        rest = rest[count:]
