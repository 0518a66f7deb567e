"""What an exported model is asked before it is published, and what it has to answer: the numbers of the trained model.

The answers are computed from the model as it was trained, in Python and without the functions of the exported graph.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.serving.predictions import answer_in_batches
from keras_bert_kit.serving.signatures import embeddings_of
from keras_bert_kit.serving.windows import WINDOWS_AT_A_TIME, stride_for

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


class Question(NamedTuple):
    """A request to a signature, and the answers to it.

    signature: str.
    inputs: dictionary from input to a list of bytes, or to int32 rows.
    expected: dictionary from output to float32 rows, or to rows of str. Outputs that follow from another are not in it.
    """

    signature: str
    inputs: dict
    expected: dict


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


def question_for(signatures, name):
    """A question to one of the signatures.

    Args:
        signatures: `Signatures`, of which the model, the packer and the settings are used.
        name: str, the signature.

    Returns:
        `Question`.
    """
    pack = signatures.pack
    texts = check_texts(pack.tokenizer.vocabulary)
    inputs = inputs_for(name, texts)
    if name == "metadata":
        return Question(name, inputs, {key: [value, value] for key, value in signatures.metadata_strings.items()})
    if name == "embed":
        return Question(name, inputs, {"embeddings": _over_windows(signatures, _embeddings, texts)})
    if name == "pairs":
        expected = _probabilities(signatures, pack((texts, texts[::-1])))
    elif name == "token_ids":
        inputs = {key: tensor.numpy() for key, tensor in pack(texts).items()}
        expected = _probabilities(signatures, inputs)
    else:
        expected = _over_windows(signatures, _probabilities, texts)
    return Question(name, inputs, {"probabilities": expected})


def inputs_for(name, texts):
    """Inputs of a signature that ask about texts; those of `token_ids`, which has no tokenizer, are about no text."""
    texts = [text.encode() for text in texts]
    return {
        "serving_default": {"text": texts},
        "embed": {"text": texts},
        "pairs": {"text_a": texts, "text_b": texts[::-1]},
        "examples": {"examples": [example_of(text) for text in texts]},
        "metadata": {"request": [b"", b"?"]},
        "token_ids": {
            "input_word_ids": np.array([[1, 2, 3], [3, 2, 0]], np.int32),
            "input_mask": np.array([[1, 1, 1], [1, 1, 0]], np.int32),
            "input_type_ids": np.zeros([2, 3], np.int32),
        },
    }[name]


def example_of(text):
    """A text (bytes) as the signature `examples` takes it: a serialised `tf.Example`."""
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))
    return tf.train.Example(features=tf.train.Features(feature={"text": feature})).SerializeToString()


def probabilities_of(signatures, texts):
    """What the trained model says to texts, in windows where they are asked for: float32 array (texts, classes)."""
    return np.stack(answer_in_batches((texts,), lambda batch: _over_windows(signatures, _probabilities, batch), 32))


def _over_windows(signatures, function, texts):
    """float32 (texts, size): what a function of packed inputs gives, averaged over windows where they are asked for."""
    if signatures.long_text == "truncate":
        return function(signatures, signatures.pack(texts))
    windows = signatures.pack.windows(texts, stride_for(signatures.pack), max_windows=signatures.max_windows)
    rows, outputs = windows.rows.numpy(), []
    for first in range(0, len(rows), WINDOWS_AT_A_TIME):
        some = {name: tensor[first : first + WINDOWS_AT_A_TIME] for name, tensor in windows.inputs.items()}
        outputs.append(function(signatures, some))
    outputs = np.concatenate(outputs)
    return np.stack([outputs[rows == row].mean(axis=0) for row in range(len(texts))])


def _probabilities(signatures, inputs):
    with tf.device("CPU:0"):
        return tf.nn.softmax(tf.cast(signatures.model(inputs, training=False), tf.float32)).numpy()


def _embeddings(signatures, inputs):
    with tf.device("CPU:0"):
        return embeddings_of(signatures.model.encoder, inputs, signatures.embedding).numpy()
