"""`Lamb`, for large batches. Source: You et al. 2019, https://arxiv.org/abs/1904.00962."""

import keras
import tensorflow as tf

from keras_bert_kit.training.adamw import AdamW


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class Lamb(AdamW):
    """AdamW whose step in a matrix w is in proportion to w: rate * ‖w‖ / ‖u‖ * u, with u = m̂ / (√v̂ + ε) + decay * w.

    `keras.optimizers.Lamb` takes the weight decay off before, outside of the ratio, which is another algorithm. As in
    the paper's own code, variables with one axis are neither decayed nor scaled. Query, key and value lie side by side
    in one kernel here and share one ratio.

    Args:
        learning_rate, weight_decay, beta_1, beta_2, epsilon, **kwargs: see `AdamW`.
    """

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its two moments."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        mean, square = self._momentums[index].value, self._velocities[index].value
        step = tf.cast(self.iterations + 1, dtype)
        gradient = tf.cast(tf.convert_to_tensor(gradient), dtype) * tf.cast(self._gradient_factor, dtype)
        new_mean = mean.assign_add((gradient - mean) * (1.0 - self.beta_1))
        new_square = square.assign_add((tf.square(gradient) - square) * (1.0 - self.beta_2))
        corrected = new_square / (1.0 - self.beta_2**step)
        update = new_mean / (1.0 - self.beta_1**step) / (tf.sqrt(corrected) + self.epsilon)
        if self.is_decayed(variable):
            update += self.decay * variable
        rate = tf.cast(learning_rate * self.rate_factor(variable), dtype)
        if len(variable.shape) >= 2:
            weight_norm, update_norm = tf.norm(variable), tf.norm(update)
            rate *= tf.where((weight_norm > 0) & (update_norm > 0), weight_norm / update_norm, 1.0)
        variable.assign_sub(rate * update)
