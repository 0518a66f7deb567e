"""Answers texts with an exported model and nothing but TensorFlow. `check.py` runs this text in a fresh process.

    python -c "$(cat bare_answers.py)" SAVED_MODEL < texts.json > answers.json

It must not import anything of the kit: that the exported model needs nothing of it is one of the things checked.
"""

import json
import sys

import tensorflow as tf


def answers_in_session(folder, texts):
    """Answers by the C++ loader and session that TF Serving uses."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        outputs = {name: tensor.name for name, tensor in signature.outputs.items()}
        return session.run(outputs, {signature.inputs["text"].name: texts})


def answers_in_python(folder, texts):
    """Answers by `tf.saved_model.load`, as in `Predictor`."""
    loaded = tf.saved_model.load(folder)
    outputs = loaded.signatures["serving_default"](text=tf.constant(texts))
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def main():
    """Reads a JSON list of texts, writes {loader: {output: rows}}."""
    folder, texts = sys.argv[1], json.load(sys.stdin)
    answers = {}
    for answer in (answers_in_session, answers_in_python):
        outputs = answer(folder, texts)
        outputs["label"] = [label.decode() for label in outputs["label"]]
        answers[answer.__name__] = outputs | {name: outputs[name].tolist() for name in ("probabilities", "logits")}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
