"""What stands on top of the encoder: the pooler, and the two heads of pre-training.

Source: `get_masked_lm_output` and `get_next_sentence_output` in google-research/bert, run_pretraining.py.
"""

import keras
import tensorflow as tf

from keras_bert_kit.layers.frozen import keep_frozen
from keras_bert_kit.layers.functions import (
    PACKAGE,
    activation_by_name,
    initializer,
    look_up_tokens,
    shape_of,
)
from keras_bert_kit.layers.normalization import LayerNorm


@keras.saving.register_keras_serializable(package=PACKAGE)
class Pooler(keras.layers.Layer):
    """tanh of a dense layer on the first token, [CLS]: one vector for the whole text. Not an average.

    Args:
        initializer_range: float, standard deviation of new weights.

    Call arguments:
        inputs: float tensor (batch, sequence, hidden).
        positions: int tensor (batch, texts), where in a row that holds several texts the [CLS] of each stands.
            Default: one text a row, whose [CLS] is the first token.

    Returns:
        Tensor (batch, hidden), each value in (-1, 1); with `positions`, (batch, texts, hidden).
    """

    def __init__(self, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.initializer_range = initializer_range
        self.supports_masking = True

    def build(self, input_shape, *_):
        """Makes `dense`, (hidden, hidden)."""
        hidden_size, start = input_shape[-1], initializer(self.initializer_range)
        self.dense = keras.layers.Dense(
            hidden_size, "tanh", kernel_initializer=start, dtype=self.dtype_policy, name="dense"
        )
        self.dense.build((None, hidden_size))
        keep_frozen(self)

    def call(self, inputs, positions=None):
        """See the class."""
        if positions is None:
            return self.dense(inputs[:, 0])  # (B, D)
        batch, texts = shape_of(positions)
        pooled = self.dense(look_up_tokens(inputs, positions, "positions"))
        return tf.reshape(pooled, (batch, texts, inputs.shape[-1]))

    def compute_mask(self, *_):
        """Ends the padding mask of `inputs`: the output has no sequence axis."""
        return None

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {"initializer_range": self.initializer_range}


@keras.saving.register_keras_serializable(package=PACKAGE)
class MaskedLMHead(keras.layers.Layer):
    """Predicts the words at masked positions: dense, activation, LayerNorm, then a product with the word table.

    The word table is the encoder's own ("tied"), so that a word has one vector, whether read or predicted. Only the
    positions asked for are computed: with 15 % of them masked, this saves most of the largest product of BERT.

    Args:
        embeddings: the layer that owns the word table, for example `encoder.embeddings`: built, with a variable
            `word_embeddings` (vocabulary, hidden).
        activation: str, see `EncoderBlock`.
        epsilon: float, added to the variance in LayerNorm.
        initializer_range: float, standard deviation of new weights.

    Call arguments:
        inputs: float tensor (batch, sequence, hidden).
        masked_lm_positions: int tensor (batch, predictions), each in [0, sequence).

    Returns:
        Logits, float32 (batch, predictions, vocabulary).
    """

    def __init__(self, embeddings, activation="gelu_erf", epsilon=1e-12, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        activation_by_name(activation)
        self.embeddings = embeddings
        self.activation = activation
        self.epsilon = epsilon
        self.initializer_range = initializer_range
        self.supports_masking = True

    def build(self, input_shape, *_):
        """Makes `dense`, `layer_norm` and `bias` (vocabulary,)."""
        if not self.embeddings.built:
            self.embeddings.build()
        hidden_size, policy, start = input_shape[-1], self.dtype_policy, initializer(self.initializer_range)
        self.dense = keras.layers.Dense(hidden_size, kernel_initializer=start, dtype=policy, name="dense")
        self.layer_norm = LayerNorm(self.epsilon, dtype=policy, name="layer_norm")
        vocab_size = self.embeddings.word_embeddings.shape[0]
        self.bias = self.add_weight(shape=(vocab_size,), initializer="zeros", name="bias", autocast=False)
        self.dense.build((None, hidden_size))
        self.layer_norm.build((None, hidden_size))
        keep_frozen(self)

    @property
    def trainable(self):
        """Whether what is the head's own is trained. The word table is, or is not, as a part of the embeddings."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        for own in (self.dense, self.layer_norm, self.bias) if self.built else ():
            own.trainable = self._trainable

    def call(self, inputs, masked_lm_positions):
        """See the class."""
        batch, predictions = shape_of(masked_lm_positions)
        tokens = look_up_tokens(inputs, masked_lm_positions, "masked_lm_positions")  # (B·P, D)
        tokens = self.layer_norm(activation_by_name(self.activation)(self.dense(tokens)))
        table = tf.cast(self.embeddings.word_embeddings.value, tokens.dtype)  # (V, D)
        logits = tf.cast(tf.matmul(tokens, table, transpose_b=True), tf.float32) + self.bias
        return tf.reshape(logits, (batch, predictions, table.shape[0]))  # (B, P, V)

    def compute_mask(self, *_):
        """Ends the padding mask of `inputs`: the positions asked for are another axis."""
        return None

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "embeddings": keras.saving.serialize_keras_object(self.embeddings),
            "activation": self.activation,
            "epsilon": self.epsilon,
            "initializer_range": self.initializer_range,
        }

    @classmethod
    def from_config(cls, config):
        """Makes the head again; the embeddings are shared with the model that is being loaded."""
        return cls(keras.saving.deserialize_keras_object(config["embeddings"]), **_without(config, "embeddings"))


def _without(config, key):
    return {name: value for name, value in config.items() if name != key}


@keras.saving.register_keras_serializable(package=PACKAGE)
class NextSentenceHead(keras.layers.Layer):
    """Says whether segment B followed segment A in the text it comes from.

    Args:
        initializer_range: float, standard deviation of new weights.

    Call arguments:
        inputs: float tensor (batch, hidden), the pooled output; or (batch, texts, hidden).

    Returns:
        Logits, float32 (batch, 2), or (batch, texts, 2). Column 0 means that B follows A, column 1 that B is a random
        sentence; labels are 0 and 1 in the same sense, as in Google's and Hugging Face's code.
    """

    def __init__(self, initializer_range=0.02, **kwargs):
        super().__init__(**kwargs)
        self.initializer_range = initializer_range

    def build(self, input_shape):
        """Makes `dense`, (hidden, 2)."""
        start = initializer(self.initializer_range)
        self.dense = keras.layers.Dense(2, kernel_initializer=start, dtype=self.dtype_policy, name="dense")
        self.dense.build((None, input_shape[-1]))
        keep_frozen(self)

    def call(self, inputs):
        """See the class."""
        return tf.cast(self.dense(inputs), tf.float32)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {"initializer_range": self.initializer_range}
