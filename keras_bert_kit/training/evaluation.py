"""`Evaluator`: exact results over a whole data set, on one replica or many."""

import math

import tensorflow as tf

from keras_bert_kit.data.autotune import without_autotune
from keras_bert_kit.training.distribution import share_batches


class Evaluator:
    """Evaluates a model on every example once, the last short batch included.

    Sums and counts are added up over replicas and batches, and divided once, at the end.

    Args:
        model: `keras.Model`.
        loss: object with `parts`, `counts`, `sums`, `metrics` and `derived`, such as `CrossEntropy`.
        strategy: `tf.distribute.Strategy`. Default: the current one.

    Call arguments:
        dataset: `tf.data.Dataset` of batches (inputs, labels), finite.

    Returns:
        Dictionary of floats: `loss`, its parts and the metrics, each a mean over all its targets, NaN without any;
        and what the loss derives from them.
    """

    def __init__(self, model, loss, strategy=None):
        self.model = model
        self.loss = loss
        self.strategy = strategy or tf.distribute.get_strategy()
        self._batch = tf.function(self._totals, reduce_retracing=True, autograph=False)

    def __call__(self, dataset):
        """See the class."""
        totals = {}
        for batch in share_batches(without_autotune(dataset), self.strategy):
            for name, (total, count) in self._batch(batch).items():
                before = totals.get(name, (0.0, 0.0))
                totals[name] = (before[0] + float(total), before[1] + float(count))
        results = {name: total / count if count else math.nan for name, (total, count) in totals.items()}
        results |= {name: float(value) for name, value in self.loss.derived(results).items()}
        return {"loss": sum(results[name] for name in self.loss.parts)} | results

    def _totals(self, batch):
        """(sum, count) of a global batch, by name."""
        totals = self.strategy.run(self._of_replica, args=batch)
        return tf.nest.map_structure(lambda value: self.strategy.reduce("sum", value, axis=None), totals)

    def _of_replica(self, inputs, labels):
        outputs = self.model(inputs, training=False)
        sums, counts = self.loss.sums(labels, outputs), self.loss.counts(labels)
        return {name: (sums[name], counts[name]) for name in sums} | self.loss.metrics(labels, outputs)
