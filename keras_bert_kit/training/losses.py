"""Losses as sums and counts, so that a mean over all replicas and micro-batches is the mean over the whole batch.

A mean of means is wrong as soon as the parts hold different numbers of targets: the last short batch, padding, masked
words. So a loss here never divides. It says how many targets there are, and what their losses add up to; the loop
divides by the count over all replicas.
"""

import math

import tensorflow as tf

IGNORED_LABEL = -100  # Hugging Face's and PyTorch's convention


class CrossEntropy:
    """Cross-entropy of logits and class numbers: of texts (batch, classes), or of tokens (batch, sequence, classes).

    Labels are int tensors of the shape of the logits without the last axis. Where a label is -100, there is no target:
    it counts neither in the loss nor in the accuracy.

    Args:
        class_names: names of the classes, for the accuracy among the targets of each. Default: only that of all.

    Attributes:
        parts: tuple of str, the names of `counts` and `sums`; the loss is the sum of their means.
    """

    parts = ("loss",)

    def __init__(self, class_names=()):
        self.class_names = tuple(class_names)

    def counts(self, labels):
        """Returns {name: number of targets, scalar float32} of the parts of the loss."""
        return {"loss": tf.reduce_sum(_targets(labels))}

    def sums(self, labels, logits):
        """Returns {name: sum of losses, scalar float32}, in nats, under the names of `counts`.

        It is NaN where a label is neither a class number nor -100: on some devices it would pass for another class.
        """
        labels, logits = self._checked(labels, logits)
        labels, logits = tf.reshape(labels, [-1]), tf.reshape(logits, [-1, logits.shape[-1]])
        is_class = (labels >= 0) & (labels < logits.shape[-1])
        losses = _cross_entropy(tf.where(is_class, labels, 0), tf.cast(logits, tf.float32))
        otherwise = tf.where(labels == IGNORED_LABEL, 0.0, math.nan)
        return {"loss": tf.reduce_sum(tf.where(is_class, losses, otherwise))}

    def metrics(self, labels, logits):
        """Returns {name: (sum, count)}, scalars float32: `accuracy`, and `accuracy of <class>` for each name."""
        labels, logits = self._checked(labels, logits)
        answers = tf.argmax(logits, axis=-1, output_type=tf.int32)
        right = tf.cast(answers == labels, tf.float32)
        found = {"accuracy": (tf.reduce_sum(right), tf.reduce_sum(_targets(labels)))}
        for number, name in enumerate(self.class_names):
            own = tf.cast(labels == number, tf.float32)
            found[f"accuracy of {name}"] = (tf.reduce_sum(right * own), tf.reduce_sum(own))
        return found

    def derived(self, means):
        """Returns {name: value} that follows from the means of the whole batch or data set: here, nothing."""
        return {}

    @staticmethod
    def _checked(labels, logits):
        labels, logits = tf.convert_to_tensor(labels), tf.convert_to_tensor(logits)
        if logits.shape.rank != labels.shape.rank + 1:
            raise ValueError(
                "Labels must be class numbers, of the shape of the logits without the last axis. "
                f"Received: labels {labels.shape}, logits {logits.shape}."
            )
        return _as_classes(labels), logits


class PretrainingLoss:
    """The loss of BERT's pre-training: that of the masked words (MLM) plus that of the next sentence (NSP).

    Each is a mean over its own targets, so that the two weigh the same however many words are masked. Labels and
    outputs are dictionaries with the keys that `BertPretrainer` gives its outputs. Where a label is -100, there is no
    target.

        `mlm_logits`: labels int (batch, predictions), the ids of the masked words.
        `nsp_logits`: labels int (batch,), or (batch, sequences of a row) of packed rows: 0 where B follows A in the
            text, 1 where B is a random sentence.

    Args:
        next_sentence: bool, whether the next sentence is a part of the loss. Without, its labels are not looked at.

    Attributes:
        parts: tuple of str, `mlm_loss` and `nsp_loss`, whose means add up to the loss.

    Source: google-research/bert, run_pretraining.py.
    """

    def __init__(self, next_sentence=True):
        self.tasks = ("mlm", "nsp") if next_sentence else ("mlm",)
        self.parts = tuple(f"{task}_loss" for task in self.tasks)
        self._cross_entropy = CrossEntropy()

    def counts(self, labels):
        """Returns {part: number of targets, scalar float32}."""
        labels = self._of_tasks(labels, "labels")
        return {f"{task}_loss": self._cross_entropy.counts(labels[task])["loss"] for task in self.tasks}

    def sums(self, labels, outputs):
        """Returns {part: sum of losses, scalar float32}, in nats."""
        labels, logits = self._of_tasks(labels, "labels"), self._of_tasks(outputs, "outputs of the model")
        return {f"{task}_loss": self._cross_entropy.sums(labels[task], logits[task])["loss"] for task in self.tasks}

    def metrics(self, labels, outputs):
        """Returns {name: (sum, count)}, scalars float32: `mlm_accuracy` and `nsp_accuracy`."""
        labels, logits = self._of_tasks(labels, "labels"), self._of_tasks(outputs, "outputs of the model")
        return {
            f"{task}_accuracy": self._cross_entropy.metrics(labels[task], logits[task])["accuracy"]
            for task in self.tasks
        }

    def derived(self, means):
        """Returns `mlm_perplexity`, e to the mean loss of a masked word: of how many words it was as hard to choose."""
        return {"mlm_perplexity": tf.exp(means["mlm_loss"])}

    def _of_tasks(self, tensors, what):
        names = {task: f"{task}_logits" for task in self.tasks}
        found = tuple(tensors) if isinstance(tensors, dict) else type(tensors).__name__
        if not isinstance(tensors, dict) or not set(names.values()) <= set(found):
            raise ValueError(
                f"The {what} must be a dictionary with the keys {', '.join(names.values())}. Received: {found}. "
                "For a model without a next-sentence head, write PretrainingLoss(next_sentence=False)."
            )
        return {task: tensors[name] for task, name in names.items()}


@tf.custom_gradient
def _cross_entropy(labels, logits):
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` in a form three times as fast on CPU over a vocabulary.

    Args:
        labels: int32 tensor (targets,).
        logits: float32 tensor (targets, classes).

    Returns:
        float32 tensor (targets,): log Σ exp(logits) - the logit of the label. The sum is exp(largest logit) divided by
        the largest probability, so that the fast kernel of softmax does all the work, forward and backward.
    """
    probabilities = tf.nn.softmax(logits)
    own = tf.gather(logits, labels, batch_dims=1)
    log_sums = tf.reduce_max(logits, axis=-1) - tf.math.log(tf.reduce_max(probabilities, axis=-1))

    def gradient(upstream):
        places = tf.stack([tf.range(tf.size(labels)), labels], axis=1)
        wrong = tf.tensor_scatter_nd_sub(probabilities, places, tf.ones_like(own))
        return None, wrong * upstream[:, tf.newaxis]

    return log_sums - own, gradient


def _as_classes(labels):
    """Labels as int32; -1, which is no class, for a number such as 0.5."""
    classes = tf.cast(labels, tf.int32)
    return tf.where(tf.cast(classes, labels.dtype) == labels, classes, -1) if labels.dtype.is_floating else classes


def _targets(labels):
    """1.0 where there is a target, 0.0 where not."""
    return tf.cast(tf.cast(labels, tf.int32) != IGNORED_LABEL, tf.float32)
