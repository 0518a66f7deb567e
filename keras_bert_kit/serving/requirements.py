"""What has to hold before an export starts: checked at once, each fault with what to do about it."""

import math
from collections.abc import Collection

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import ExportError
from keras_bert_kit.files import require_writable
from keras_bert_kit.models import BertClassifier
from keras_bert_kit.serving.signatures import EMBEDDINGS, LONG_TEXTS, SIGNATURES
from keras_bert_kit.text import BertPacker
from keras_bert_kit.text.packer import fault_of_max_windows

LARGEST_GRAPH_BYTES = 2**31 - 2**26  # a message of protobuf, less what is not weights


def require_exportable(model, pack):
    """Checks that a model and a packer fit together; all faults in one message."""
    names = getattr(model, "class_names", None)
    if not isinstance(model, BertClassifier) or not all(isinstance(name, str) for name in names):
        raise ExportError(
            "A served model must be a BertClassifier, with strings for class_names. "
            f"Received: a {type(model).__name__} with class_names={names!r}. Keep other models with save_pretrained; "
            "to serve the embeddings of an encoder, put a BertClassifier on it."
        )
    if not isinstance(pack, BertPacker):
        raise ExportError(f"pack must be the BertPacker of the training. Received: a {type(pack).__name__}.")
    config, faults = model.encoder.config, []
    if pack.tokenizer.vocab_size > config.vocab_size:
        faults.append(
            f"the word table must have a row for each token of the vocabulary. Received: "
            f"{pack.tokenizer.vocab_size} tokens, {config.vocab_size} rows. Use the vocabulary the model came with"
        )
    if longest(pack) > config.max_position_embeddings:
        faults.append(
            f"sequences must not be longer than the position table. Received: {longest(pack)} tokens, "
            f"{config.max_position_embeddings} rows. Shorten max_sequence_length of the packer"
        )
    if faults:
        raise ExportError("Model and packer do not fit together: " + "; ".join(faults) + ".")


def require_settings(model, signatures, long_text, max_windows, embedding, freeze, quantize, calibration_texts):
    """Checks the arguments that say what is exported; all faults in one message."""
    faults = []
    names = () if isinstance(signatures, str) or not isinstance(signatures, Collection) else tuple(signatures)
    if "serving_default" not in names or not all(name in SIGNATURES for name in names):
        faults.append(f"signatures must be of {SIGNATURES}, and serving_default among them. Received: {signatures!r}")
    if "pairs" in names and model.encoder.config.type_vocab_size < 2:
        faults.append("pairs need a type for each segment. Received: a model with type_vocab_size=1")
    if long_text not in LONG_TEXTS:
        faults.append(f"long_text must be one of {LONG_TEXTS}. Received: {long_text!r}")
    if embedding not in EMBEDDINGS:
        faults.append(f"embedding must be one of {EMBEDDINGS}. Received: {embedding!r}")
    if fault := fault_of_max_windows(max_windows):
        faults.append(fault)
    if quantize not in (None, "int8"):
        faults.append(f"quantize must be None or 'int8'. Received: {quantize!r}")
    if quantize is None and calibration_texts is not None:
        faults.append("calibration_texts are for quantize='int8'. Received: quantize=None")
    if freeze and num_bytes(model) > LARGEST_GRAPH_BYTES:
        faults.append(f"weights above {LARGEST_GRAPH_BYTES:,} bytes cannot be constants. Received: freeze=True")
    if tf.config.functions_run_eagerly():
        faults.append("an export makes graphs. Received: tf.config.run_functions_eagerly(True). Set it to False")
    if faults:
        raise ExportError("; ".join(faults) + ".")


def require_strings(class_names, weights_source):
    """Checks that a graph can hold the strings that it answers with. NumPy drops a NUL at an end."""
    for what, text in [*(("each class name", name) for name in class_names), ("weights_source", weights_source)]:
        if not isinstance(text, str) or "\0" in text or text != text.encode(errors="replace").decode():
            raise ExportError(f"{what} must be a str that UTF-8 can encode, without NUL. Received: {text!r}.")


def require_answers(probabilities, class_names):
    """Checks that the trained model itself gives numbers, one for each class."""
    if probabilities.shape[1] != len(class_names) or not np.isfinite(probabilities).all():
        raise ExportError(
            "A model must give one finite probability for each of its class names. Received: probabilities of shape "
            f"{probabilities.shape}, {len(class_names)} names, {np.isnan(probabilities).sum()} NaN. Look at its "
            "training."
        )


def require_place(path):
    """Checks, before any work, that versions can be written below `path` and loaded from there."""
    place = path.resolve().as_posix()
    if ":/" in str(path) or set("*?[\\") & set(place):
        raise ExportError(
            "The folder must be a local one without the signs * ? [ \\ in its path, which TensorFlow takes for "
            f"patterns. Received: {str(path)!r}."
        )
    if (path / "saved_model.pb").exists():
        raise ExportError(f"The folder must be that of the model, not of a version. Received: {str(path)!r}.")
    try:
        require_writable(path)
    except OSError as error:
        raise ExportError(str(error)) from None


def longest(pack):
    """Tokens at which a packer cuts a text."""
    return pack.sequence_length or pack.max_sequence_length


def num_bytes(model):
    """Bytes of all weights in the graph."""
    return sum(math.prod(variable.shape) * dtype_in_graph(model, variable).size for variable in model.variables)


def dtype_in_graph(model, variable):
    """The dtype in which a weight is exported: matrices as they are multiplied, others as they were trained."""
    return tf.as_dtype(model.compute_dtype if variable.path.endswith("/kernel") else variable.dtype)
