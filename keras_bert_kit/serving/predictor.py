"""`Predictor`: an exported model in Python, loaded once."""

import json
from pathlib import Path

import tensorflow as tf

from keras_bert_kit.errors import ExportError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.serving.export import KIT_FILE, version_numbers
from keras_bert_kit.serving.predictions import answer_in_batches, prediction_of
from keras_bert_kit.text.texts import as_texts


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
        self.class_names = _read_class_names(self.version_folder)
        self._model = tf.saved_model.load(str(self.version_folder))
        self._answer = self._model.signatures["serving_default"]

    def predict(self, texts, batch_size=32):
        """Answers texts, in their order.

        Args:
            texts: str (one text), list of str, NumPy array or tensor of strings of rank 1. Empty text is a text.
            batch_size: int, texts at a time. Texts of similar length share a batch; an answer does not depend on it.

        Returns:
            list of `Prediction`, one for each text; empty for an empty list.

        Raises:
            ValueError: something is not a string (None, NaN: its position is named), or the rank is above 1.
        """

        def answer(batch):
            rows = self._answer(text=tf.constant(batch))["probabilities"].numpy()
            return [prediction_of(row, self.class_names) for row in rows]

        return answer_in_batches(as_texts(texts).numpy(), answer, batch_size)


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


def _read_class_names(folder):
    """The names that the export wrote beside the graph, after a check that every file is what was exported.

    TensorFlow keeps no checksum of a graph: with one bit changed it may load, and answer something else.
    """
    try:
        content = json.loads((folder / KIT_FILE).read_text(encoding="utf-8"))
        class_names = tuple(content["class_names"])
        changed = [name for name, sha256 in content["sha256"].items() if sha256_of(folder / name) != sha256]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ExportError(
            f"{folder} must be a whole version written by export_for_serving, with {KIT_FILE.as_posix()}. "
            f"Received: {error!r}. Export it again, or copy all of it."
        ) from error
    if changed:
        raise ExportError(
            f"The files of {folder} must be as they were exported. Received: changed {', '.join(changed)}. "
            "Export it again, or copy all of it."
        )
    return class_names
