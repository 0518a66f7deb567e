"""Compares an exported model, loaded in a fresh process without the kit, with the trained model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import ExportError

# Largest difference of a probability. Half precision rounds anew for every shape of a batch.
TOLERANCE = 1e-4
TOLERANCE_OF_HALF_PRECISION = 2e-2

_TIMEOUT_SECONDS = 1800
_FIXED_TEXTS = (
    "",
    "   ",
    "\u200b",  # zero-width space
    "Good news, isn't it?",
    "Café Ökonomie naïve Åsa",
    "株式会社 アリババ 한국어",
    "السلام עברית हिन्दी 🙂",
    "[CLS] [MASK] ##ing",
    "a\x00b\tc\r\nd",
    "1,234.5 % of $100",
    "unbelievably" * 30,
    "a long text " * 1000,
)


def check_texts(vocabulary):
    """The texts of the check: empty, foreign, long ones; and words all through a vocabulary, to meet rows of the table.

    Args:
        vocabulary: list of str, the token of each id.

    Returns:
        list of str.
    """
    words = [token for token in vocabulary if not token.startswith(("##", "["))]
    spread = words[:: max(1, len(words) // 80)]
    return [*_FIXED_TEXTS, *(" ".join(spread[start : start + 16]) for start in range(0, len(spread), 16))]


def trained_probabilities(model, pack, texts):
    """Probabilities of the model as it was trained, float32 (texts, classes), computed on the CPU."""
    with tf.device("CPU:0"):
        return tf.nn.softmax(tf.cast(model(pack(texts), training=False), tf.float32)).numpy()


def require_same_answers(saved_model, texts, expected, class_names, tolerance=TOLERANCE):
    """Loads an exported model in a fresh process, in the two ways that TensorFlow has, and compares its answers.

    Args:
        saved_model: path of the SavedModel folder.
        texts: list of str.
        expected: float array (texts, classes), the probabilities of the trained model.
        class_names: sequence of str, in the order of the classes.
        tolerance: float, largest difference of a probability.

    Returns:
        float, the largest difference found.

    Raises:
        ExportError: the model does not load, or answers something else.
    """
    largest = 0.0
    for loader, outputs in fresh_answers(saved_model, texts).items():
        probabilities = np.array(outputs["probabilities"], np.float32)
        difference = np.abs(probabilities - expected).max() if probabilities.shape == expected.shape else np.inf
        if not difference <= tolerance:
            raise ExportError(
                f"The exported model must give the probabilities of the trained one within {tolerance}. Received: a "
                f"difference of {difference:.2g} in a fresh process ({loader}). Nothing was published."
            )
        if outputs["label"] != [class_names[row] for row in probabilities.argmax(axis=-1)]:
            raise ExportError(f"The labels of the exported model must be those of its probabilities ({loader}).")
        largest = max(largest, float(difference))
    return largest


def fresh_answers(saved_model, texts):
    """Answers of an exported model in a process that has nothing but TensorFlow, on the CPU.

    Returns:
        dict from the name of a loader to {"label": list of str, "probabilities": rows, "logits": rows}.

    Raises:
        ExportError: the process failed; it holds the last lines that the process wrote.
    """
    script = Path(__file__).with_name("bare_answers.py").read_text(encoding="utf-8")
    folder = Path(saved_model).resolve()
    # A GPU may be full of the training model. An empty working directory: a file there might be called tensorflow.py.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONIOENCODING": "utf-8"}
    try:
        process = subprocess.run(
            [sys.executable, "-c", script, str(folder)],
            input=json.dumps(texts),
            capture_output=True,
            encoding="utf-8",
            cwd=folder,
            env=environment,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
        return json.loads(process.stdout.rpartition("\n")[2])  # a library may have printed before
    except (subprocess.SubprocessError, ValueError) as error:
        last_lines = "\n".join((getattr(error, "stderr", None) or str(error)).strip().splitlines()[-5:])
        raise ExportError(
            f"The exported model must load and answer in a process that has only TensorFlow. Received: {last_lines}"
        ) from error
