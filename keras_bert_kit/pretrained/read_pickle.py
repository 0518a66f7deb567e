"""Reads PyTorch's `pytorch_model.bin` without PyTorch, and without running what a pickle can be made to run.

A pickle is a small program. The kit runs it itself (`pickle_program.py`), and what it may name is `OrderedDict` and
"this is a tensor", which here makes a note of where the numbers lie. Both formats are read: the zip file of PyTorch 1.6
and later, and the older one, pickles followed by raw numbers.

Source: torch/serialization.py of https://github.com/pytorch/pytorch.
"""

import io
import math
import os
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.memory import new_array, read_into
from keras_bert_kit.pretrained.pickle_program import run_pickle

_NUMBERS = {
    "FloatStorage": np.dtype("float32"),
    "DoubleStorage": np.dtype("float64"),
    "HalfStorage": np.dtype("float16"),
    "BFloat16Storage": np.dtype(tf.bfloat16.as_numpy_dtype),
    "LongStorage": np.dtype("int64"),
    "IntStorage": np.dtype("int32"),
    "ByteStorage": np.dtype("uint8"),
    "BoolStorage": np.dtype("bool"),
}
_OLD_FORMAT = 0x1950A86A20F9469CFC6C
_FAULTS = (
    zipfile.BadZipFile,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


class _Storage(NamedTuple):
    key: str
    numbers: np.dtype


class _Tensor(NamedTuple):
    storage: _Storage
    offset: int
    size: tuple
    stride: tuple


class PickleFile(Mapping):
    """The arrays of a file by name; each is read from the disk when it is asked for.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        CheckpointError: The file is damaged, or holds anything but named tensors.
    """

    def __init__(self, path):
        self.path = path
        try:
            state, self._sizes, self._read = (_open_zip if zipfile.is_zipfile(path) else _open_old_format)(path)
            self._tensors = dict(dict.items(state))
            for name, tensor in self._tensors.items():
                self._require_tensor(name, tensor)
            self._require_few_views()
        except _FAULTS as error:
            raise self._refused(error) from None

    def _require_tensor(self, name, tensor):
        if type(tensor) is not _Tensor:
            raise ValueError(f"{name!r} is a {type(tensor).__name__}")
        integers = (tensor.offset, *tensor.size, *tensor.stride)
        if any(type(number) is not int or number < 0 for number in integers) or len(tensor.size) != len(tensor.stride):
            raise ValueError(f"{name!r} has no valid shape: {tensor.size}, {tensor.stride}")
        count = math.prod(tensor.size)
        last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.size, tensor.stride, strict=True))
        held = self._sizes[tensor.storage.key] // tensor.storage.numbers.itemsize
        if count > held or (count and last >= held):
            raise ValueError(f"{name!r} is larger than its {held} numbers: {tensor.size}")

    def _require_few_views(self):
        """Tied weights are views of one storage; with a thousand views, a small file would fill a large memory."""
        numbers = sum(math.prod(tensor.size) * tensor.storage.numbers.itemsize for tensor in self._tensors.values())
        if numbers > 2 * sum(self._sizes.values()):
            raise ValueError(f"its tensors, of {numbers} bytes, are views of the same numbers")

    def __getitem__(self, name):
        tensor = self._tensors[name]
        try:
            values = self._read(tensor.storage.key).view(tensor.storage.numbers)
        except _FAULTS as error:
            raise self._refused(error) from None
        strides = [step * values.itemsize for step in tensor.stride]
        array = np.lib.stride_tricks.as_strided(values[tensor.offset :], tensor.size, strides)
        # What fills its storage is that storage; of another one the rest would stay in memory.
        return array if array.flags.c_contiguous and array.size == values.size else np.array(array, order="C")

    def __iter__(self):
        return iter(self._tensors)

    def __len__(self):
        return len(self._tensors)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return self._tensors[name].size

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        return self._tensors[name].storage.numbers.name

    def _refused(self, error):
        return CheckpointError(
            f"A PyTorch file must hold tensors by name, nothing else, undamaged. Received: {self.path}: {error}. "
            "Nothing was executed. Fetch it again, or convert it to model.safetensors where you trust it."
        )


