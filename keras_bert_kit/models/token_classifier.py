"""`BertTokenClassifier`: an encoder with a dense layer on the output of every token, as for named entities."""

import keras
import tensorflow as tf

from keras_bert_kit.models.with_encoder import ModelWithEncoder, checked_class_names


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertTokenClassifier(ModelWithEncoder):
    """Classifies every token of a text: sequence output, dropout, dense layer.

    Returns logits, not probabilities: train with
    `SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)` on labels int (batch, sequence). Padding is
    left out of the loss and of metrics, since the logits carry the padding mask that Keras' `fit` and `evaluate` look
    at. Give -100, the label that Hugging Face's data carries too, to other tokens that have no class: [CLS], [SEP],
    and the pieces of a word after its first. Metrics do not know -100: give
    `sample_weight=(labels != -100)` and `weighted_metrics=["accuracy"]` to leave those tokens out of them. In a
    training loop of your own, the mask is `input_mask`. On several replicas `fit` takes the mean of their means.

    Args:
        encoder: `BertEncoder`, with or without a pooler, which is not used. It is shared, not copied: training the
            classifier trains it.
        num_classes: int, 2 or more.
        class_names: one string per class, in the order of the logits, for example `["O", "B-PER", "I-PER"]`. They are
            saved with the model. Default: `"LABEL_0"`, `"LABEL_1"`, …
        dropout_rate: float, probability of dropping a value of the sequence output. Default: `hidden_dropout_prob` of
            the encoder's config.

    Call arguments:
        inputs: dictionary of the three int tensors (batch, sequence) that `BertEncoder` takes.
        training: bool, whether dropout is on.

    Returns:
        Logits, float32 (batch, sequence, classes), at padding too.

    Raises:
        ValueError: The number of names is not `num_classes`.

    Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 5.3; `BertForTokenClassification` of
    Transformers.
    """

    def __init__(self, encoder, num_classes, class_names=None, dropout_rate=None, **kwargs):
        super().__init__(encoder, needs_pooler=False, **kwargs)
        self.num_classes = num_classes
        self.class_names = checked_class_names(num_classes, class_names)
        self.dropout = self.new_dropout(dropout_rate)
        self.dropout_rate = self.dropout.rate
        self.dense = self.new_dense(num_classes)
        self.build()

    def heads(self):
        """See `ModelWithEncoder`."""
        return {"token_classifier": self.dense}

    def call(self, inputs, training=None):
        """See the class."""
        tokens = self.encoder(inputs, training=training)["sequence_output"]
        return tf.cast(self.dense(self.dropout(tokens, training=training)), tf.float32)  # (B, S, C)

    def compute_mask(self, inputs, *_):
        """Returns the padding mask that Keras puts on the logits, bool (batch, sequence)."""
        return keras.ops.not_equal(inputs["input_mask"], 0)  # not a function of tf: Keras gives it symbols, too

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "num_classes": self.num_classes,
            "class_names": list(self.class_names),
            "dropout_rate": self.dropout_rate,
        }
