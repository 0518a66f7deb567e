"""`LossScale`: keeps the gradients of float16 away from zero and from infinity."""

import tensorflow as tf


class LossScale(tf.Module):
    """A factor on the loss that doubles after many good steps and halves when a gradient is not finite.

    float16 ends at 6e-8 and at 65,504: without a factor small gradients vanish. bfloat16 has the range of float32, and
    needs none. Source: Micikevicius et al. 2017, https://arxiv.org/abs/1710.03740, section 3.2.

    Args:
        start: float, the first factor.
        steps_to_double: int, good steps in a row after which the factor doubles.

    Attributes:
        value: `tf.Variable`, float32, the factor.
        good_steps: `tf.Variable`, int64, good steps in a row.
    """

    def __init__(self, start=2.0**15, steps_to_double=2000):
        super().__init__(name="loss_scale")
        self.steps_to_double = steps_to_double
        self.value = tf.Variable(start, trainable=False, name="value", dtype=tf.float32)
        self.good_steps = tf.Variable(0, trainable=False, name="good_steps", dtype=tf.int64)

    def after_step(self, finite):
        """Updates the factor; to be called once per step, outside of `strategy.run`.

        Args:
            finite: scalar bool tensor, whether all gradients of the step were finite on all replicas.
        """
        good = tf.where(finite, self.good_steps + 1, 0)
        full = good >= self.steps_to_double
        factor = tf.where(finite, tf.where(full, 2.0, 1.0), 0.5)
        self.value.assign(tf.maximum(self.value * factor, 1.0))
        self.good_steps.assign(tf.where(full, tf.zeros_like(good), good))
