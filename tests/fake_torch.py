"""Writes `pytorch_model.bin` as PyTorch does, in its format of today and in the one before 1.6, without PyTorch.

The pickles name `torch.FloatStorage` and `torch._utils._rebuild_tensor_v2`; for the time of writing there are modules
of those names, which hold nothing.
"""

import collections
import io
import pickle
import sys
import types
import zipfile
from unittest import mock

import numpy as np

_STORAGES = {"float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage"}


class Raw:
    """Something to pickle as a tensor: an array, or a view into the storage of another one."""

    def __init__(self, key, array, offset=0, size=None, stride=None):
        self.key, self.array, self.offset = key, array, offset
        self.size = array.shape if size is None else size
        self.stride = tuple(step // array.itemsize for step in array.strides) if stride is None else stride


def write_torch(path, tensors, *, old_format=False, compress=False, byteorder=b"little"):
    """Writes a file with named arrays; values that are no arrays are pickled as they are."""
    state = collections.OrderedDict()
    for key, (name, value) in enumerate(tensors.items()):
        state[name] = Raw(str(key), value) if isinstance(value, np.ndarray) else value
    storages = {value.key: value.array for value in state.values() if isinstance(value, Raw)}
    if old_format:
        with open(path, "wb") as file:
            for value in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}):
                pickle.dump(value, file, protocol=2)
            file.write(pickled(state, (None,)))
            pickle.dump(list(storages), file, protocol=2)
            for array in storages.values():
                file.write(array.size.to_bytes(8, "little") + array.tobytes())
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickled(state))
        archive.writestr("archive/byteorder", byteorder)
        for key, array in storages.items():
            archive.writestr(f"archive/data/{key}", array.tobytes())


def write_pickle(path, content):
    """Writes a file of today's format whose data.pkl is given, with one storage of ten numbers."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/data/0", bytes(40))


def pickled(value, more=()):
    """The pickle of containers with `Raw` in them; `more` is what stands at the end of a storage's description."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in _STORAGES.values():
        setattr(torch, name, type(name, (), {"__module__": "torch"}))

    def _rebuild_tensor_v2():
        """Is named in the pickle, and never called."""

    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            if not isinstance(value, Raw):
                return NotImplemented
            storage = Storage(value.key, value.array)
            hooks = collections.OrderedDict()
            return _rebuild_tensor_v2, (storage, value.offset, tuple(value.size), tuple(value.stride), False, hooks)

        def persistent_id(self, value):
            if not isinstance(value, Storage):
                return None
            kind = getattr(torch, _STORAGES[value.array.dtype.name])
            return ("storage", kind, value.key, "cpu", value.array.size, *more)

    buffer = io.BytesIO()
    with mock.patch.dict(sys.modules, {"torch": torch, "torch._utils": utils}):
        Pickler(buffer, protocol=2).dump(value)
    return buffer.getvalue()


class Storage:
    def __init__(self, key, array):
        self.key, self.array = key, array
