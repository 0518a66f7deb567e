"""Self-attention: every token looks at every other token of its text and takes up what it finds relevant.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2, https://arxiv.org/abs/1706.03762.
"""

import keras
import tensorflow as tf

from keras_bert_kit.layers.dropout import Dropout
from keras_bert_kit.layers.frozen import keep_frozen
from keras_bert_kit.layers.functions import PACKAGE, initializer, shape_of
from keras_bert_kit.layers.fused import attention_weights
from keras_bert_kit.layers.token_layout import TokenLayout


def scaled_dot_product_attention(query, key, value, mask=None, *, return_attention_scores=False):
    """softmax(query·keyᵀ / √head_size)·value: a mean of the values, weighted by how well each key fits the query.

    Args:
        query: float tensor (batch, heads, query sequence, head size).
        key: float tensor (batch, heads, key sequence, head size).
        value: float tensor (batch, heads, key sequence, head size).
        mask: boolean or 0/1 tensor, true where attention is allowed: (batch, key sequence) as BERT's `input_mask`,
            (batch, query sequence, key sequence), or (batch, heads or 1, query sequence, key sequence). A query that
            may look nowhere gets the plain mean of all values, not NaN.
        return_attention_scores: also return the weights after softmax.

    Returns:
        Tensor (batch, heads, query sequence, head size) in the dtype of `value`; with `return_attention_scores` a pair
        with the scores (batch, heads, query sequence, key sequence), each row of which sums to 1.

    Example:

    >>> x = tf.random.normal((1, 2, 5, 8))
    >>> scaled_dot_product_attention(x, x, x).shape
    TensorShape([1, 2, 5, 8])
    """
    head_size = query.shape[-1]
    logits = tf.matmul(query * head_size**-0.5, key, transpose_b=True)  # (B, N, S, S)
    if mask is not None:  # 0 is added where attention is allowed, elsewhere a number whose exponential is 0
        very_negative = -3e4 if logits.dtype == tf.float16 else -1e9  # float16 ends at 65,504
        logits += tf.where(_for_all_heads(mask), tf.zeros([], logits.dtype), tf.constant(very_negative, logits.dtype))
    scores = tf.cast(tf.nn.softmax(tf.cast(logits, tf.float32)), value.dtype)
    mixed = tf.matmul(scores, value)  # (B, N, S, H)
    return (mixed, scores) if return_attention_scores else mixed


def _for_all_heads(mask):
    """The mask as booleans with four axes: (batch, heads or 1, query sequence or 1, key sequence)."""
    mask = tf.cast(mask, tf.bool)
    if mask.shape.rank == 2:
        return mask[:, tf.newaxis, tf.newaxis, :]
    return mask[:, tf.newaxis, :, :] if mask.shape.rank == 3 else mask


