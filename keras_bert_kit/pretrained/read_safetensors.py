"""Reads `.safetensors` files: named arrays, one at a time, with no code executed.

The library checks the header (offsets within the file, no overlap, no hole, sizes that fit the shapes) before any
array is read. Source: https://github.com/huggingface/safetensors.
"""

from collections.abc import Mapping

from safetensors import SafetensorError, safe_open

from keras_bert_kit.errors import CheckpointError


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
            self._file = safe_open(path, framework="numpy")
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"A .safetensors file must be complete and undamaged. Received: {path}: {error}. Fetch it again."
            ) from None
        self._names = list(self._file.keys())

    def __getitem__(self, name):
        try:
            return self._file.get_tensor(name)
        except (SafetensorError, TypeError) as error:
            raise CheckpointError(f"{self.path}: the tensor {name!r} cannot be read: {error}.") from None

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return tuple(self._file.get_slice(name).get_shape())
