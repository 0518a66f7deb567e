"""`export_for_serving`: a trained classifier as a SavedModel that takes raw text and needs nothing on the server.

    saved_models/ag_news/          the model's name, what TF Serving is pointed at
        1/  2/  3/                 versions; the largest number is served
            saved_model.pb         the graph: tokenizer, encoder, head, class names
            variables/             the weights, where they are not constants of the graph
            assets.extra/kit.json  class names, checksums, ops: for `Predictor` and for people

The graph holds ops of core TensorFlow only, so that TF Serving, Triton, the C library and plain Python load it alike.
"""

import contextlib
import hashlib
import json
import math
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import ExportError
from keras_bert_kit.files import folder_written_beside, require_writable, sha256_of
from keras_bert_kit.models import BertClassifier
from keras_bert_kit.serving import check
from keras_bert_kit.serving.ops import require_core_ops
from keras_bert_kit.text import BertPacker
from keras_bert_kit.version import __version__

KIT_FILE = Path("assets.extra", "kit.json")  # TF Serving leaves assets.extra alone

# Up to this size weights become constants of the graph, which lets a server's optimizer fuse LayerNorm as well. Loading
# them takes a multiple of their size in memory (BERT-base: 6.6 GB where variables took 1.1 GB, measured by the resident
# size of a process that loads one), and above 2 GB a graph with constants cannot be written at all.
LARGEST_CONSTANTS_BYTES = 256 * 2**20


def export_for_serving(model, pack, path):
    """Writes a classifier, with its tokenizer, as the next version of a served model.

    The signature `serving_default` takes `text`, string (batch,), and returns
        `label`: string (batch,), the name of the most probable class;
        `probabilities`: float32 (batch, classes), each row sums to 1;
        `logits`: float32 (batch, classes).
    A batch is padded to its longest text, whatever `pack` does in training; longer texts are cut where it cuts them.

    The version is written beside its place, loaded in a fresh process that has only TensorFlow, compared there with
    `model`, and only then renamed into its place. A server that watches the folder sees all of it or nothing; after an
    error, or a kill at any moment, the versions are what they were.

    Args:
        model: `BertClassifier`, with its trained weights.
        pack: `BertPacker` that the model was trained with.
        path: folder of the model, which holds its versions, for example "saved_models/ag_news". Made if absent.

    Returns:
        Path of the version written: `path`/1, or one more than the largest number there.

    Raises:
        ExportError: model and pack do not fit together, the folder cannot be written to, the graph holds an op that
            servers lack, or the exported model answers something else than `model`. Nothing is left behind.

    Example:

    >>> version = export_for_serving(classifier, pack, "saved_models/ag_news")
    >>> Predictor(version).predict("Shares rise after the merger")[0].label
    'Business'
    """
    path = Path(path)
    _require_exportable(model, pack)
    _require_place(path)
    texts = check.check_texts(pack.tokenizer.vocabulary)
    expected = check.trained_probabilities(model, pack, texts)
    if expected.shape[1] != len(model.class_names) or not np.isfinite(expected).all():
        raise ExportError(
            "A model must give one finite probability for each of its class names. Received: probabilities of shape "
            f"{expected.shape}, {len(model.class_names)} names, {np.isnan(expected).sum()} NaN. Look at its training."
        )
    half_precision = model.compute_dtype != "float32"
    tolerance = check.TOLERANCE_OF_HALF_PRECISION if half_precision else check.TOLERANCE
    version = path / str(max(version_numbers(path), default=0) + 1)
    try:
        with _absent_folders_removed(path), folder_written_beside(version) as beside:
            _write_saved_model(model, pack, beside)
            _write_kit_file(model, pack, beside, ops=require_core_ops(beside))
            check.require_same_answers(beside, texts, expected, model.class_names, tolerance)
    except (OSError, tf.errors.OpError) as error:
        raise ExportError(
            f"The folder must be one that can be written to. Received: {str(path)!r}, {error}. Nothing was changed."
        ) from error
    return version


def version_numbers(path):
    """The numbers of the versions in a model's folder, as list of int; empty if there is no such folder."""
    path = Path(path)
    names = [child.name for child in path.iterdir()] if path.is_dir() else []
    return [int(name) for name in names if name.isascii() and name.isdigit()]


