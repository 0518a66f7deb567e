"""A float32 classifier of the kit made to multiply in int8, for int8.py.

`_QuantizedMatMul` is an op that TensorFlow keeps for itself: oneDNN's product, which builds without oneDNN lack.
The four dense layers of each block become such products. Weights have a scale for each column; what goes into a layer
has one, from the largest number that it sees while the model answers some texts ("calibration"). Residuals and
LayerNorm stay float32, attention is bfloat16.
"""

import keras
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2

from keras_bert_kit.layers import scaled_dot_product_attention

OP = "_QuantizedMatMul"
LARGEST_INT8 = 127
GELU = {"gelu_erf": "GeluExact", "gelu_tanh": "GeluApproximate"}


def quantize(x, largest):
    """float (tokens, width) -> qint8, where ±127 stand for ±`largest`; what is beyond is cut."""
    ranges = {"min_range": -largest, "max_range": largest, "mode": "SCALED", "narrow_range": True}
    return tf.raw_ops.QuantizeV2(input=tf.cast(x, tf.float32), T=tf.qint8, round_mode="HALF_TO_EVEN", **ranges).output


def internal_op(inputs, host_inputs, output, fused):
    """Adds a node of `OP`, which has no function in Python, to the graph; returns its first output."""
    ranges = [tf.float32] * 2 if output.is_quantized else []
    types = {
        "Tdevice_inputs": [tensor.dtype for tensor in inputs],
        "Thost_inputs": [tensor.dtype for tensor in host_inputs],
        "Tdevice_outputs": [output],
        "Thost_outputs": ranges,
    }
    tensors = {f"input_{i}": tensor for i, tensor in enumerate([*inputs, *host_inputs])}
    graph = graph_pb2.GraphDef()
    node = graph.node.add(op=OP, name="product", input=list(tensors))
    for name, dtypes in types.items():
        listed = attr_value_pb2.AttrValue.ListValue(type=[dtype.as_datatype_enum for dtype in dtypes])
        node.attr[name].list.CopyFrom(listed)
    for name, dtype in {"T1": tf.qint8, "T2": tf.qint8, "Tbias": tf.float32, "U": tf.float32, "Tout": output}.items():
        node.attr[name].type = dtype.as_datatype_enum
    node.attr["fused_ops"].list.s.extend(name.encode() for name in fused)
    (product,) = tf.graph_util.import_graph_def(graph, tensors, ["product:0"], name="int8")
    return product


class Int8Dense:
    """A dense layer's weights in int8, a scale for each column, and its product.

    Args:
        dense: `keras.layers.Dense`.
        largest_input: float, the largest number that goes into it, without its sign.
    """

    def __init__(self, dense, largest_input):
        kernel = dense.kernel.numpy().astype(np.float32)
        self.largest = np.maximum(np.abs(kernel).max(axis=0), 1e-12)
        self.kernel = np.round(kernel / self.largest * LARGEST_INT8).astype(np.int8)
        self.bias = dense.bias.numpy().astype(np.float32)
        self.largest_input = np.float32(largest_input)

    def __call__(self, x, activation=(), add=None, output=tf.float32, largest_output=None):
        """float or qint8 (tokens, in) -> (tokens, out), with all that oneDNN does on the way.

        Args:
            x: floats are quantized first.
            activation: list of str, of oneDNN's names.
            add: float32 (tokens, out), added to the product.
            output: float32, bfloat16 or qint8.
            largest_output: float, the scale of a qint8 output.
        """
        x = x if x.dtype.is_quantized else quantize(x, self.largest_input)
        inputs = [x, tf.bitcast(tf.constant(self.kernel), tf.qint8), tf.constant(self.bias)]
        ranges = [-self.largest_input, self.largest_input, -self.largest, self.largest]
        if add is not None:
            inputs.append(add)
        if largest_output is not None:
            ranges += [-largest_output, largest_output]
        fused = ["BiasAdd", *(["Add"] if add is not None else []), *activation]
        fused.append("Requantize" if output.is_quantized else "Dequantize")
        return internal_op(inputs, [tf.constant(number) for number in ranges], output, fused)


def dense_layers(block):
    return block.attention.qkv, block.attention.output_dense, block.intermediate, block.output_dense


def largest_inputs(model, pack, texts, batch_size=32):
    """Calibration: the largest number that goes into each dense layer of the blocks, {layer's path: float}."""
    found = {}

    def observed(dense):
        def call(x):
            largest = float(tf.reduce_max(tf.abs(x)))
            found[dense.path] = max(found.get(dense.path, 0.0), largest)
            return type(dense).call(dense, x)

        return call

    layers = [dense for block in model.encoder.blocks for dense in dense_layers(block)]
    for dense in layers:
        dense.call = observed(dense)
    for first in range(0, len(texts), batch_size):
        model.encoder(pack(texts[first : first + batch_size]), only="tokens")
    for dense in layers:
        del dense.call
    return found


def to_int8(model, largest):
    """Changes a float32 model for good: its blocks multiply in int8, and can only answer, in a `tf.function`."""
    for block in model.encoder.blocks:
        block._forward = int8_forward(block, largest)


def int8_forward(block, largest):
    """`EncoderBlock._forward` in int8."""
    qkv, output, widen, narrow = (Int8Dense(dense, largest[dense.path]) for dense in dense_layers(block))
    gelu = [GELU[block.activation]]

    def forward(tokens, layout, mask, training, at=None):
        projected = qkv(tokens, output=tf.bfloat16)  # (T, 3·D)
        query, key, value = block.attention._split_heads(projected, layout, 3)
        if at is not None:  # [CLS], and its row alone
            query, tokens = query[:, :, :1], layout.at(tokens, at)
        mixed = tf.transpose(scaled_dot_product_attention(query, key, value, mask), (0, 2, 1, 3))  # (B, S or 1, N, H)
        mixed = tf.reshape(mixed, (layout.batch, -1, tokens.shape[-1]))
        mixed = layout.flat(mixed) if at is None else mixed[:, 0]
        tokens = block.attention_norm(output(mixed, add=tokens))  # (T, D)
        widened = widen(tokens, gelu, output=tf.qint8, largest_output=narrow.largest_input)  # (T, F)
        return block.output_norm(narrow(widened, add=tokens)), None

    return forward


def save_int8(model, pack, folder):
    """A SavedModel with all weights as constants, as the kit exports small models; BERT-base's are 180 MB here."""
    module, constants = tf.Module(), [(variable, tf.constant(variable.value)) for variable in model.variables]
    module.pack, module.constants = pack, [constant for _, constant in constants]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False)
    def serve(text):
        with keras.StatelessScope(constants):
            return {"probabilities": tf.nn.softmax(model(pack(text), training=False))}

    tf.saved_model.save(module, str(folder), signatures=serve)
    return folder
