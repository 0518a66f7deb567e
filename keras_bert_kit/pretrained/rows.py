"""`Row`: one tensor in someone's file, the variable it belongs to, and the way from one to the other.

* The operation turns their array into ours: `keep` as it is; `transpose` for dense kernels that are stored as
  (outputs, inputs), as PyTorch does; `split_heads` where the last axis is two, (heads, head size), and
  `split_input_heads` where the first one is, as Keras' attention has them.
* The part is for arrays that are one of three side by side in ours: query, key and value are columns of one kernel.
"""

from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """One tensor: its name in a file, the path of our variable, and how to get from one to the other."""

    theirs: str
    ours: str
    operation: str = "keep"
    part: int | None = None


PARTS = 3  # query, key, value


def part_shape(row, shape):
    """Returns the shape of what a row fills in a variable of that shape: all of it, or one of three parts."""
    return shape if row.part is None else (*shape[:-1], shape[-1] // PARTS)


def part_of(row, array):
    """Returns a view of what a row fills in an array of the shape of our variable."""
    return array if row.part is None else np.split(array, PARTS, axis=-1)[row.part]


def their_shape(row, shape, num_heads):
    """Returns the shape of a tensor in a file.

    Args:
        row: `Row`.
        shape: tuple of ints, the shape of our variable.
        num_heads: int, for the two operations that split heads.
    """
    shape = part_shape(row, shape)
    if row.operation == "transpose":
        return shape[::-1]
    if row.operation == "split_heads":
        return (*shape[:-1], num_heads, shape[-1] // num_heads)
    if row.operation == "split_input_heads":
        return (num_heads, shape[0] // num_heads, *shape[1:])
    return shape


def to_ours(row, array, shape):
    """Returns the array of a tensor in a file as it is in our variable of that shape, or as one of its three parts.

    Nothing is copied: what comes back may be a view that lies otherwise in memory.
    """
    shape = part_shape(row, shape)
    return np.transpose(array) if row.operation == "transpose" else np.reshape(array, shape)


def to_theirs(row, array, num_heads):
    """Returns the array of one of our variables as the tensor of a row: the reverse of `to_ours`."""
    shape = their_shape(row, array.shape, num_heads)
    array = part_of(row, array)
    return np.ascontiguousarray(np.transpose(array) if row.operation == "transpose" else np.reshape(array, shape))
