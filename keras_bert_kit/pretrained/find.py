"""Finds out, by content, which program wrote a source of weights.

Each format is a module with `find(folder)`, which says whether the folder is one of its kind and which files hold the
weights, `read(folder)`, which yields a `Source`, and `FILES`, what such a folder holds.
"""

from typing import NamedTuple

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import google_tf1, hugging_face, keras_hub, tf_hub, tf_models

# In this order: a folder that holds two kinds is read as the first of them.
FORMATS = {
    "Hugging Face": hugging_face,
    "keras-hub": keras_hub,
    "TF-Hub SavedModel": tf_hub,
    "TF-Models checkpoint": tf_models,
    "original BERT": google_tf1,
}


class Found(NamedTuple):
    """A source whose kind is known.

    Attributes:
        kind: str, for people.
        path: `pathlib.Path`, what the format's `read` takes.
        weights: list of `pathlib.Path`, the files that hold the weights.
        format: the module of the format.
    """

    kind: str
    path: object
    weights: list
    format: object


def find_source(folder):
    """Finds the format of a folder.

    Args:
        folder: `pathlib.Path`.

    Returns:
        `Found`.

    Raises:
        CheckpointError: No such folder, or none of the formats is in it; the message lists what can be read.
    """
    if not folder.is_dir():
        what = "a file" if folder.exists() else "no such path"
        raise CheckpointError(
            f"source must be a folder with {hugging_face.CONFIG}, {hugging_face.VOCABULARY} and weights, or of another "
            f"kind that is read. Received: {str(folder)!r} ({what}). {kinds()}"
        )
    for module in FORMATS.values():
        if found := module.find(folder):
            return Found(*found, format=module)
    raise CheckpointError(f"{hugging_face.incomplete(folder)} Or give a folder of another kind. {kinds()}")


def kinds():
    """Returns a sentence that lists the kinds of sources and their files."""
    return "What is read: " + "; ".join(f"{name} ({module.FILES})" for name, module in FORMATS.items()) + "."
