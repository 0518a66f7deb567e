"""`BertClassifier`: an encoder with a dense layer on its pooled output."""

import keras
import tensorflow as tf

from keras_bert_kit.models.with_encoder import ModelWithEncoder, checked_class_names


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertClassifier(ModelWithEncoder):
    """Classifies texts, or pairs of texts: pooled output, dropout, dense layer.

    Returns logits, not probabilities: train with `SparseCategoricalCrossentropy(from_logits=True)`.

    Args:
        encoder: `BertEncoder` with a pooler. It is used, not copied: training the classifier trains it.
        num_classes: int, 2 or more.
        class_names: one string per class, in the order of the logits. They are saved and exported with the model.
            Default: `"LABEL_0"`, `"LABEL_1"`, …
        dropout_rate: float, probability of dropping a value of the pooled output. Default: `hidden_dropout_prob` of
            the encoder's config.

    Call arguments:
        inputs: dictionary of the three int tensors (batch, sequence) that `BertEncoder` takes.
        training: bool, whether dropout is on.

    Returns:
        Logits, float32 (batch, classes).

    Raises:
        ValueError: The encoder has no pooler, or the number of names is not `num_classes`.

    Source: `create_model` in google-research/bert, run_classifier.py.
    """

    def __init__(self, encoder, num_classes, class_names=None, dropout_rate=None, **kwargs):
        super().__init__(encoder, needs_pooler=True, **kwargs)
        self.num_classes = num_classes
        self.class_names = checked_class_names(num_classes, class_names)
        self.dropout = self.new_dropout(dropout_rate)
        self.dropout_rate = self.dropout.rate
        self.dense = self.new_dense(num_classes)
        self.build()

    def heads(self):
        """See `ModelWithEncoder`."""
        return {"classifier": self.dense}

    def call(self, inputs, training=None):
        """See the class."""
        pooled = self.encoder(inputs, training=training, only="pooled_output")["pooled_output"]
        return tf.cast(self.dense(self.dropout(pooled, training=training)), tf.float32)  # (B, C)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_classes": self.num_classes,
            "class_names": list(self.class_names),
            "dropout_rate": self.dropout_rate,
        }
