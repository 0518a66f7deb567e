"""`EncoderBlock`: one layer of the transformer encoder, as in BERT."""

import keras
import tensorflow as tf

from keras_bert_kit.layers.attention import MultiHeadSelfAttention
from keras_bert_kit.layers.dropout import Dropout
from keras_bert_kit.layers.frozen import keep_frozen
from keras_bert_kit.layers.functions import PACKAGE, activation_by_name, initializer, shape_of
from keras_bert_kit.layers.fused import dropout_add_norm
from keras_bert_kit.layers.normalization import LayerNorm
from keras_bert_kit.layers.token_layout import TokenLayout


@keras.saving.register_keras_serializable(package=PACKAGE)
class EncoderBlock(keras.layers.Layer):
    """Self-attention, then a dense layer out and back for each token; each with a residual, then LayerNorm.

    The LayerNorm comes after the residual sum ("post-LayerNorm"), as in the original transformer and in BERT.
    Between its input and its output the block keeps tokens flat, (tokens, hidden).

    Args:
        num_heads: int, attention heads; must divide the hidden size.
        intermediate_size: int, width between the two dense layers; BERT's is four times the hidden size.
        activation: str, between the dense layers: `"gelu_erf"`, `"gelu_tanh"`, `"relu"`, `"silu"` or `"tanh"`.
        dropout_rate: float, probability of dropping a value before each residual sum.
        attention_dropout_rate: float, probability of dropping an attention weight.
        epsilon: float, added to the variance in LayerNorm.
        initializer_range: float, standard deviation of new weights.

    Call arguments:
        inputs: float tensor (batch, sequence, hidden).
        mask: boolean or 0/1 tensor, true where a token may be looked at: (batch, sequence) or
            (batch, sequence, sequence). A mask that Keras carries along with `inputs` is used by itself.
        training: bool, whether dropout is on.
        return_attention_scores: bool.
        layout: `TokenLayout`, for callers that keep tokens flat from block to block, and perhaps without padding, as
            `BertEncoder` does. Then `inputs` and the tensor returned are (tokens, hidden).
        at: int32 tensor (batch, picked), with a layout: the positions of each row to compute, from all its tokens,
            where the rest is not needed. Then the tensor returned is (batch · picked, hidden).

    Returns:
        Tensor (batch, sequence, hidden); with `return_attention_scores` a pair with the attention scores
        (batch, heads, sequence, sequence).

    Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805; `transformer_model` in google-research/bert.

    Example:

    >>> block = EncoderBlock(num_heads=4, intermediate_size=64)
    >>> block(tf.random.normal((2, 7, 16)), mask=tf.ones((2, 7))).shape
    TensorShape([2, 7, 16])
    """

    def __init__(
        self,
        num_heads,
        intermediate_size,
        activation="gelu_erf",
        dropout_rate=0.1,
        attention_dropout_rate=0.1,
        epsilon=1e-12,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        activation_by_name(activation)
        self.num_heads = num_heads
        self.intermediate_size = intermediate_size
        self.activation = activation
        self.dropout_rate = dropout_rate
        self.attention_dropout_rate = attention_dropout_rate
        self.epsilon = epsilon
        self.initializer_range = initializer_range
        self.supports_masking = True
        self.gradient_checkpointing = False

    def build(self, input_shape):
        """Makes `attention`, `attention_norm`, `intermediate`, `output` and `output_norm`."""
        hidden_size, policy, start = input_shape[-1], self.dtype_policy, initializer(self.initializer_range)
        self.attention = MultiHeadSelfAttention(
            self.num_heads, self.attention_dropout_rate, self.initializer_range, dtype=policy, name="attention"
        )
        self.attention_norm = LayerNorm(self.epsilon, dtype=policy, name="attention_norm")
        self.intermediate = keras.layers.Dense(
            self.intermediate_size, kernel_initializer=start, dtype=policy, name="intermediate"
        )
        self.output_dense = keras.layers.Dense(hidden_size, kernel_initializer=start, dtype=policy, name="output")
        self.output_norm = LayerNorm(self.epsilon, dtype=policy, name="output_norm")
        self.dropout = Dropout(self.dropout_rate, dtype=policy, name="dropout")
        self.attention.build(input_shape)
        self.intermediate.build((None, hidden_size))
        self.output_dense.build((None, self.intermediate_size))
        self.attention_norm.build((None, hidden_size))
        self.output_norm.build((None, hidden_size))
        keep_frozen(self)

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
        layout=None,
        at=None,
    ):
        """See the class."""
        forward = self._checkpointed if self.gradient_checkpointing and training else self._forward
        if layout is None:
            layout = TokenLayout(*shape_of(inputs)[:2])
            outputs, scores = forward(layout.flat(inputs), layout, mask, training)
            outputs = layout.padded(outputs)  # (B, S, D)
        else:
            outputs, scores = forward(inputs, layout, mask, training, at)
        return (outputs, scores) if return_attention_scores else outputs

    def _forward(self, tokens, layout, mask, training, at=None):
        attended, scores = self.attention.attend(tokens, layout, mask, training, at)
        if at is not None:
            tokens = layout.at(tokens, at)  # (B·P, D), and so on from here
        tokens = self._add_norm(attended, tokens, self.attention_norm, training)  # (T, D)

        widened = activation_by_name(self.activation, training)(self.intermediate(tokens))  # (T, F)
        tokens = self._add_norm(self.output_dense(widened), tokens, self.output_norm, training)  # (T, D)
        return tokens, scores

    def _add_norm(self, branch, residual, norm, training):
        """Residual sum, with dropout in training, and LayerNorm."""
        if not training:
            return norm(tf.add_n([branch, residual]))
        gamma, beta = norm.gamma.value, norm.beta.value
        seed = self.dropout.draw_seed()
        return dropout_add_norm(branch, residual, gamma, beta, norm.epsilon, self.dropout_rate, seed)

    def _checkpointed(self, tokens, layout, mask, training, at=None):
        """The same, but only `tokens` are kept for the backward pass, which computes the rest once more.

        Source: Chen et al. 2016, https://arxiv.org/abs/1604.06174.
        """
        states = [v.value for v in self.variables if v.path.endswith("seed_generator_state")]
        starts = [tf.identity(state) for state in states]

        @tf.recompute_grad
        def forward(tokens):
            for state, start in zip(states, starts, strict=True):  # so that the second time the same values are dropped
                state.assign(start)
            return self._forward(tokens, layout, mask, training, at)

        return forward(tokens)

    def compute_mask(self, inputs, mask=None):
        """Hands a padding mask on with the outputs; a mask of pairs of tokens says nothing of single ones."""
        return mask if mask is not None and len(mask.shape) == 2 and len(inputs.shape) == 3 else None

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_heads": self.num_heads,
            "intermediate_size": self.intermediate_size,
            "activation": self.activation,
            "dropout_rate": self.dropout_rate,
            "attention_dropout_rate": self.attention_dropout_rate,
            "epsilon": self.epsilon,
            "initializer_range": self.initializer_range,
        }
