"""From a trained classifier and some texts to one in int8 (`int8.py`), and what becomes of its answers.

Half of the texts say how large numbers become inside the model ("calibration"). The exported model is asked the other
half, and the labels and probabilities are compared with those of the trained model. The model itself stays as it was.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import ExportError
from keras_bert_kit.models import BertClassifier
from keras_bert_kit.serving.int8 import GELUS, OP, Dense, Int8Dense, Int8Encoder, Observed, Products
from keras_bert_kit.serving.predictions import answer_in_batches
from keras_bert_kit.serving.questions import Question
from keras_bert_kit.serving.signatures import with_weights
from keras_bert_kit.text.texts import as_texts

MIN_TEXTS = 32  # and rather some hundreds
BATCH_SIZE = 32

# Of the texts that are compared. A fine-tuned MiniLM: 0.6 % and 0.01 (docs/performance.md).
LARGEST_SHARE_OF_LABELS_CHANGED = 0.02
LARGEST_MEAN_DIFFERENCE = 0.05

REQUIREMENT = f"a TensorFlow that was built with oneDNN, for x86-64, and has the op {OP}"


@dataclasses.dataclass(frozen=True)
class Int8Comparison:
    """What int8 changed of the answers to texts that the ranges do not come from.

    Attributes:
        texts: int.
        labels_changed: int, texts that have another label than the trained model gives them.
        mean_difference: float, mean over the texts of the largest difference of a probability.
        largest_difference: float.
    """

    texts: int
    labels_changed: int
    mean_difference: float
    largest_difference: float

    def __str__(self):
        return (
            f"int8 changed the label of {self.labels_changed} of {self.texts} texts, and a probability by "
            f"{self.mean_difference:.2g} in the mean, {self.largest_difference:.2g} at most"
        )


def require_int8(model, texts, freeze):
    """Checks, before any work, that a model can be exported in int8 here; returns the texts for calibration.

    Args:
        model: `BertClassifier`.
        texts: list of str, or None.
        freeze: bool or None, the argument of `export_for_serving`.

    Returns:
        Pair of object arrays of bytes: the texts that the ranges come from, and those that are compared.

    Raises:
        ExportError: all faults in one message.
    """
    for_ranges, compared = halves([] if texts is None else texts)
    different = len(for_ranges) + len(compared)
    faults, activation = [], model.encoder.config.hidden_act
    if different < MIN_TEXTS:
        faults.append(
            f"quantize='int8' needs calibration_texts: {MIN_TEXTS} different ones at least, rather some hundreds, of "
            f"the kind that will be asked. Received: {different}"
        )
    if freeze is False:
        faults.append("weights in int8 are always constants of the graph. Received: freeze=False")
    if activation not in GELUS:
        faults.append(f"int8 has the activations {', '.join(GELUS)}. Received: a model with {activation}")
    if not has_kernel():
        faults.append(f"int8 needs {REQUIREMENT}. Received: TensorFlow {tf.__version__} without it")
    if faults:
        raise ExportError("; ".join(faults) + ".")
    return for_ranges, compared


def halves(texts):
    """Pair of object arrays of bytes: one half of the different texts, and the other, at random but always the same."""
    texts = np.random.default_rng(0).permutation(np.unique(as_texts(texts).numpy()))
    return texts[::2], texts[1::2]


def has_kernel():
    """Says whether this TensorFlow can run the product of `int8.py`."""

    @tf.function(autograph=False)
    def product():
        return Int8Dense(Dense(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)), 1.0)(tf.ones([1, 2]))

    try:
        return product().shape == (1, 2)
    except (tf.errors.OpError, RuntimeError, ValueError):
        return False


def int8_classifier(model, pack, texts):
    """A classifier in int8 that answers nearly as `model` does.

    Args:
        model: `BertClassifier`, trained; float32 or half precision.
        pack: `BertPacker` that pads to the longest text of a batch.
        texts: object array of bytes, for the ranges.

    Returns:
        Pair of a float32 `BertClassifier` with an `Int8Encoder`, which answers in a `tf.function` alone, and its
        weights beside those in int8: list of pairs of a variable and the tensor in its place, as in `Signatures`.
    """
    encoder = Int8Encoder(model.encoder.config, empty=True, dtype="float32")
    classifier = BertClassifier(encoder, model.num_classes, model.class_names, model.dropout_rate, dtype="float32")
    dense = [[Dense.of(layer) for layer in _dense_layers(block)] for block in model.encoder.blocks]
    in_int8 = {
        id(variable) for block in encoder.blocks for layer in _dense_layers(block) for variable in layer.variables
    }
    with tf.device("CPU:0"):
        weights = [
            (mine, tf.constant(tf.cast(trained, mine.dtype)))
            for mine, trained in zip(classifier.variables, model.variables, strict=True)
            if id(mine) not in in_int8
        ]
        for block, layers in zip(encoder.blocks, dense, strict=True):
            block.products = Products(*map(Observed, layers))
        with with_weights(weights):
            answer_in_batches(
                (texts,), lambda batch: encoder(pack(batch), only="tokens")["sequence_output"], BATCH_SIZE
            )
        for block in encoder.blocks:
            block.products = Products(*(Int8Dense(one.dense, one.largest_input) for one in block.products))
    return classifier, weights


def _dense_layers(block):
    """In the order of `Products`."""
    return block.attention.qkv, block.attention.output_dense, block.intermediate, block.output_dense


def questions_of(texts):
    """What the exported model is asked to compare it: list of `Question`, without an expected answer."""
    batches = [texts[first : first + BATCH_SIZE] for first in range(0, len(texts), BATCH_SIZE)]
    return [Question("serving_default", {"text": list(batch)}, {}) for batch in batches]


def compare(expected, answers):
    """Compares probabilities.

    Args:
        expected: float32 array (texts, classes), of the trained model.
        answers: list of {"probabilities": rows}, one for each of `questions_of(texts)`.

    Returns:
        `Int8Comparison`.

    Raises:
        ExportError: more has changed than is allowed.
    """
    received = np.concatenate([np.array(answer["probabilities"], np.float32) for answer in answers])
    differences = np.abs(received - expected).max(axis=-1)  # (texts,)
    changed = int(np.sum(received.argmax(axis=-1) != expected.argmax(axis=-1)))
    found = Int8Comparison(len(expected), changed, float(differences.mean()), float(differences.max()))
    allowed = max(1, int(LARGEST_SHARE_OF_LABELS_CHANGED * len(expected)))
    if not (changed <= allowed and found.mean_difference <= LARGEST_MEAN_DIFFERENCE):
        raise ExportError(
            f"int8 may change {allowed} of {len(expected)} labels, and probabilities by {LARGEST_MEAN_DIFFERENCE} in "
            f"the mean. Received: {found}. Give more calibration_texts of the kind that is asked, or leave int8."
        )
    return found
