"""A classifier whose blocks multiply in int8: for exports that ask for it.

    tokens ─► quantize ─► query, key, value ─► attention, bfloat16 ─► quantize ─► output ─► + tokens ─► LayerNorm
           ─► quantize ─► widen, GELU, quantize ─► narrow ─► + tokens ─► LayerNorm, float32

`_QuantizedMatMul` is an op that TensorFlow keeps for itself: oneDNN's product, with bias, residual, GELU and the next
quantization inside. It has no function in Python, no promise that a later TensorFlow has it, and a kernel only where
TensorFlow was built with oneDNN, as its wheels for x86-64 are, from 2.17 on. TF Serving's images were not tried.

Weights have a scale for each column; what goes into a layer has one for all, the largest number that it saw while the
trained model answered some texts (`calibration.py`). What is larger is cut.

Source: Intel Neural Compressor writes the same op, https://github.com/intel/neural-compressor.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from keras_bert_kit.layers import EncoderBlock, TokenLayout, scaled_dot_product_attention
from keras_bert_kit.layers.functions import activation_by_name
from keras_bert_kit.models import BertEncoder

OP = "_QuantizedMatMul"
LARGEST_INT8 = 127
GELUS = {"gelu_erf": "GeluExact", "gelu_tanh": "GeluApproximate"}  # oneDNN's names

# oneDNN prepares each product anew for another number of rows, which for all of them takes as long as a short text, and
# TensorFlow keeps the last 1,024 of a thread. So there are few numbers of rows: multiples of 8, later of more, so that
# 16 are between a power of two and the next.
ROWS = [0] + sorted({step * 2**power for power in range(3, 20) for step in range(1, 33)})


class Dense(NamedTuple):
    """A dense layer as numbers, and its product in float32; `Observed` and `Int8Dense` are such products.

    Args:
        kernel: float32 array (in, out).
        bias: float32 array (out,).
    """

    kernel: np.ndarray
    bias: np.ndarray

    @classmethod
    def of(cls, layer):
        """The numbers of a `keras.layers.Dense`."""
        return cls(*(tf.cast(variable.value, tf.float32).numpy() for variable in (layer.kernel, layer.bias)))


class Observed:
    """A dense layer that multiplies in float32, eagerly, and remembers the largest number that came in.

    Args:
        dense: `Dense`.
    """

    def __init__(self, dense):
        self.dense = dense
        self.largest_input = 0.0

    def __call__(self, x, activation=None, add=None, **_):
        """float (tokens, in) -> float32 (tokens, out). Arguments as of `Int8Dense`; what is about int8 is left out."""
        x = tf.cast(x, tf.float32)
        self.largest_input = max(self.largest_input, float(tf.reduce_max(tf.abs(x))))
        product = tf.nn.bias_add(tf.matmul(x, self.dense.kernel), self.dense.bias)
        if activation is not None:
            product = activation_by_name(activation)(product)
        return product if add is None else product + add


class Int8Dense:
    """A dense layer's weights in int8, a scale for each column, and its product.

    Args:
        dense: `Dense`.
        largest_input: float, the largest number that goes into it, without its sign; 127 stands for it.
    """

    def __init__(self, dense, largest_input):
        self.largest_input = max(float(largest_input), 1e-12)
        largest = np.maximum(np.abs(dense.kernel).max(axis=0), 1e-12)  # (out,)
        kernel = np.round(dense.kernel / largest * LARGEST_INT8).astype(np.int8)
        with tf.device("CPU:0"):  # one tensor each, which all signatures share
            self.kernel, self.bias = tf.constant(kernel), tf.constant(dense.bias)
            self.lowest, self.largest = tf.constant(-largest), tf.constant(largest)

    def __call__(self, x, activation=None, add=None, output=tf.float32, largest_output=None):
        """float or qint8 (tokens, in) -> (tokens, out), with all that oneDNN does on the way. In a `tf.function`.

        Args:
            x: floats are quantized first.
            activation: "gelu_erf" or "gelu_tanh", or None.
            add: float32 (tokens, out), added to the product, or None.
            output: float32, bfloat16 or qint8.
            largest_output: float, what 127 stands for in a qint8 output.
        """
        x = x if x.dtype.is_quantized else quantize(x, self.largest_input)
        kernel = tf.bitcast(self.kernel, tf.qint8)  # saved as int8: a loaded SavedModel has no constants of qint8
        ranges = [-self.largest_input, self.largest_input, self.lowest, self.largest]
        if largest_output is not None:
            ranges += [-largest_output, largest_output]
        added = [] if add is None else [add]
        fused = ["BiasAdd", *("Add" for _ in added), *([GELUS[activation]] if activation else [])]
        fused.append("Requantize" if output.is_quantized else "Dequantize")
        return quantized_matmul([x, kernel, self.bias, *added], ranges, output, fused)


def quantize(x, largest):
    """float (tokens, width) -> qint8, where ±127 stand for ±`largest`; what is beyond is cut."""
    settings = {"mode": "SCALED", "narrow_range": True, "round_mode": "HALF_TO_EVEN", "T": tf.qint8}
    return tf.raw_ops.QuantizeV2(input=tf.cast(x, tf.float32), min_range=-largest, max_range=largest, **settings).output


def quantized_matmul(inputs, ranges, output, fused):
    """Adds a node of `OP`, for which TensorFlow has no function in Python, to the graph that is being made.

    Args:
        inputs: list of tensors: qint8 (tokens, in), qint8 (in, out), float32 (out,), and what is added, if anything.
        ranges: list of float, or of float32 tensors (out,): lowest and highest of input, kernel, and qint8 output.
        output: dtype.
        fused: list of str, what is done with the product, in this order.

    Returns:
        Tensor (tokens, out).
    """
    ranges = [tf.convert_to_tensor(number, tf.float32) for number in ranges]
    ranges_of_output = [tf.float32] * 2 if output.is_quantized else []
    types = {"T1": tf.qint8, "T2": tf.qint8, "Tbias": tf.float32, "U": tf.float32, "Tout": output}
    lists = {
        "Tdevice_inputs": [tensor.dtype for tensor in inputs],
        "Thost_inputs": [tensor.dtype for tensor in ranges],
        "Tdevice_outputs": [output],
        "Thost_outputs": ranges_of_output,
    }
    attributes = {name: AttrValue(type=dtype.as_datatype_enum) for name, dtype in types.items()}
    for name, dtypes in lists.items():
        listed = AttrValue.ListValue(type=[dtype.as_datatype_enum for dtype in dtypes])
        attributes[name] = AttrValue(list=listed)
    attributes["fused_ops"] = AttrValue(list=AttrValue.ListValue(s=[name.encode() for name in fused]))
    graph = tf.compat.v1.get_default_graph()
    node = graph.create_op(OP, [*inputs, *ranges], [output, *ranges_of_output], attrs=attributes, name="int8_product")
    return node.outputs[0]


class Products(NamedTuple):
    """What a block multiplies by: its four dense layers, in their order."""

    qkv: object
    output: object
    widen: object
    narrow: object


class Int8Block(EncoderBlock):
    """`EncoderBlock` for answers, whose dense layers are the attribute `products`, set by `calibration.py`."""

    products = None

    def _forward(self, tokens, layout, mask, training, at=None):
        products = self.products
        projected = products.qkv(tokens, output=tf.bfloat16)  # (T, 3·D)
        query, key, value = self.attention.split_heads(projected, layout, 3)
        if at is not None:  # [CLS], and its row alone
            query, tokens = tf.gather(query, at, axis=2, batch_dims=1), layout.at(tokens, at)
        mixed = scaled_dot_product_attention(query, key, value, mask)
        mixed = tf.transpose(mixed, (0, 2, 1, 3))  # (B, S or P, N, H)
        if at is None:
            mixed = layout.flat(tf.reshape(mixed, (layout.batch, layout.sequence, tokens.shape[-1])))
        else:
            mixed = tf.reshape(mixed, (-1, tokens.shape[-1]))
        tokens = self.attention_norm(products.output(mixed, add=tokens))  # (T, D)
        to_narrow = products.narrow.largest_input
        widened = products.widen(tokens, self.activation, output=tf.qint8, largest_output=to_narrow)  # (T, F)
        return self.output_norm(products.narrow(widened, add=tokens)), None


class Int8Encoder(BertEncoder):
    """`BertEncoder` for answers, of `Int8Block`s."""

    block_class = Int8Block

    def layout_of(self, mask, training):
        """See `BertEncoder`. The list is filled up to one of few lengths: see `ROWS`."""
        return TokenLayout.without_padding(mask).filled_up(ROWS)