def _open_zip(path):
    """Opens a file of PyTorch 1.6 or later.

    Returns:
        Triple of the object in it, the number of bytes of each storage by key, and a function that reads one,
        as a uint8 array.
    """
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
        pickles = [name for name in members if name.endswith("/data.pkl") and name.count("/") == 1]
        if len(pickles) != 1:
            raise ValueError(f"{len(pickles)} files data.pkl in the archive")
        root = pickles[0].removesuffix("data.pkl")
        for name, member in members.items():  # PyTorch never compresses, so no file can grow when it is read
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > path.stat().st_size:
                raise ValueError(f"{name} is compressed, or larger than the archive")
        if root + "byteorder" in members and archive.read(root + "byteorder") != b"little":
            raise ValueError("numbers in big-endian order")
        state = _load(io.BytesIO(archive.read(pickles[0])))
    place = root + "data/"
    sizes = {name.removeprefix(place): member.file_size for name, member in members.items() if name.startswith(place)}

    def read(key):
        content = new_array((sizes[key],), np.uint8)
        with zipfile.ZipFile(path) as archive, archive.open(place + key) as file:
            read_into(file, content)  # with the last byte the CRC is compared
        return content

    return state, sizes, read


def _open_old_format(path):
    """The same for the format before PyTorch 1.6: five pickles, then each storage after the count of its numbers."""
    with open(path, "rb") as file:
        if _load(file) != _OLD_FORMAT:
            raise ValueError("no file of PyTorch")
        _load(file)  # version of the format
        if not _load(file).get("little_endian", True):
            raise ValueError("numbers in big-endian order")
        storages, first, sizes = {}, {}, {}
        state = _load(file, storages)
        for key in _load(file):
            count = int.from_bytes(file.read(8), "little")
            first[key], sizes[key] = file.tell(), count * storages[key].itemsize
            if first[key] + sizes[key] > path.stat().st_size:
                raise ValueError(f"the storage {key!r} ends after the end of the file")
            file.seek(sizes[key], os.SEEK_CUR)

    def read(key):
        content = new_array((sizes[key],), np.uint8)
        with open(path, "rb", buffering=0) as file:
            file.seek(first[key])
            read_into(file, content)
        return content

    return state, sizes, read


def _load(file, storages=None):
    """The object of the next pickle in a file. `storages` is filled with the types of numbers."""

    def storage(persistent_name):
        kind, numbers, key, *rest = persistent_name
        if (
            kind != "storage"
            or type(key) is not str
            or not isinstance(numbers, np.dtype)
            or rest[2:3] not in ([], [None])
        ):
            raise ValueError("a storage is of an unknown kind")
        if storages is not None:
            storages[key] = numbers
        return _Storage(key, numbers)

    return run_pickle(file, _named, lambda function, arguments: function(*arguments), storage)


def _named(name):
    """Returns one of our stand-ins for what a pickle names."""
    module, _, inside = name.rpartition(".")
    if module == "torch" and inside in _NUMBERS:
        return _NUMBERS[inside]
    if name in _STAND_INS:
        return _STAND_INS[name]
    raise ValueError(f"it names {name:.100}, which is no tensor and no container")


def _dictionary(pairs=()):
    if any(type(name) is not str for name, _ in pairs):
        raise ValueError("a name is no text")
    return dict(pairs)


def _tensor(storage, offset, size, stride, *_):
    if type(storage) is not _Storage or any(type(number) is not int for number in (offset, *size, *stride)):
        raise ValueError("a tensor is not one of numbers in a storage")
    return _Tensor(storage, offset, size, stride)


def _parameter(tensor, *_):
    return tensor


_STAND_INS = {
    "collections.OrderedDict": _dictionary,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
}
