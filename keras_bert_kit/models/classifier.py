"""`BertClassifier`: an encoder with a dense layer on its pooled output."""

import keras
import tensorflow as tf

from keras_bert_kit.layers.functions import initializer


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertClassifier(keras.Model):
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
        kwargs.setdefault("dtype", encoder.dtype_policy)
        super().__init__(**kwargs)
        if not encoder.add_pooler:
            raise ValueError(
                "encoder must have a pooler. Received: an encoder with add_pooler=False, so without pooled_output. "
                "Load it with allow_missing=['pooler'] to start from a new one."
            )
        names = [f"LABEL_{i}" for i in range(num_classes)] if class_names is None else list(class_names)
        if num_classes < 2 or len(names) != num_classes or len(set(names)) != num_classes:
            raise ValueError(
                "num_classes must be 2 or more, and class_names must hold that many different names. "
                f"Received: num_classes={num_classes}, class_names={names[:20]}."
            )
        self.encoder = encoder
        self.num_classes = num_classes
        self.class_names = tuple(names)
        self.dropout_rate = encoder.config.hidden_dropout_prob if dropout_rate is None else dropout_rate
        self.dropout = keras.layers.Dropout(self.dropout_rate, dtype=self.dtype_policy, name="dropout")
        start = initializer(encoder.config.initializer_range)
        self.dense = keras.layers.Dense(num_classes, kernel_initializer=start, dtype=self.dtype_policy, name="logits")
        self.build()

    def build(self, *_):
        """Makes the variables of the dense layer, (hidden, classes) and (classes,)."""
        self.dense.build((None, self.encoder.config.hidden_size))
        self.built = True

    def call(self, inputs, training=None):
        """See the class."""
        pooled = self.encoder(inputs, training=training)["pooled_output"]
        return tf.cast(self.dense(self.dropout(pooled, training=training)), tf.float32)  # (B, C)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
            "class_names": list(self.class_names),
            "dropout_rate": self.dropout_rate,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Makes the classifier again, with its encoder."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"], custom_objects)
        return super().from_config(config | {"encoder": encoder})
