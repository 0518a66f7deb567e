"""LayerNorm in the form that TensorFlow fuses into one kernel on CPU, with the right epsilon when it does."""

import keras
import tensorflow as tf

from keras_bert_kit.layers.functions import PACKAGE

# When TensorFlow's graph optimizer replaces LayerNorm by its kernel `_MklLayerNorm`, it forgets the graph's epsilon and
# takes this one (TensorFlow 2.21; found since exported models differed by 1e-3). See `LayerNorm.call`.
EPSILON_OF_FUSED_KERNEL = 1e-3


@keras.saving.register_keras_serializable(package=PACKAGE)
class LayerNorm(keras.layers.Layer):
    """Shifts and scales each token's vector to mean 0 and variance 1, then by learned `gamma` and `beta`.

    Statistics are taken in float32, whatever the compute dtype. Written as `x·scale + (beta - mean·scale)`, which
    TensorFlow's optimizer turns into one kernel when the weights are constants; `keras.layers.LayerNormalization`
    gives the same numbers in eleven nodes.

    Args:
        epsilon: float above 0, added to the variance; BERT's is 1e-12.

    Call arguments:
        inputs: float tensor (..., hidden).

    Returns:
        Tensor of the shape of `inputs`, in the compute dtype.

    Source: Ba et al. 2016, https://arxiv.org/abs/1607.06450.
    """

    def __init__(self, epsilon=1e-12, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.supports_masking = True

    def build(self, input_shape):
        """Makes `gamma` and `beta`, (hidden,)."""
        self.gamma = self.add_weight(shape=input_shape[-1:], initializer="ones", name="gamma", autocast=False)
        self.beta = self.add_weight(shape=input_shape[-1:], initializer="zeros", name="beta", autocast=False)

    def call(self, inputs):
        """See the class."""
        last_axis = inputs.shape.rank - 1
        # (x - mean) / √(variance + epsilon) does not change when x is multiplied by c and epsilon by c². So x is
        # multiplied until epsilon is the one that the fused kernel has, and it is right with and without fusion.
        factor = (EPSILON_OF_FUSED_KERNEL / self.epsilon) ** 0.5
        x = tf.cast(inputs, tf.float32) * factor
        mean, variance = tf.nn.moments(x, axes=[last_axis], keepdims=True)
        scale = tf.math.rsqrt(variance + EPSILON_OF_FUSED_KERNEL) * self.gamma
        return tf.cast(x * scale + (self.beta - mean * scale), self.compute_dtype)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {"epsilon": self.epsilon}
