"""One update of the weights: batch, forward, loss, gradients, all-reduce, clip, update."""

import numpy as np
import tensorflow as tf

from keras_bert_kit.training.adamw import AdamW
from keras_bert_kit.training.distribution import part_of
from keras_bert_kit.training.loss_scale import LossScale


class TrainStep:
    """What the loop does with one global batch. It gives the same numbers on one replica and on many.

    Three things make that so. The loss is a sum over all targets of the global batch, divided by their number on all
    replicas. Gradients are added over micro-batches and replicas before they are clipped, so the norm is that of the
    whole batch. A gradient that is not finite on any replica is seen by all, since the sum of all is looked at.

    Args:
        model: `keras.Model`, made in the scope of the strategy.
        optimizer: `keras.optimizers.Optimizer`; its `global_clipnorm` is applied here, after the all-reduce.
        loss: object with `counts`, `sums`, `metrics` and `derived`, such as `CrossEntropy`.
        strategy: `tf.distribute.Strategy`.
        accumulation_steps: int, micro-batches that a replica splits its part of a batch into, one after the other.
        seed: int, of dropout.
        jit_compile: bool, whether XLA compiles forward and backward.

    Attributes:
        names: list of str, what the numbers that a step returns are.
    """

    def __init__(self, model, optimizer, loss, strategy, accumulation_steps=1, seed=0, jit_compile=False):
        self.model = model
        self.optimizer = optimizer
        self.loss = loss
        self.strategy = strategy
        self.accumulation_steps = accumulation_steps
        self.seed = seed
        half = any(layer.compute_dtype == "float16" for layer in [model, *model.layers])
        self.loss_scale = LossScale() if half else None
        self.variables = [variable.value for variable in model.trainable_variables]
        self.names = []
        self._gradients = (
            tf.function(self.gradients, jit_compile=True, autograph=False) if jit_compile else self.gradients
        )
        self.dropout_states = [v.value for v in model.variables if v.path.endswith("seed_generator_state")]

    def __call__(self, batch):
        """Updates the weights.

        Args:
            batch: pair of inputs and labels, per replica.

        Returns:
            float32 (values,), what `names` says: the parts of the loss and the metrics, each a mean over its targets
            in the global batch; what the loss derives from them; `gradient_norm`, before clipping; `learning_rate`;
            `examples`, their number; and with `input_mask` among the inputs, `tokens`, their number, and
            `padding_share`.
        """
        rate = tf.cast(self.optimizer.learning_rate, tf.float32)
        gradients, logs = self.strategy.run(self._gradients, args=batch)
        logs = {name: self._one(value) for name, value in logs.items()} | {"learning_rate": rate}
        factor = self._factor_of_clipping(logs["gradient_norm"])
        if self.loss_scale is None:
            self._apply(gradients, factor)
        else:
            finite = tf.math.is_finite(logs["gradient_norm"])
            tf.cond(finite, lambda: self._apply(gradients, factor), lambda: tf.constant(False))
            self.loss_scale.after_step(finite)
        self.names = list(logs)
        return tf.stack(list(logs.values()))

    def gradients(self, inputs, labels):
        """Runs on each replica: gradients of the mean loss of the global batch, the same on every replica."""
        replica = tf.distribute.get_replica_context()
        self._seed_dropout(replica.replica_id_in_sync_group)
        counts = replica.all_reduce("sum", self.loss.counts(labels))
        gradients, sums, metrics = self._over_micro_batches(inputs, labels, counts)
        if self.strategy.num_replicas_in_sync > 1:
            gradients, sums, metrics = replica.all_reduce("sum", (gradients, sums, metrics))
        norm = tf.linalg.global_norm(gradients)
        if self.loss_scale is not None:
            norm /= self.loss_scale.value
        logs = {name: mean(sums[name], counts[name]) for name in sums}
        logs["loss"] = tf.add_n(list(logs.values()))
        logs |= self.loss.derived(logs)
        logs |= {name: mean(*pair) for name, pair in metrics.items()}
        rows = tf.cast(tf.shape(tf.nest.flatten(labels)[0])[0], tf.float32)
        logs |= {"gradient_norm": norm, "examples": replica.all_reduce("sum", rows)}
        if isinstance(inputs, dict) and "input_mask" in inputs:
            mask = inputs["input_mask"]
            tokens = tf.reduce_sum(tf.cast(mask, tf.float32))
            tokens, places = replica.all_reduce("sum", (tokens, tf.cast(tf.size(mask), tf.float32)))
            logs |= {"tokens": tokens, "padding_share": 1.0 - mean(tokens, places)}
        return [_before_cast(gradient) for gradient in gradients], logs

    def _factor_of_clipping(self, norm):
        """What all gradients are multiplied by, so that their norm is at most `global_clipnorm`."""
        clip = self.optimizer.global_clipnorm
        factor = clip / tf.maximum(norm, clip) if clip else tf.ones([])
        factor /= self.strategy.num_replicas_in_sync  # Keras' optimizers add them up once more
        return factor if self.loss_scale is None else factor / self.loss_scale.value

    def update(self, gradients):
        """Runs on each replica: applies gradients that are the same on every replica."""
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))

    def _over_micro_batches(self, inputs, labels, counts):
        """Sums over this replica's part of the batch: gradients, losses by name, and (sum, count) of the metrics."""
        totals = None
        for number in range(self.accumulation_steps):
            micro = part_of((inputs, labels), number, self.accumulation_steps)
            # One after the other, so that the activations of one micro-batch are in memory at a time.
            with tf.control_dependencies(tf.nest.flatten(totals) if totals else []):
                part = self._micro_batch(*micro, counts)
            totals = part if totals is None else tf.nest.map_structure(tf.add, totals, part)
        return totals

    def _micro_batch(self, inputs, labels, counts):
        with tf.GradientTape() as tape:
            outputs = self.model(inputs, training=True)
            sums = self.loss.sums(labels, outputs)
            target = tf.add_n([mean(sums[name], counts[name]) for name in sums])
            if self.loss_scale is not None:
                target *= self.loss_scale.value
        gradients = tape.gradient(target, self.variables, unconnected_gradients="zero")
        return [tf.convert_to_tensor(g) for g in gradients], sums, self.loss.metrics(labels, outputs)

    def _seed_dropout(self, replica):
        """Makes every random number a function of seed, step and replica, so that a resumed run draws the same ones."""
        turn = tf.cast(self.optimizer.iterations.value, tf.int64) * self.strategy.num_replicas_in_sync
        turn = (turn + tf.cast(replica, tf.int64)) * 65_536  # room for so many draws of a layer in a step
        for number, state in enumerate(self.dropout_states):
            state.assign(tf.stack([tf.constant(_mixed(self.seed, number), tf.int64), turn]))

    def _apply(self, gradients, factor):
        optimizer, clip = self.optimizer, self.optimizer.global_clipnorm
        optimizer.global_clipnorm = None  # it is in the factor
        try:
            if isinstance(optimizer, AdamW):
                with optimizer.multiplying_gradients_by(factor):
                    self.strategy.run(self.update, args=(gradients,))
            else:
                self.strategy.run(
                    lambda parts: self.update([tf.cast(g, tf.float32) * factor for g in parts]), args=(gradients,)
                )
        finally:
            optimizer.global_clipnorm = clip
        return tf.constant(True)

    def _one(self, value):
        """The value of one replica, where all have the same."""
        return self.strategy.experimental_local_results(value)[0]


def _mixed(seed, number):
    """A seed for each layer, far from those of its neighbours."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _before_cast(gradient):
    """What a gradient was cast to float32 from, where it was: the same numbers in half of the memory.

    That is so for matrices in half precision, of one replica and one micro-batch; sums are float32.
    """
    if tf.executing_eagerly() or gradient.op.type != "Cast":
        return gradient
    return gradient.op.inputs[0]


def mean(total, count):
    """Returns total / count; 0 where there is nothing to count."""
    return tf.math.divide_no_nan(total, count)
