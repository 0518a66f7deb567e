"""Asks an exported model with nothing but TensorFlow. `check.py` runs this text in a fresh process.

    python -c "$(cat bare_answers.py)" SAVED_MODEL < questions.json > answers.json

It must not import anything of the kit: that the exported model needs nothing of it is one of the things checked.
Strings are bytes, which JSON lacks; they are written as text of which each character is one byte (Latin-1).
"""

import json
import sys

import numpy as np
import tensorflow as tf


def answers_in_session(folder, questions):
    """Answers by the C++ loader and session that TF Serving uses."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def
        for name, inputs in questions:
            outputs = {key: tensor.name for key, tensor in signatures[name].outputs.items()}
            yield session.run(outputs, {signatures[name].inputs[key].name: value for key, value in inputs.items()})


def answers_in_python(folder, questions):
    """Answers by `tf.saved_model.load`, as in `Predictor`."""
    loaded = tf.saved_model.load(folder)
    for name, inputs in questions:
        outputs = loaded.signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
        yield {key: tensor.numpy() for key, tensor in outputs.items()}


def from_json(rows):
    """Strings as bytes, numbers as int32."""
    if rows and isinstance(rows[0], str):
        return np.array([row.encode("latin-1") for row in rows], object)
    return np.array(rows, np.int32)


def to_json(rows):
    """Lists of numbers, or of strings for bytes."""
    if isinstance(rows, list):
        return [to_json(row) for row in rows]
    return rows.decode("latin-1") if isinstance(rows, bytes) else rows


def main():
    """Reads [[signature, {input: rows}], …], writes {loader: [{output: rows}, …]}."""
    folder, questions = sys.argv[1], json.load(sys.stdin)
    questions = [(name, {key: from_json(rows) for key, rows in inputs.items()}) for name, inputs in questions]
    answers = {}
    for ask in (answers_in_session, answers_in_python):
        answers[ask.__name__] = [
            {key: to_json(rows.tolist()) for key, rows in outputs.items()} for outputs in ask(folder, questions)
        ]
    json.dump({"tensorflow": tf.__version__, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()
