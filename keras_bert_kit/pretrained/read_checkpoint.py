"""Reads TensorFlow checkpoints (`<prefix>.index` and `<prefix>.data-…`): named arrays, with no graph executed.

The index is looked at first (`checkpoint_index.py`): shapes must fit the size of the files, before any array is made.
Then TensorFlow's reader checks a CRC of every block and every tensor. Object checkpoints keep, beside the arrays, a
graph of Python objects; `variable_names` reads the names of variables out of it.
"""

import collections
import re
from collections.abc import Mapping

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.checkpoint_index import require_sound_index

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


class CheckpointFile(Mapping):
    """The arrays of a checkpoint by name; each is read from the disk when it is asked for.

    Args:
        path: `pathlib.Path`, the prefix of the files, such as `folder/bert_model.ckpt`.

    Raises:
        CheckpointError: Files are missing or damaged, or hold less than the index says.
    """

    def __init__(self, path):
        self.path = path
        sizes = [file.stat().st_size for file in data_files(path)]
        self._guarded(require_sound_index, path.with_name(path.name + ".index"), sizes)
        # Not `tf.train.load_checkpoint`: given a folder, that would follow the path in its file `checkpoint`.
        self._reader = self._guarded(tf.compat.v1.train.NewCheckpointReader, str(path))
        self._shapes = self._guarded(self._reader.get_variable_to_shape_map)
        types = self._guarded(self._reader.get_variable_to_dtype_map)
        numbers = {name: kind for name, kind in types.items() if kind.is_floating or kind.is_integer or kind.is_bool}
        self._dtypes = {name: kind.name for name, kind in numbers.items()}

    def __getitem__(self, name):
        return self._guarded(self._reader.get_tensor, name)

    def __contains__(self, name):
        return name in self._dtypes

    def __iter__(self):
        return iter(self._dtypes)

    def __len__(self):
        return len(self._dtypes)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return tuple(self._shapes[name])

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        return self._dtypes[name]

    def variable_names(self):
        """Reads the object graph: what each array was called as a variable.

        Returns:
            Dictionary from the names of this mapping to those of variables, such as `word_embeddings/embeddings`. What
            hangs on the root itself goes by the name it has there (`do_lower_case`); slots of an optimizer, and
            variables whose name others have too, go by their key.
        """
        graph = TrackableObjectGraph()
        try:
            graph.ParseFromString(self[OBJECT_GRAPH])
        except (DecodeError, TypeError) as error:
            raise CheckpointError(f"{self.path}: the object graph cannot be read: {error}.") from None
        names = {name: name for name in self}
        for attribute in (attribute for node in graph.nodes for attribute in node.attributes):
            key, path = attribute.checkpoint_key, attribute.checkpoint_key.removesuffix(_VALUE)
            if "/" not in path:
                names[key] = path
            elif attribute.full_name and not is_slot(key):
                names[key] = attribute.full_name
        times = collections.Counter(names.values())
        return {key: name if times[name] == 1 else key for key, name in names.items()}

    def _guarded(self, read, *arguments):
        try:
            return read(*arguments)
        except (tf.errors.OpError, LookupError, OSError, ValueError, TypeError, RuntimeError) as error:
            what = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise CheckpointError(
                f"A checkpoint must be complete and undamaged. Received: {self.path}: {what}. Fetch it again."
            ) from None


def is_slot(name):
    """Says whether a tensor belongs to an optimizer or counts steps, and is no weight."""
    return (
        "/.OPTIMIZER_SLOT/" in name
        or name.startswith(("optimizer/", "save_counter", "global_step"))
        or name.endswith(("/adam_m", "/adam_v", "/Adam", "/Adam_1"))
        or name in ("beta1_power", "beta2_power")
    )


def slots_among(names):
    """Returns the names for which `is_slot` holds, each with the reason why it is left out."""
    return {name: "of the optimizer or a count of steps, no weight" for name in names if is_slot(name)}


def data_files(prefix):
    """Returns the files `<prefix>.data-00000-of-00001`, ….

    Raises:
        CheckpointError: Some of them are missing.
    """
    files = sorted(prefix.parent.glob(f"{_escaped(prefix.name)}.data-?????-of-?????"))
    total = int(files[0].name[-5:]) if files and files[0].name[-5:].isdigit() else 1
    if len(files) != total:
        names = ", ".join(file.name for file in files) or "none"
        raise CheckpointError(
            f"A checkpoint needs all its files {prefix.name}.data-…. Received: {names} of {total} in {prefix.parent}. "
            "Copy the missing files there."
        )
    return files


def find_checkpoint(folder):
    """Finds the one checkpoint in a folder, wherever it was when its file `checkpoint` was written.

    Args:
        folder: `pathlib.Path`.

    Returns:
        None if there is none, or pair of its prefix, a `pathlib.Path`, and a list of notes for the report.

    Raises:
        CheckpointError: There are several, and no file `checkpoint` that says which.
    """
    prefixes = [path.with_suffix("") for path in sorted(folder.glob("*.index"))]
    if not prefixes:
        return None
    recorded = _recorded_path(folder / "checkpoint")
    last_part = re.split(r"[/\\]", recorded)[-1]
    notes = []
    if recorded != last_part:
        notes.append(f"the file checkpoint records {recorded}; that path was not used, only this folder")
    chosen = [prefix for prefix in prefixes if len(prefixes) == 1 or prefix.name == last_part]
    if not chosen:
        raise CheckpointError(
            f"A folder must hold one checkpoint, or a file checkpoint that names one of them. Received: "
            f"{', '.join(prefix.name for prefix in prefixes)} in {folder}. Move the others elsewhere."
        )
    if len(prefixes) > 1:
        notes.append(f"{chosen[0].name}, the latest by the file checkpoint, of {len(prefixes)} checkpoints")
    return chosen[0], notes


def _recorded_path(path):
    """What a text file `checkpoint` says is the latest checkpoint, or an empty string."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    found = re.search(r'^model_checkpoint_path: "(.*)"', text, re.MULTILINE)
    return found[1] if found else ""


def _escaped(name):
    return re.sub(r"([*?[])", r"[\1]", name)
