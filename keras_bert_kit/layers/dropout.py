"""`Dropout`, as Keras', for less time."""

import keras
import tensorflow as tf

from keras_bert_kit.layers import fused
from keras_bert_kit.layers.functions import PACKAGE
from keras_bert_kit.layers.random import seed_of


@keras.saving.register_keras_serializable(package=PACKAGE)
class Dropout(keras.layers.Dropout):
    """Sets values to 0 with probability `rate` in training, and scales the others up so that the mean stays.

    Args:
        rate: float in [0, 1).

    Source: Srivastava et al. 2014, https://jmlr.org/papers/v15/srivastava14a.html.
    """

    def call(self, inputs, training=False):
        """See the class."""
        return fused.dropout(inputs, self.rate, self.draw_seed()) if training and self.rate else inputs

    def draw_seed(self):
        """Returns a new seed, uint32 (2,), for a function that drops values itself; zeros where the rate is 0."""
        return seed_of(self.seed_generator.next()) if self.rate else tf.zeros([2], tf.uint32)
