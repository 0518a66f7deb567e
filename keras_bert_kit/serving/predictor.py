"""`Predictor`: an exported model in Python, loaded once."""

import json
from pathlib import Path

import tensorflow as tf

from keras_bert_kit.errors import ExportError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.serving.export import KIT_FILE, version_numbers
from keras_bert_kit.serving.predictions import answer_in_batches, prediction_of, signature_for
from keras_bert_kit.serving.signatures import INPUTS

_ALWAYS_THERE = {"class_names": list, "sha256": dict, "max_sequence_length": int}  # in kit.json, with their types
# What exports did before they said so in their kit.json.
_OLDER = {
    "dtype": "float32",
    "signatures": ["serving_default"],
    "long_text": "truncate",
    "max_windows": 64,
    "truncation": "longest_first",
    "embedding": "mean",
    "quantize": None,
}


class Predictor:
    """Answers texts with a model that `export_for_serving` wrote.

    The model is loaded when the object is made; nothing is traced or read again afterwards. Answers are those of a
    server with the same files. May be used by several threads at once.

    Args:
        path: folder of the model, of which the largest version is taken, or folder of a version.

    Raises:
        ExportError: there is no exported model, or a file of it is missing or was changed.

    Example:

    >>> predictor = Predictor("saved_models/ag_news")
    >>> predictor.predict(["Shares rise after the merger", "Home team wins"])[1].label
    'Sports'
    """

    def __init__(self, path):
        self.version_folder = newest_version(Path(path))
        kit_file = read_kit_file(self.version_folder)
        _require_unchanged(self.version_folder, kit_file["sha256"])
        self.class_names = tuple(kit_file["class_names"])
        self._model = tf.saved_model.load(str(self.version_folder))
        classes = self._model.signatures["serving_default"].structured_outputs["probabilities"].shape[1]
        if classes != len(self.class_names):
            raise ExportError(
                f"{self.version_folder} must have a name for each of its {classes} classes. Received: "
                f"{len(self.class_names)} class_names in {KIT_FILE.as_posix()}. Export it again, or copy all of it."
            )

    def predict(self, texts, batch_size=32):
        """Answers texts, in their order.

        Args:
            texts: str (one text), list of str, NumPy array or tensor of strings of rank 1. Empty text is a text. Or a
                tuple of two such, the two segments, as for `BertPacker`, if the version has the signature `pairs`.
            batch_size: int, texts at a time. Texts of similar length share a batch; an answer does not depend on it.

        Returns:
            list of `Prediction`, one for each text; empty for an empty list.

        Raises:
            ValueError: something is not a string (None, NaN: its position is named), the rank is above 1, or pairs are
                given to a version without that signature.
        """
        signature, segments = signature_for(texts)
        if signature not in self._model.signatures:
            raise ValueError(
                f"A tuple holds two segments, and needs a version with the signature {signature!r}. Received: "
                f"{self.version_folder}, with {', '.join(self._model.signatures)}. Give texts as a list, or "
                "export the model with that signature."
            )

        def answer(*batch):
            inputs = dict(zip(INPUTS[signature], map(tf.constant, batch), strict=True))
            rows = self._model.signatures[signature](**inputs)["probabilities"].numpy()
            return [prediction_of(row, self.class_names) for row in rows]

        return answer_in_batches(segments, answer, batch_size)


def newest_version(path):
    """The folder of a version: `path` itself, or the one with the largest number in it."""
    if (path / "saved_model.pb").is_file():
        return path
    names = [child.name for child in path.iterdir()] if path.is_dir() else []
    if not (numbers := version_numbers(path)):
        raise ExportError(
            "The folder must hold a model written by export_for_serving: versions 1, 2, …, or one of them. "
            f"Received: {str(path)!r}, {'with ' + ', '.join(names[:10]) if names else 'which is absent or empty'}."
        )
    return next(path / name for name in names if name.isascii() and name.isdigit() and int(name) == max(numbers))


def read_kit_file(folder):
    """What an export wrote beside its graph, as a dictionary; what it was before exports said it, where one does not.

    Raises:
        ExportError: the file is missing, damaged, or lacks what every export wrote.
    """
    try:
        content = json.loads((folder / KIT_FILE).read_text(encoding="utf-8"))
        found = {name: type(content[name]) for name in _ALWAYS_THERE}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _not_whole(folder, repr(error)) from error
    if found != _ALWAYS_THERE:
        raise _not_whole(folder, ", ".join(f"{name} of type {kind.__name__}" for name, kind in found.items()))
    return _OLDER | content


def _require_unchanged(folder, sha256s):
    """Checks that every file is what was exported.

    TensorFlow keeps no checksum of a graph: with one bit changed it may load, and answer something else.
    """
    try:
        changed = [name for name, sha256 in sha256s.items() if sha256_of(folder / name) != sha256]
    except OSError as error:
        raise _not_whole(folder, repr(error)) from error
    if changed:
        raise ExportError(
            f"The files of {folder} must be as they were exported. Received: changed {', '.join(changed)}. "
            "Export it again, or copy all of it."
        )


def _not_whole(folder, received):
    return ExportError(
        f"{folder} must be a whole version written by export_for_serving, with {KIT_FILE.as_posix()}. "
        f"Received: {received}. Export it again, or copy all of it."
    )
