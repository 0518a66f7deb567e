"""Reads `.safetensors` files: named arrays, one at a time, with no code executed.

The library checks the header (offsets within the file, no overlap, no hole, sizes that fit the shapes) before we look
at it. The numbers are read into arrays of our own, since those of the library lie in a mapped file: they could not
become variables without a copy. Source: https://github.com/huggingface/safetensors.
"""

import json
from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from safetensors import SafetensorError, safe_open

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.memory import new_array, read_into

_LENGTH_BYTES = 8  # of the header, before it
_LARGEST_HEADER_BYTES = 1 << 21  # names and shapes of a BERT of a thousand layers take less
_NUMBERS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}


class SafetensorsFile(Mapping):
    """The arrays of a file by name; each is read from the disk when it is asked for.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        CheckpointError: The file is damaged or is no safetensors file.
    """

    def __init__(self, path):
        self.path = path
        try:
            _require_short_header(path)
            with safe_open(path, framework="numpy") as checked:
                names = set(checked.keys())
            self._tensors, self._start = _header_of(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise CheckpointError(
                f"A .safetensors file must be complete and undamaged. Received: {path}: {error}. Fetch it again."
            ) from None
        assert names == self._tensors.keys(), "the library and we read the header in different ways"

    def __getitem__(self, name):
        tensor = self._tensors[name]
        dtype = _NUMBERS.get(tensor["dtype"])
        if dtype is None:
            raise CheckpointError(f"{self.path}: the tensor {name!r} holds {tensor['dtype']}, which is not read.")
        array = new_array(tuple(tensor["shape"]), np.dtype(tf.as_dtype(dtype).as_numpy_dtype))
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(self._start + tensor["data_offsets"][0])
                read_into(file, array)
        except (OSError, EOFError) as error:
            raise CheckpointError(f"{self.path}: the tensor {name!r} cannot be read: {error}.") from None
        return array

    def __contains__(self, name):
        return name in self._tensors

    def __iter__(self):
        return iter(self._tensors)

    def __len__(self):
        return len(self._tensors)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return tuple(self._tensors[name]["shape"])

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        dtype = self._tensors[name]["dtype"]
        return _NUMBERS.get(dtype, dtype)


def _require_short_header(path):
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if length > _LARGEST_HEADER_BYTES:
        raise ValueError(f"its header has {length} bytes, more than {_LARGEST_HEADER_BYTES}")


def _header_of(path):
    """Returns {name: {"dtype", "shape", "data_offsets"}} and where in the file the numbers begin."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        tensors = json.loads(file.read(length), object_pairs_hook=_each_once)
    tensors.pop("__metadata__", None)
    return tensors, _LENGTH_BYTES + length


def _each_once(pairs):
    values = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"the header says {name} twice")
        values[name] = value
    return values
