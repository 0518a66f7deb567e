"""`BertMultipleChoice`: an encoder that reads each choice by itself, with one number for each."""

import keras
import tensorflow as tf

from keras_bert_kit.layers.functions import shape_of
from keras_bert_kit.models.encoder import ENCODER_INPUTS, require_inputs
from keras_bert_kit.models.with_encoder import ModelWithEncoder


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertMultipleChoice(ModelWithEncoder):
    """Picks one of several answers or continuations: pooled output of each choice, dropout, dense layer to one number.

    Each choice is a text of its own, or a pair with what all choices share, such as the question. Train with
    `SparseCategoricalCrossentropy(from_logits=True)` on the number of the right choice, int (batch,).

    Args:
        encoder: `BertEncoder` with a pooler. It is used, not copied: training the model trains it.
        dropout_rate: float, probability of dropping a value of the pooled output. Default: `hidden_dropout_prob` of
            the encoder's config.

    Call arguments:
        inputs: dictionary of three int tensors (batch, choices, sequence), else as `BertEncoder` takes them. The number
            of choices may differ from batch to batch.
        training: bool, whether dropout is on.

    Returns:
        Logits, float32 (batch, choices).

    Raises:
        ValueError: The encoder has no pooler; a tensor is missing or has not three axes.

    Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 4.4 (SWAG).

    Example:

    >>> packed = pack((["He reads.", "He reads."], ["Then he sleeps.", "The sea is salt."]))
    >>> model({key: tensor[None] for key, tensor in packed.items()}).shape  # one example with two choices
    TensorShape([1, 2])
    """

    def __init__(self, encoder, dropout_rate=None, **kwargs):
        super().__init__(encoder, needs_pooler=True, **kwargs)
        self.dropout = self.new_dropout(dropout_rate)
        self.dropout_rate = self.dropout.rate
        self.dense = self.new_dense(1)
        self.build()

    def heads(self):
        """See `ModelWithEncoder`."""
        return {"multiple_choice": self.dense}

    def call(self, inputs, training=None):
        """See the class."""
        tensors = require_inputs(inputs, ENCODER_INPUTS, axes=("batch", "choices", "sequence"))
        _, choices, sequence = shape_of(tensors[0])
        texts = [tf.reshape(tensor, (-1, sequence)) for tensor in tensors]  # (B·choices, S)
        pooled = self.encoder(dict(zip(ENCODER_INPUTS, texts, strict=True)), training=training, only="pooled_output")[
            "pooled_output"
        ]
        scores = self.dense(self.dropout(pooled, training=training))  # (B·choices, 1)
        return tf.cast(tf.reshape(scores, (-1, choices)), tf.float32)  # (B, choices)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {"dropout_rate": self.dropout_rate}
