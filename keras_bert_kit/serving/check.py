"""Compares an exported model, loaded in a fresh process without the kit, with the trained model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from keras_bert_kit.errors import ExportError

# Largest difference of a probability. bfloat16 keeps 8 bits and rounds in other places where operations are fused: of a
# text that might be of two classes, probabilities of a trained MiniLM differed by 0.025.
TOLERANCE = 1e-4
TOLERANCE_OF_HALF_PRECISION = 5e-2
# int8 rounds to 127 steps: a probability of a text that might be of two classes may be another one. So it is the mean
# that is bounded here; calibration.py compares labels.
TOLERANCE_OF_INT8 = 5e-2

_TIMEOUT_SECONDS = 1800


def tolerance_of(dtype, quantize):
    """How far answers may be off: (tolerance, function of all differences of an output that it is for).

    Args:
        dtype: str, name of the trained model's dtype policy.
        quantize: "int8" or None.
    """
    if quantize:
        return TOLERANCE_OF_INT8, np.mean
    return (TOLERANCE if dtype == "float32" else TOLERANCE_OF_HALF_PRECISION), np.max


def require_same_answers(saved_model, questions, class_names, tolerance=TOLERANCE, measure=np.max):
    """Loads an exported model in a fresh process, in the two ways that TensorFlow has, and compares its answers.

    Args:
        saved_model: path of the SavedModel folder.
        questions: list of `Question`: what is asked, and what the trained model says.
        class_names: sequence of str, in the order of the classes.
        tolerance: float, largest difference of a probability. Embeddings, which may be larger than 1, may differ by
            this part of their largest number.
        measure: function from the differences of all numbers of an output to the one that the tolerance is for.

    Returns:
        float, the largest difference found, by this measure.

    Raises:
        ExportError: the model does not load, or answers something else.
    """
    answers = fresh_answers(saved_model, questions)["answers"]
    return largest_difference(answers, questions, class_names, tolerance, measure)


def largest_difference(answers, questions, class_names, tolerance=TOLERANCE, measure=np.max):
    """Compares answers with what is expected; arguments, result and error as of `require_same_answers`.

    Args:
        answers: {name of a loader: [{output: rows}, …]}, in the order of the questions.
    """
    largest = 0.0
    for loader, outputs_of_all in answers.items():
        for question, outputs in zip(questions, outputs_of_all, strict=True):
            place = f"{question.signature}, in a fresh process ({loader})"
            for name, expected in question.expected.items():
                if isinstance(expected, list):
                    _require_strings(outputs[name], expected, f"{name} of {place}")
                else:
                    difference = _difference(outputs[name], expected, measure)
                    _require_close(difference, tolerance * max(1.0, np.abs(expected).max()), f"{name} of {place}")
                    largest = max(largest, difference)
            if "label" in outputs:
                best = np.array(outputs["probabilities"], np.float32).argmax(axis=-1)
                _require_strings(outputs["label"], [class_names[row] for row in best], f"label of {place}")
    return largest


def fresh_answers(saved_model, questions, python=sys.executable):
    """Answers of an exported model in a process that has nothing but TensorFlow, on the CPU.

    Args:
        saved_model: path of the SavedModel folder.
        questions: list of `Question`.
        python: path of the Python that is started, which may have another TensorFlow; or a name that is on the PATH.

    Returns:
        {"tensorflow": version, "answers": {name of a loader: [{output: rows}, …]}}, strings as str.

    Raises:
        ExportError: the process failed; it holds the last lines that the process wrote.
    """
    script = Path(__file__).with_name("bare_answers.py").read_text(encoding="utf-8")
    folder = Path(saved_model).resolve()
    if os.path.dirname(python):  # the process starts elsewhere; links stay, since venvs are made of them
        python = os.path.abspath(python)
    # A GPU may be full of the training model. An empty working directory: a file there might be called tensorflow.py.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONIOENCODING": "utf-8"}
    asked = [
        (question.signature, {name: _to_json(rows) for name, rows in question.inputs.items()}) for question in questions
    ]
    try:
        process = subprocess.run(
            [python, "-c", script, str(folder)],
            input=json.dumps(asked),
            capture_output=True,
            encoding="utf-8",
            cwd=folder,
            env=environment,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
        answers = json.loads(process.stdout.rpartition("\n")[2])  # a library may have printed before
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        last_lines = "\n".join((getattr(error, "stderr", None) or str(error)).strip().splitlines()[-5:])
        raise ExportError(
            f"The exported model must load and answer in a process that has only TensorFlow. Received: {last_lines}"
        ) from error
    return _as_text(answers)


def _require_close(difference, tolerance, what):
    if not difference <= tolerance:
        raise ExportError(
            f"The exported model must answer what the trained one does within {tolerance:.2g}. Received: a difference "
            f"of {difference:.2g} in {what}."
        )


def _require_strings(received, expected, what):
    if received != expected:
        raise ExportError(
            f"The exported model must answer the strings of the trained one. Received: {str(received)[:200]} instead "
            f"of {str(expected)[:200]} as {what}."
        )


def _difference(received, expected, measure):
    """Difference of two arrays; infinite where they have different shapes."""
    received = np.array(received, np.float32)
    return float(measure(np.abs(received - expected))) if received.shape == expected.shape else np.inf


def _to_json(rows):
    """See `bare_answers.py`: characters stand for bytes."""
    return rows.tolist() if isinstance(rows, np.ndarray) else [row.decode("latin-1") for row in rows]


def _as_text(answers):
    """The strings in what the process wrote, as text again."""
    if isinstance(answers, dict):
        return {key: _as_text(value) for key, value in answers.items()}
    if isinstance(answers, list):
        return [_as_text(value) for value in answers]
    return answers.encode("latin-1").decode() if isinstance(answers, str) else answers
