"""`create_optimizer`: AdamW with warm-up and linear decay, the recipe that BERT is fine-tuned with.

Source: `create_optimizer` in google-research/bert (optimization.py) and in `official.nlp.optimization` of
tensorflow/models, whose signature is kept; AdamW: Loshchilov and Hutter 2017, https://arxiv.org/abs/1711.05101.
"""

import warnings

import keras
import tensorflow as tf


def create_optimizer(
    init_lr,
    num_train_steps,
    num_warmup_steps,
    end_lr=0.0,
    optimizer_type="adamw",
    beta_1=0.9,
    poly_power=1.0,
    *,
    weight_decay=0.01,
    global_clipnorm=1.0,
    epsilon=1e-6,
):
    """Makes an AdamW optimizer whose rate rises linearly from 0 to `init_lr`, then falls to `end_lr`.

    A step is one update of the weights. With `epochs` epochs over `examples` examples, `num_train_steps` is
    `epochs * ceil(examples / batch_size)`: not `epochs * examples`, with which the rate never leaves the warm-up.

    Args:
        init_lr: float, the highest learning rate; 2e-5 to 5e-5 for a whole pretrained BERT.
        num_train_steps: int, steps in the whole run.
        num_warmup_steps: int, steps until `init_lr` is reached; a tenth of the run is usual.
        end_lr: float, rate after the last step.
        optimizer_type: `"adamw"`.
        beta_1: float, decay of the mean of gradients.
        poly_power: float, the fall is `(remaining share) ** poly_power`; 1 is linear.
        weight_decay: float, share of a weight taken off per step, times the rate. Biases and LayerNorm's `gamma` and
            `beta` are left out: see `AdamW`.
        global_clipnorm: float or None, gradients are scaled down together to at most this norm.
        epsilon: float, added to the root of the mean square of gradients.

    Returns:
        `AdamW`, a `keras.optimizers.Optimizer` for `compile` or a loop.

    Raises:
        ValueError: A count of steps or a rate makes no sense.

    Example:

    >>> create_optimizer(init_lr=3e-5, num_train_steps=900, num_warmup_steps=90)
    """
    if optimizer_type != "adamw":
        raise ValueError(f"optimizer_type must be 'adamw'. Received: optimizer_type={optimizer_type!r}.")
    schedule = WarmUpAndDecay(init_lr, num_train_steps, num_warmup_steps, end_lr, poly_power)
    return AdamW(schedule, weight_decay, beta_1=beta_1, epsilon=epsilon, global_clipnorm=global_clipnorm)


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class WarmUpAndDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly from 0 to `init_lr` in the warm-up, then falls to `end_lr` at the end.

    At step s, counted from 0: `init_lr * s / num_warmup_steps` in the warm-up; after it, with the remaining share
    r = (num_train_steps - s) / (num_train_steps - num_warmup_steps), `end_lr + (init_lr - end_lr) * r ** poly_power`.

    Args:
        init_lr, num_train_steps, num_warmup_steps, end_lr, poly_power: see `create_optimizer`.
    """

    def __init__(self, init_lr, num_train_steps, num_warmup_steps, end_lr=0.0, poly_power=1.0):
        if not (num_train_steps >= 1 and num_warmup_steps >= 0):
            raise ValueError(
                "num_train_steps must be 1 or more, and num_warmup_steps 0 or more. "
                f"Received: num_train_steps={num_train_steps}, num_warmup_steps={num_warmup_steps}."
            )
        if not 0 <= end_lr <= init_lr:
            raise ValueError(f"init_lr must be at least end_lr, and end_lr 0 or more. Received: {init_lr}, {end_lr}.")
        if num_warmup_steps > num_train_steps:
            warnings.warn(
                f"The warm-up is longer than the run: num_warmup_steps={num_warmup_steps}, num_train_steps="
                f"{num_train_steps}. The rate will only reach {init_lr * num_train_steps / num_warmup_steps:.3g}, not "
                f"init_lr={init_lr:.3g}. Are both counted in steps (batches), not in examples?",
                stacklevel=3,
            )
        self.init_lr = init_lr
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.end_lr = end_lr
        self.poly_power = poly_power

    def __call__(self, step):
        """Returns the rate at a step, a scalar float32 tensor."""
        step = tf.cast(step, tf.float32)
        rising = self.init_lr * step / max(self.num_warmup_steps, 1)
        falling_steps = max(self.num_train_steps - self.num_warmup_steps, 1)
        remaining = tf.clip_by_value((self.num_train_steps - step) / falling_steps, 0.0, 1.0)
        falling = self.end_lr + (self.init_lr - self.end_lr) * remaining**self.poly_power
        return tf.where(step < self.num_warmup_steps, rising, falling)

    def get_config(self):
        """Returns the constructor's arguments."""
        return {
            "init_lr": self.init_lr,
            "num_train_steps": self.num_train_steps,
            "num_warmup_steps": self.num_warmup_steps,
            "end_lr": self.end_lr,
            "poly_power": self.poly_power,
        }


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class AdamW(keras.optimizers.AdamW):
    """Adam with bias correction and decoupled weight decay, as in PyTorch, one fused operation per variable.

    `keras.optimizers.AdamW` differs in two things that matter for BERT: it decays biases and LayerNorm unless told by
    name, and it adds epsilon before the bias correction, so that the first steps are smaller where gradients are small.
    Here variables with one axis (all biases, LayerNorm's `gamma` and `beta`) are not decayed, and
    update = rate * m̂ / (√v̂ + epsilon), with m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ).

    Args:
        learning_rate: float or schedule.
        weight_decay: float, share of a weight taken off per step, times the rate.
        beta_1: float, decay of the mean of gradients, m.
        beta_2: float, decay of the mean of squared gradients, v.
        epsilon: float.
        **kwargs: of `keras.optimizers.Optimizer`, such as `global_clipnorm`.
    """

    def __init__(self, learning_rate=5e-5, weight_decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, **kwargs):
        super().__init__(learning_rate, weight_decay, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, **kwargs)

    def build(self, variables):
        """Makes the moments, and settles which variables are decayed: those with two axes or more."""
        if not self.built:
            self.exclude_from_weight_decay(var_list=[v for v in variables if len(v.shape) < 2])
        super().build(variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable and its two moments."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        beta_1_power, beta_2_power = self.beta_1**step, self.beta_2**step
        # All of one dtype: the operation does not check that, and a mixture ends the process.
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=beta_1_power,
            beta2_power=beta_2_power,
            lr=tf.cast(learning_rate, dtype),
            beta1=tf.cast(self.beta_1, dtype),
            beta2=tf.cast(self.beta_2, dtype),
            # The operation adds epsilon to √v, before the correction; scaled so, it is the same as adding it to √v̂.
            epsilon=self.epsilon * tf.sqrt(1.0 - beta_2_power),
            grad=tf.cast(tf.convert_to_tensor(gradient), dtype),
        )
