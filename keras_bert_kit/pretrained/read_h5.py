"""Reads HDF5 files of Keras: named arrays, each a plain block of numbers in the file itself.

HDF5 can point into other files, describe terabytes that are stored nowhere, and run filters. None of that is needed
for weights, so a dataset that does any of it is refused before it is read. `h5py` comes with Keras.
"""

import math
from collections.abc import Mapping

import numpy as np

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.memory import new_array

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
        self._datasets = {}

        def collect(name, node):  # is called for hard links only: what leads elsewhere is not followed
            if isinstance(node, h5py.Dataset):
                self._datasets[name] = node

        try:
            self._file = h5py.File(path, "r")
            self._file.visititems(collect)
            for name, dataset in self._datasets.items():
                _require_plain(name, dataset)
        except _FAULTS as error:
            raise self._damaged(error) from None

    def __getitem__(self, name):
        dataset = self._datasets[name]
        try:
            if not dataset.shape or not dataset.size:
                return np.asarray(dataset[()])
            array = new_array(dataset.shape, dataset.dtype)
            dataset.read_direct(array)
            return array
        except _FAULTS as error:
            raise self._damaged(error) from None

    def __contains__(self, name):
        return name in self._datasets

    def __iter__(self):
        return iter(self._datasets)

    def __len__(self):
        return len(self._datasets)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return self._datasets[name].shape

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        return self._datasets[name].dtype.name

    def _damaged(self, error):
        return CheckpointError(
            f"An HDF5 file must be undamaged, and its datasets plain numbers. Received: {self.path}: {error}. "
            "Fetch it again."
        )


def _require_plain(name, dataset):
    if dataset.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {dataset.dtype}, no numbers")
    if dataset.external or dataset.is_virtual:
        raise ValueError(f"{name} lies in another file")
    needed, stored = math.prod(dataset.shape) * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if stored < needed:
        raise ValueError(f"{name} needs {needed} bytes and has {stored}: it is compressed or has holes")
