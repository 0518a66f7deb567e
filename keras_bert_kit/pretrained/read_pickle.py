"""Reads PyTorch's `pytorch_model.bin` without PyTorch, and without running what a pickle can be made to run.

A pickle is a small program. Its instructions are listed first, and any that could call something is refused; the two
things that the rest may name are `OrderedDict` and "this is a tensor", which here makes a note of where the numbers
lie. Both formats are read: the zip file of PyTorch 1.6 and later, and the older one, pickles followed by raw numbers.

Source: torch/serialization.py of https://github.com/pytorch/pytorch; opcodes: Python's `pickletools`.
"""

import collections
import io
import math
import os
import pickle
import pickletools
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.memory import new_array, read_into

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
# Instructions that make numbers, strings and containers. REDUCE and BUILD act only on what `find_class` allows.
_ALLOWED = set(
    """PROTO FRAME STOP MARK POP GLOBAL STACK_GLOBAL REDUCE BUILD BINPERSID NONE NEWTRUE NEWFALSE INT BININT BININT1
    BININT2 LONG1 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE STRING BINSTRING SHORT_BINSTRING EMPTY_TUPLE TUPLE
    TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS GET BINGET LONG_BINGET PUT
    BINPUT LONG_BINPUT MEMOIZE""".split()
)
_OLD_FORMAT = 0x1950A86A20F9469CFC6C
_LARGEST_PICKLE_BYTES = 1 << 25  # names and shapes of a thousand layers take less than one megabyte
_FAULTS = (
    pickle.UnpicklingError,
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
        except _FAULTS as error:
            raise self._refused(error) from None

    def _require_tensor(self, name, tensor):
        if type(name) is not str or type(tensor) is not _Tensor:
            raise ValueError(f"{name!r} is a {type(tensor).__name__}")
        integers = (tensor.offset, *tensor.size, *tensor.stride)
        if any(type(number) is not int or number < 0 for number in integers) or len(tensor.size) != len(tensor.stride):
            raise ValueError(f"{name!r} has no valid shape: {tensor.size}, {tensor.stride}")
        count = math.prod(tensor.size)
        last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.size, tensor.stride, strict=True))
        held = self._sizes[tensor.storage.key] // tensor.storage.numbers.itemsize
        if count > held or (count and last >= held):
            raise ValueError(f"{name!r} is larger than its {held} numbers: {tensor.size}")

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
    """The object of the next pickle in a file, after a look at all its instructions."""
    start = file.tell()
    for count, (operation, argument, _) in enumerate(pickletools.genops(file)):
        if operation.name not in _ALLOWED:
            raise ValueError(f"the instruction {operation.name} of the pickle is not allowed")
        if "PUT" in operation.name and argument > count:  # the unpickler would make a table of that length
            raise ValueError(f"the pickle stores something at place {argument} after {count} instructions")
        if file.tell() - start > _LARGEST_PICKLE_BYTES:
            raise ValueError("the pickle is too long")
    length = file.tell() - start
    file.seek(start)
    return _TensorsOnly(io.BytesIO(file.read(length)), {} if storages is None else storages).load()


class _TensorsOnly(pickle.Unpickler):
    """Unpickles containers, and tensors as notes of where they lie. `storages` is filled with types of numbers."""

    def __init__(self, file, storages):
        super().__init__(file)
        self._storages = storages

    def find_class(self, module, name):
        """Returns one of our stand-ins, whatever the pickle names."""
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor"):
            return _tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _parameter
        if module == "torch" and name in _NUMBERS:
            return _NUMBERS[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}, which is no tensor and no container")

    def persistent_load(self, pid):
        """Returns what a tensor's numbers are: their key and type."""
        kind, numbers, key, *rest = pid
        if kind != "storage" or not isinstance(numbers, np.dtype) or (len(rest) > 2 and rest[2] is not None):
            raise pickle.UnpicklingError(f"a storage of an unknown kind: {pid!r}")
        self._storages[str(key)] = numbers
        return _Storage(str(key), numbers)


def _tensor(storage, offset, size, stride, *_):
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return _Tensor(storage, offset, tuple(size), tuple(stride))


def _parameter(tensor, *_):
    return tensor
