"""From ids to vectors: BERT's three summed tables, and the simpler embeddings of a transformer from scratch."""

import keras
import numpy as np
import tensorflow as tf

from keras_bert_kit.layers.dropout import Dropout
from keras_bert_kit.layers.frozen import keep_frozen
from keras_bert_kit.layers.functions import PACKAGE, initializer, look_up, require_below, require_length, shape_of
from keras_bert_kit.layers.normalization import LayerNorm


@keras.saving.register_keras_serializable(package=PACKAGE)
class BertEmbeddings(keras.layers.Layer):
    """Sum of a word's, a position's and a segment's vector, then LayerNorm and dropout.

    Args:
        vocab_size: int, rows of the word table.
        hidden_size: int, width of a vector.
        max_position_embeddings: int, rows of the position table, the longest sequence.
        type_vocab_size: int, rows of the segment table.
        dropout_rate: float, probability of dropping a value.
        epsilon: float, added to the variance in LayerNorm.
        initializer_range: float, standard deviation of new weights.

    Call arguments:
        input_word_ids: int tensor (batch, sequence), each in [0, vocab_size).
        input_type_ids: int tensor (batch, sequence), each in [0, type_vocab_size). Default: all 0.
        positions: int tensor (batch, sequence), each in [0, max_position_embeddings), for rows that hold several
            sequences. Default: 0, 1, 2, … in every row.
        training: bool, whether dropout is on.

    Returns:
        Tensor (batch, sequence, hidden).

    Raises:
        ValueError: The sequence is longer than the position table (when its length is known in advance).
        tf.errors.InvalidArgumentError: The same at run time, or an id outside of its table, named with its limit.

    Source: Devlin et al. 2018, figure 2, https://arxiv.org/abs/1810.04805.
    """

    def __init__(
        self,
        vocab_size,
        hidden_size,
        max_position_embeddings=512,
        type_vocab_size=2,
        dropout_rate=0.1,
        epsilon=1e-12,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.dropout_rate = dropout_rate
        self.epsilon = epsilon
        self.initializer_range = initializer_range

    def build(self, *_):
        """Makes the three tables, `layer_norm` and `dropout`."""
        self.word_embeddings = self._table(self.vocab_size, "word_embeddings")
        self.position_embeddings = self._table(self.max_position_embeddings, "position_embeddings")
        self.type_embeddings = self._table(self.type_vocab_size, "type_embeddings")
        self.layer_norm = LayerNorm(self.epsilon, dtype=self.dtype_policy, name="layer_norm")
        self.dropout = Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")
        self.layer_norm.build((None, None, self.hidden_size))
        keep_frozen(self)

    def _table(self, rows, name):
        # Without autocast: rows are cast after look-up, which is cheaper than casting the table.
        shape = (rows, self.hidden_size)
        return self.add_weight(shape=shape, initializer=initializer(self.initializer_range), name=name, autocast=False)

    def call(self, input_word_ids, input_type_ids=None, positions=None, training=None):
        """See the class."""
        words = require_below(input_word_ids, self.vocab_size, "input_word_ids", "the rows of the word table")
        embeddings = look_up(self.word_embeddings.value, words)
        embeddings += self._first_positions(shape_of(words)[1]) if positions is None else self._positions(positions)
        if input_type_ids is None:
            embeddings += self.type_embeddings[0]
        else:
            types = require_below(input_type_ids, self.type_vocab_size, "input_type_ids", "the rows of the type table")
            embeddings += look_up(self.type_embeddings.value, types)
        return self.dropout(self.layer_norm(embeddings), training=training)  # (B, S, D)

    def _positions(self, positions):
        limit, means = self.max_position_embeddings, "the rows of the position table"
        return look_up(self.position_embeddings.value, require_below(positions, limit, "positions", means))  # (B, S, D)

    def _first_positions(self, sequence):
        sequence = require_length(sequence, self.max_position_embeddings, "max_position_embeddings")
        return self.position_embeddings[:sequence]  # (S, D)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "max_position_embeddings": self.max_position_embeddings,
            "type_vocab_size": self.type_vocab_size,
            "dropout_rate": self.dropout_rate,
            "epsilon": self.epsilon,
            "initializer_range": self.initializer_range,
        }


@keras.saving.register_keras_serializable(package=PACKAGE)
class TokenAndPositionEmbedding(keras.layers.Layer):
    """Sum of a token's and a position's learned vector: the first layer of a transformer from scratch.

    Args:
        vocab_size: int, rows of the token table.
        sequence_length: int, rows of the position table, the longest sequence.
        hidden_size: int, width of a vector.
        mask_zero: bool, whether id 0 is padding. If so, Keras carries the mask to the layers that follow, and
            attention and pooling leave padding out.

    Call arguments:
        inputs: int tensor (batch, sequence).

    Returns:
        Tensor (batch, sequence, hidden).
    """

    def __init__(self, vocab_size, sequence_length, hidden_size, mask_zero=True, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.sequence_length = sequence_length
        self.hidden_size = hidden_size
        self.mask_zero = mask_zero

    def build(self, *_):
        """Makes the two tables."""
        shapes = {"token_embeddings": self.vocab_size, "position_embeddings": self.sequence_length}
        self.token_embeddings, self.position_embeddings = (
            self.add_weight(shape=(rows, self.hidden_size), initializer="uniform", name=name, autocast=False)
            for name, rows in shapes.items()
        )

    def call(self, inputs):
        """See the class."""
        tokens = require_below(inputs, self.vocab_size, "token ids", "the rows of the token table")
        sequence = require_length(shape_of(inputs)[1], self.sequence_length, "sequence_length")
        embeddings = look_up(self.token_embeddings.value, tokens) + self.position_embeddings[:sequence]
        return tf.cast(embeddings, self.compute_dtype)  # (B, S, D)

    def compute_mask(self, inputs, mask=None):
        """Returns true for tokens, false for padding, (batch, sequence)."""
        return keras.ops.not_equal(inputs, 0) if self.mask_zero else mask

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "vocab_size": self.vocab_size,
            "sequence_length": self.sequence_length,
            "hidden_size": self.hidden_size,
            "mask_zero": self.mask_zero,
        }


def sinusoidal_position_encoding(sequence_length, hidden_size):
    """Sines at even and cosines at odd places, with wavelengths from 2π to 10,000·2π.

    Args:
        sequence_length: int or scalar int tensor, number of positions.
        hidden_size: int, width of a vector.

    Returns:
        float32 tensor (sequence_length, hidden_size).

    Source: Vaswani et al. 2017, section 3.5, https://arxiv.org/abs/1706.03762.
    """
    places = np.arange(hidden_size)
    frequencies = 10000.0 ** (-2 * (places // 2) / hidden_size)
    angles = tf.range(sequence_length, dtype=tf.float32)[:, tf.newaxis] * frequencies.astype(np.float32)  # (S, D)
    return tf.where(places % 2 == 0, tf.sin(angles), tf.cos(angles))


@keras.saving.register_keras_serializable(package=PACKAGE)
class SinusoidalPositionEncoding(keras.layers.Layer):
    """Adds `sinusoidal_position_encoding` to token vectors; has no weights, and no longest sequence.

    Call arguments:
        inputs: float tensor (batch, sequence, hidden), with a known hidden size.

    Returns:
        Tensor of the same shape.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        """See the class."""
        sequence, hidden_size = shape_of(inputs)[1:]
        return inputs + tf.cast(sinusoidal_position_encoding(sequence, hidden_size), inputs.dtype)