def _require_exportable(model, pack):
    """Checks that a model and a packer fit together; all faults in one message."""
    names = getattr(model, "class_names", None)
    if not isinstance(model, BertClassifier) or not all(isinstance(name, str) for name in names):
        raise ExportError(
            "A served model must be a BertClassifier, with strings for class_names. "
            f"Received: a {type(model).__name__} with class_names={names!r}. Keep other models with save_pretrained."
        )
    if not isinstance(pack, BertPacker):
        raise ExportError(f"pack must be the BertPacker of the training. Received: a {type(pack).__name__}.")
    config, faults = model.encoder.config, []
    if pack.tokenizer.vocab_size > config.vocab_size:
        faults.append(
            f"the word table must have a row for each token of the vocabulary. Received: "
            f"{pack.tokenizer.vocab_size} tokens, {config.vocab_size} rows. Use the vocabulary the model came with"
        )
    if _longest(pack) > config.max_position_embeddings:
        faults.append(
            f"sequences must not be longer than the position table. Received: {_longest(pack)} tokens, "
            f"{config.max_position_embeddings} rows. Shorten max_sequence_length of the packer"
        )
    if faults:
        raise ExportError("Model and packer do not fit together: " + "; ".join(faults) + ".")


def _require_place(path):
    """Checks, before any work, that versions can be written below `path` and loaded from there."""
    place = str(path.resolve())
    if ":/" in str(path) or set("*?[") & set(place):
        raise ExportError(
            "The folder must be a local one without the signs * ? [ in its path, which TensorFlow takes for patterns. "
            f"Received: {str(path)!r}."
        )
    if (path / "saved_model.pb").exists():
        raise ExportError(f"The folder must be that of the model, not of a version. Received: {str(path)!r}.")
    try:
        require_writable(path)
    except OSError as error:
        raise ExportError(str(error)) from None


@contextlib.contextmanager
def _absent_folders_removed(path):
    """Takes folders that an export made on its way to `path` away again if it fails."""
    absent = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        yield
    except BaseException:
        for folder in absent:
            with contextlib.suppress(OSError):  # not made, or no longer empty
                folder.rmdir()
        raise


def _longest(pack):
    """Tokens at which a packer cuts a text."""
    return pack.sequence_length or pack.max_sequence_length


def _write_saved_model(model, pack, folder):
    """Writes the graph from text to answers."""
    to_longest = BertPacker(pack.tokenizer, None, max_sequence_length=_longest(pack), truncation=pack.truncation)
    module = tf.Module()
    module.trainable, module.fixed = _weights(model)

    def answer(text):
        inputs = to_longest(text)
        logits, _ = model.stateless_call(list(module.trainable), list(module.fixed), inputs, training=False)
        logits = tf.cast(logits, tf.float32)  # (B, C)
        label = tf.gather(tf.constant(model.class_names), tf.argmax(logits, axis=-1))
        return {"label": label, "probabilities": tf.nn.softmax(logits), "logits": logits}

    text = tf.TensorSpec([None], tf.string, name="text")
    signature = tf.function(answer, input_signature=[text], autograph=False)
    tf.saved_model.save(module, str(folder), signatures={"serving_default": signature})


def _weights(model):
    """Copies of a model's trainable and other weights: constants, or variables where they are large."""
    groups = model.trainable_variables, model.non_trainable_variables
    make = tf.constant if _has_constants(model) else (lambda value: tf.Variable(value, trainable=False))
    with tf.device("CPU:0"):
        return [[make(variable.numpy()) for variable in group] for group in groups]


def _has_constants(model):
    """Whether the weights are small enough to become constants."""
    num_bytes = sum(math.prod(weight.shape) * tf.as_dtype(weight.dtype).size for weight in model.variables)
    return num_bytes <= LARGEST_CONSTANTS_BYTES


def _write_kit_file(model, pack, folder, ops):
    """Writes what the graph itself does not say."""
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    content = {
        "kit_version": __version__,
        "tensorflow_version": tf.__version__,
        "class_names": list(model.class_names),
        "vocabulary_sha256": hashlib.sha256("".join(f"{t}\n" for t in pack.tokenizer.vocabulary).encode()).hexdigest(),
        "max_sequence_length": _longest(pack),
        "weights": "constants" if _has_constants(model) else "variables",
        "ops": ops,
        "sha256": {path.relative_to(folder).as_posix(): sha256_of(path) for path in written},
    }
    path = folder / KIT_FILE
    path.parent.mkdir()
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
