"""Reads HDF5 files of Keras: named arrays, each a plain block of numbers in the file itself.

HDF5 can point into other files, describe terabytes that are stored nowhere, and run filters. None of that is needed
for weights, so a dataset that does any of it is refused before it is read. `h5py` comes with Keras.
"""

import math
from collections.abc import Mapping

import numpy as np

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.memory import new_array

_MOST_OBJECTS, _DEEPEST = 5000, 32  # a large BERT with an optimizer has two thousand
_FAULTS = (OSError, RuntimeError, LookupError, ValueError, TypeError, ArithmeticError)


class H5File(Mapping):
    """The arrays of a file by the path of each dataset; each is read from the disk when it is asked for.

    Args:
        path: `pathlib.Path` of the file.

    Raises:
        CheckpointError: The file is damaged, or a dataset is anything but numbers in this file.
    """

    def __init__(self, path):
        import h5py

        self.path = path
        self._shapes, self._dtypes, places = {}, {}, []
        try:
            self._file = h5py.File(path, "r")
            for name, dataset in _datasets_below(self._file):
                _require_plain(name, dataset)
                self._shapes[name], self._dtypes[name] = dataset.shape, dataset.dtype
                if dataset.id.get_offset() is not None:
                    places.append((dataset.id.get_offset(), dataset.id.get_storage_size(), name))
            _require_apart(sorted(places))
        except _FAULTS as error:
            raise self._damaged(error) from None

    def __getitem__(self, name):
        shape, dtype = self._shapes[name], self._dtypes[name]
        try:
            if not math.prod(shape):
                return np.asarray(self._file[name][()])
            array = new_array(shape, dtype)
            self._file[name].read_direct(array)
            return array
        except _FAULTS as error:
            raise self._damaged(error) from None

    def __contains__(self, name):
        return name in self._shapes

    def __iter__(self):
        return iter(self._shapes)

    def __len__(self):
        return len(self._shapes)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return self._shapes[name]

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        return self._dtypes[name].name

    def _damaged(self, error):
        return CheckpointError(
            f"An HDF5 file must be undamaged, and its datasets plain numbers. Received: {self.path}: {error}. "
            "Fetch it again."
        )


def _datasets_below(file):
    """Pairs of path and dataset. Only hard links are followed: what leads elsewhere is no part of the file."""
    import h5py

    waiting, count = [("", file, 0)], 0
    while waiting:
        path, group, depth = waiting.pop()
        for name in group:
            count += 1
            if count > _MOST_OBJECTS or depth > _DEEPEST:
                raise ValueError(f"it holds more than {_MOST_OBJECTS} objects, or groups in groups in {path:.100}")
            if isinstance(group.get(name, getlink=True), h5py.HardLink):
                node = group[name]
                if isinstance(node, h5py.Group):
                    waiting.append((f"{path}{name}/", node, depth + 1))
                elif isinstance(node, h5py.Dataset):
                    yield path + name, node


def _require_apart(places):
    """Refuses datasets that share bytes; `places` are sorted triples of offset, size and name."""
    for (offset, size, name), (following, _, other) in zip(places, places[1:], strict=False):
        if size and offset + size > following:
            raise ValueError(f"{name} and {other} lie in the same place")


def _require_plain(name, dataset):
    if dataset.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {dataset.dtype}, no numbers")
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{name} lies in another file")
    if dataset.shape is None:
        raise ValueError(f"{name} has no shape")
    needed, stored = math.prod(dataset.shape) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if stored < needed:
        raise ValueError(f"{name} needs {needed} bytes and has {stored}: it is compressed or has holes")
