"""Requests that a server answers itself before the first client may: `assets.extra/tf_serving_warmup_requests`.

TensorFlow optimises a graph when it first runs, which takes seconds; TF Serving runs these requests, one of each shape
that matters, before a new version takes over from the old one. The file is a TFRecord of `PredictionLog` messages:

    PredictionLog { predict_log (6): PredictLog { request (1): PredictRequest {
        model_spec (1): { name (1), signature_name (3) }
        inputs (2), one for each: { key (1), value (2): TensorProto } } } }

Their classes come with tensorflow-serving-api. All of their fields are strings and messages, which are written alike:
number, length, content. So the package is not needed to write them.

Source: tensorflow_serving/apis/prediction_log.proto, predict.proto and model.proto;
https://www.tensorflow.org/tfx/serving/saved_model_warmup; https://protobuf.dev/programming-guides/encoding.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_kit.serving.questions import example_of

WARM_UP_FILE = Path("assets.extra", "tf_serving_warmup_requests")
BATCH_SIZES = (1, 8, 32)
LENGTHS = (16, 64)  # tokens; and the longest text of the model

_LENGTH_DELIMITED = 2


def write_warm_up(folder, model_name, names, longest, pack):
    """Writes a request of each batch size and length to each signature.

    Args:
        folder: `pathlib.Path` of the SavedModel.
        model_name: str, what the server calls it.
        names: sequence of str, the signatures.
        longest: int, tokens of the longest text that is not cut.
        pack: `BertPacker`, for the ids of `token_ids`.
    """
    path = folder / WARM_UP_FILE
    path.parent.mkdir(exist_ok=True)
    lengths = sorted({min(length, longest) for length in (*LENGTHS, longest)})
    with tf.io.TFRecordWriter(str(path)) as writer:
        for name in names:
            for length in lengths if name != "metadata" else lengths[:1]:
                for batch_size in BATCH_SIZES:
                    writer.write(prediction_log(model_name, name, _inputs(name, batch_size, length, pack)))


def prediction_log(model_name, signature, inputs):
    """A serialised `PredictionLog` of one request.

    Args:
        model_name: str.
        signature: str.
        inputs: dictionary from str to arrays or lists of bytes.

    Returns:
        bytes.
    """
    model_spec = _field(1, model_name.encode()) + _field(3, signature.encode())
    request = _field(1, model_spec)
    for name, value in inputs.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, tensor))
    return _field(6, _field(1, request))


def _inputs(signature, batch_size, length, pack):
    """Inputs of a signature with `length` tokens a text, [CLS] and [SEP] among them."""
    words = [b"a"] * (length - 2)  # each is one token, if only [UNK]
    texts = [b" ".join(words)] * batch_size
    if signature == "pairs":
        half = len(words) // 2
        return {"text_a": [b" ".join(words[:half])] * batch_size, "text_b": [b" ".join(words[half:-1])] * batch_size}
    if signature == "token_ids":
        return {name: np.asarray(tensor) for name, tensor in pack(texts).items()}
    if signature == "examples":
        return {"examples": [example_of(text) for text in texts]}
    return {"request" if signature == "metadata" else "text": texts}


def _field(number, content):
    """A field of a message that holds a string or another message."""
    return _integer(number << 3 | _LENGTH_DELIMITED) + _integer(len(content)) + content


def _integer(value):
    """An integer in groups of seven bits, the lowest first; the highest bit says that more follow."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])
