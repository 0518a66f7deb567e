"""Reads weights in several files with an index beside them, as Hugging Face writes large models.

The index is a JSON file: `{"weight_map": {"name of a tensor": "name of its file", …}}`.
"""

from collections.abc import Mapping

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.source import read_json


class Shards(Mapping):
    """The arrays of all files of an index by name.

    Args:
        path: `pathlib.Path` of the index.
        open_file: function from the path of a file to a mapping from names to arrays.

    Raises:
        CheckpointError: A file or a tensor is missing, or one is there that the index does not know.
    """

    def __init__(self, path, open_file):
        self.path = path
        places = _weight_map(path)
        self._files = {file.name: open_file(file) for file in files_of(path)}
        inside = {name: file for file, arrays in self._files.items() for name in arrays}
        for name in places.keys() | inside.keys():
            if places.get(name) != inside.get(name):
                raise CheckpointError(
                    f"The shards must hold what {path} says. Received: {name!r}, in {places.get(name, 'no file')} by "
                    f"the index, found in {inside.get(name, 'none')}. Fetch the files again, all from one place."
                )
        self._places = places

    def __getitem__(self, name):
        return self._files[self._places[name]][name]

    def __contains__(self, name):
        return name in self._places

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return self._files[self._places[name]].shape(name)

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        return self._files[self._places[name]].dtype(name)


def files_of(path):
    """Returns the paths of the files that an index names.

    Raises:
        CheckpointError: Some of them are missing; the message lists them.
    """
    files = [path.parent / name for name in sorted(set(_weight_map(path).values()))]
    if missing := [file.name for file in files if not file.is_file()]:
        raise CheckpointError(
            f"All files that {path} names must be there. Missing: {', '.join(missing)}. Copy them into {path.parent}."
        )
    return files


def _weight_map(path):
    places = read_json(path).get("weight_map")
    names = [*places, *places.values()] if isinstance(places, dict) else [None]
    if not all(isinstance(name, str) for name in names) or not all(_is_plain(file) for file in places.values()):
        raise CheckpointError(f"{path} must hold a weight_map from names of tensors to names of files beside it.")
    return places


def _is_plain(name):
    """Says whether a name can only be that of a file in the folder."""
    return 0 < len(name) < 256 and not set(name) & set("/\\:\0")
