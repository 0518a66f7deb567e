"""`AdamW`, as in PyTorch. Source: Loshchilov and Hutter 2017, https://arxiv.org/abs/1711.05101."""

import contextlib

import keras
import tensorflow as tf

from keras_bert_kit.xla import compiled


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class AdamW(keras.optimizers.Adam):
    """Adam with bias correction and decoupled weight decay, as in PyTorch, one fused operation per variable.

    `keras.optimizers.AdamW` differs in two things that matter for BERT: it decays biases and LayerNorm unless told by
    name, and it adds epsilon before the bias correction, so that the first steps are smaller where gradients are small.
    Here variables with one axis (all biases, LayerNorm's `gamma` and `beta`) are not decayed, and
    update = rate * m̂ / (√v̂ + epsilon), with m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ).

    Args:
        learning_rate: float or schedule.
        weight_decay: float or None, share of a weight taken off per step, times the rate. None and 0 take nothing off.
        beta_1: float, decay of the mean of gradients, m.
        beta_2: float, decay of the mean of squared gradients, v.
        epsilon: float.
        **kwargs: of `keras.optimizers.Optimizer`, such as `global_clipnorm`.

    Raises:
        ValueError: The weight decay is below 0, or the norm to clip to is not above 0.
    """

    def __init__(self, learning_rate=5e-5, weight_decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, **kwargs):
        clip = kwargs.get("global_clipnorm")
        if not (weight_decay is None or weight_decay >= 0) or not (clip is None or clip > 0):
            raise ValueError(
                "weight_decay must be 0 or more, and global_clipnorm above 0; None turns either off. "
                f"Received: weight_decay={weight_decay}, global_clipnorm={clip}."
            )
        # Keras' own weight decay knows no rate of a single variable, so it is off.
        super().__init__(learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, **kwargs)
        self.decay = weight_decay or 0.0
        self.schedule = learning_rate
        self._rate_factors = ()
        self._gradient_factor = 1.0

    def set_rate_factors(self, rate_factors):
        """Gives variables a rate of their own, before the optimizer is built; it is not part of the config.

        Args:
            rate_factors: list of (variable, factor). A factor is a float, or a function of the step, for example
                `lambda step: tf.cast(step >= 100, tf.float32)` for a variable that is to rest for 100 steps. Others
                have the factor 1.
        """
        if self.built:
            raise ValueError("Rate factors must be given before the optimizer is built, that is, before Trainer.")
        self._rate_factors = tuple(rate_factors)

    @contextlib.contextmanager
    def multiplying_gradients_by(self, factor):
        """Inside, all gradients count `factor` times, a scalar: in the pass that uses them, without a copy of them."""
        self._gradient_factor = factor
        try:
            yield
        finally:
            self._gradient_factor = 1.0

    def build(self, variables):
        """Makes the moments, and finds the rate factor of each variable; one for another model's is an error."""
        factors = {id(variable): factor for variable, factor in self._rate_factors}
        ours = {id(variable) for variable in variables}
        others = [v.path for v, _ in self._rate_factors if v.trainable and id(v) not in ours]
        if others:
            raise ValueError(
                "Rate factors must be of variables that are trained. Received: factors of others, "
                f"{', '.join(others[:3])}{', …' * (len(others) > 3)}. Make them from the model that is trained."
            )
        super().build(variables)
        self._factors = [factors.get(id(variable), 1.0) for variable in variables]

    def is_decayed(self, variable):
        """Says whether weight decay is applied to a variable: to matrices and tables, which have two axes or more.

        Those that `exclude_from_weight_decay` was given are left out.
        """
        return self.decay > 0 and len(variable.shape) >= 2 and self._use_weight_decay(variable)

    def rate_factor(self, variable):
        """Returns the factor on the rate of a variable, a float, or a scalar tensor where it changes with the step."""
        factor = self._factors[self._get_variable_index(variable)]
        return factor(self.iterations) if callable(factor) else factor

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its two moments."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        rate = tf.cast(learning_rate * self.rate_factor(variable), dtype)
        root = tf.sqrt(1.0 - self.beta_2**step)
        # The correction of both means, 1 - βᵗ, is on the rate and on epsilon instead: the same, for fewer operations.
        _update(
            variable.handle,
            self._momentums[index].value.handle,
            self._velocities[index].value.handle,
            tf.convert_to_tensor(gradient),
            tf.cast(self._gradient_factor, dtype),
            rate * root / (1.0 - self.beta_1**step),
            rate * (self.decay if self.is_decayed(variable) else 0.0),
            self.epsilon * root,
            self.beta_1,
            self.beta_2,
        )

    def get_config(self):
        """Returns the constructor's arguments."""
        config = super().get_config() | {"weight_decay": self.decay}
        return {key: value for key, value in config.items() if key != "amsgrad"}


def _in_place(variable, mean, mean_square, gradient, factor, rate, decay, epsilon, beta_1, beta_2):
    """One pass over a variable and its moments. The first three are handles of resources, of the factor's dtype."""
    handles = (variable, mean, mean_square)
    weight, m, v = (tf.raw_ops.ReadVariableOp(resource=handle, dtype=factor.dtype) for handle in handles)
    gradient = factor * tf.cast(gradient, factor.dtype)
    m += (gradient - m) * (1.0 - beta_1)
    v += (tf.square(gradient) - v) * (1.0 - beta_2)
    weight -= weight * decay + rate * m / (tf.sqrt(v) + epsilon)
    for handle, value in zip(handles, (weight, m, v), strict=True):
        tf.raw_ops.AssignVariableOp(resource=handle, value=value)


_update = compiled(_in_place, reduce_retracing=False)
