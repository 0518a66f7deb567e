"""`WarmUpAndDecay`: the learning rate over the steps of a run."""

import warnings

import keras
import tensorflow as tf


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
