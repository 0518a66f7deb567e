"""`Evaluator`: exact results over a whole data set, on one replica or many."""

import math

import tensorflow as tf

from keras_bert_kit.data.autotune import without_autotune
from keras_bert_kit.errors import DataError
from keras_bert_kit.training.arguments import require_batches
from keras_bert_kit.training.distribution import share_batches
from keras_bert_kit.training.guards import label_faults


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

    Raises:
        ValueError: It is no data set of batches, or one without end.
        DataError: It is empty, or a label is not a class.
    """

    def __init__(self, model, loss, strategy=None):
        self.model = model
        self.loss = loss
        self.strategy = strategy or tf.distribute.get_strategy()
        self._batch = tf.function(self._totals, autograph=False)

    def __call__(self, dataset):
        """See the class."""
        require_batches(dataset, "dataset", endless=False)
        shares = share_batches(without_autotune(dataset), self.strategy)
        totals_of = self._batch.get_concrete_function(shares.element_spec)  # traced once, for batches of any size
        totals = {}
        for batch in shares:
            for name, (total, count) in totals_of(batch).items():
                before = totals.get(name, (0.0, 0.0))
                totals[name] = (before[0] + float(total), before[1] + float(count))
        if not totals:
            raise DataError("The data must hold at least one batch. Received: an empty data set.")
        results = {name: total / count if count else math.nan for name, (total, count) in totals.items()}
        if any(math.isnan(totals[name][0]) for name in self.loss.parts):
            self._require_labels(dataset)
        results |= {name: float(value) for name, value in self.loss.derived(results).items()}
        return {"loss": sum(results[name] for name in self.loss.parts)} | results

    def _require_labels(self, dataset):
        for inputs, labels in dataset:
            if faults := label_faults(self.model, inputs, labels):
                raise DataError(f"{' '.join(faults)} Number the classes as in training.")

    def _totals(self, batch):
        """(sum, count) of a global batch, by name."""
        totals = self.strategy.run(self._of_replica, args=batch)
        return tf.nest.map_structure(lambda value: self.strategy.reduce("sum", value, axis=None), totals)

    def _of_replica(self, inputs, labels):
        outputs = self.model(inputs, training=False)
        sums, counts = self.loss.sums(labels, outputs), self.loss.counts(labels)
        return {name: (sums[name], counts[name]) for name in sums} | self.loss.metrics(labels, outputs)