@keras.saving.register_keras_serializable(package=PACKAGE)
class MultiHeadSelfAttention(keras.layers.Layer):
    """Self-attention in several heads, each on its own slice of the hidden vector.

    Query, key and value come from one matrix product, (hidden, 3·hidden), with columns in the order query, key, value.

    Args:
        num_heads: int, must divide the hidden size; a head is hidden size / `num_heads` wide.
        dropout_rate: float, probability of dropping an attention weight.
        initializer_range: float, standard deviation of new weights.

    Call arguments:
        inputs: float tensor (batch, sequence, hidden).
        mask: see `scaled_dot_product_attention`. A mask that Keras carries along with `inputs` is used by itself.
        training: bool, whether dropout is on.
        return_attention_scores: bool.

    Returns:
        Tensor (batch, sequence, hidden); with `return_attention_scores` a pair with the attention scores
        (batch, heads, sequence, sequence).

    Raises:
        ValueError: `num_heads` does not divide the hidden size, when the layer is built.

    Example:

    >>> attention = MultiHeadSelfAttention(num_heads=4)
    >>> attention(tf.random.normal((2, 7, 32)), mask=tf.ones((2, 7))).shape
    TensorShape([2, 7, 32])
    """

    def __init__(self, num_heads, dropout_rate=0.0, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.initializer_range = initializer_range
        self.supports_masking = True

    def build(self, input_shape):
        """Makes the two dense layers, `qkv` and `output`."""
        if len(input_shape) != 3:
            raise ValueError(f"inputs must have the axes (batch, sequence, hidden). Received: shape {input_shape}.")
        hidden_size = input_shape[-1]
        if self.num_heads < 1 or hidden_size % self.num_heads:
            raise ValueError(
                "num_heads must divide the hidden size, the last axis of the inputs. "
                f"Received: num_heads={self.num_heads}, hidden size={hidden_size}. Change one of them."
            )
        self.qkv = self._dense(3 * hidden_size, "qkv")
        self.output_dense = self._dense(hidden_size, "output")
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")
        self.qkv.build((None, hidden_size))
        self.output_dense.build((None, hidden_size))
        keep_frozen(self)

    def _dense(self, units, name):
        start = initializer(self.initializer_range)
        return keras.layers.Dense(units, kernel_initializer=start, dtype=self.dtype_policy, name=name)

    def call(self, inputs, mask=None, training=None, return_attention_scores=False):
        """See the class."""
        layout = TokenLayout(*shape_of(inputs)[:2])
        mixed, scores = self.attend(layout.flat(inputs), layout, mask, training)
        outputs = layout.padded(mixed)  # (B, S, D)
        return (outputs, scores) if return_attention_scores else outputs

    def attend(self, tokens, layout, mask=None, training=None, at=None):
        """Self-attention on flat tokens, for callers that keep them flat, as `EncoderBlock` does.

        Args:
            tokens: float tensor (tokens, hidden).
            layout: `TokenLayout`, where they stand in the batch.
            mask: as in `call`.
            training: as in `call`.
            at: int32 tensor (batch, picked), the positions of each row whose tokens look at the others. Default: all.

        Returns:
            Pair of (tokens, hidden) and the attention scores (batch, heads, sequence, sequence). With `at`,
            (batch · picked, hidden) and (batch, heads, picked, sequence).
        """
        if at is None:
            query, key, value = self.split_heads(self.qkv(tokens), layout, 3)
        else:
            query, key, value = self._project_at(tokens, layout, at)
            mask = tf.gather(mask, at, batch_dims=1) if mask is not None and mask.shape.rank == 3 else mask
        if training:
            mixed, scores = self._attend_in_training(query, key, value, mask)
        else:
            mixed, scores = scaled_dot_product_attention(query, key, value, mask, return_attention_scores=True)
        mixed = tf.transpose(mixed, (0, 2, 1, 3))  # (B, S, N, H)
        if at is None:
            mixed = layout.flat(tf.reshape(mixed, (layout.batch, layout.sequence, tokens.shape[-1])))
        else:
            mixed = tf.reshape(mixed, (-1, tokens.shape[-1]))
        return self.output_dense(mixed), scores

    def _project_at(self, tokens, layout, at):
        """Queries of some positions, (batch, heads, picked, head size), and keys and values of all tokens."""
        hidden_size, kernel, bias = tokens.shape[-1], self.qkv.kernel, self.qkv.bias
        query = tf.nn.bias_add(tf.matmul(layout.at(tokens, at), kernel[:, :hidden_size]), bias[:hidden_size])
        key_value = tf.nn.bias_add(tf.matmul(tokens, kernel[:, hidden_size:]), bias[hidden_size:])
        query = tf.reshape(query, (*shape_of(at), self.num_heads, hidden_size // self.num_heads))  # (B, P, N, H)
        return tf.transpose(query, (0, 2, 1, 3)), *self.split_heads(key_value, layout, 2)

    def split_heads(self, projected, layout, count):
        """(tokens, count·hidden) -> list of `count` tensors (batch, heads, sequence, head size)."""
        head_size = projected.shape[-1] // (count * self.num_heads)
        padded = layout.padded(projected)
        padded = tf.reshape(padded, (layout.batch, layout.sequence, count, self.num_heads, head_size))
        return tf.unstack(tf.transpose(padded, (2, 0, 3, 1, 4)))

    def _attend_in_training(self, query, key, value, mask):
        """The same with dropout, in fewer passes over memory."""
        logits = tf.matmul(query, key, transpose_b=True)  # (B, N, S, S)
        mask = tf.ones([1, 1, 1, 1], tf.bool) if mask is None else _for_all_heads(mask)
        scale = query.shape[-1] ** -0.5
        dropped, scores = attention_weights(logits, mask, scale, self.dropout_rate, self.dropout.draw_seed())
        return tf.matmul(dropped, value), scores

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_heads": self.num_heads,
            "dropout_rate": self.dropout_rate,
            "initializer_range": self.initializer_range,
        }
