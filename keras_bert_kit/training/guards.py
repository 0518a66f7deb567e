"""Looks, before and during a run, for mistakes that let a model train and learn nothing."""

import math
import warnings

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import TrainingError
from keras_bert_kit.training.losses import IGNORED_LABEL

_ROWS = 4  # enough to see what kind of numbers the outputs are


def check_schedule(schedule, steps, batch_size):
    """Warns of a schedule that is made for a run of another length.

    Args:
        schedule: the optimizer's learning rate; only a `WarmUpAndDecay` is looked at.
        steps: int, of the run.
        batch_size: int, examples a step.
    """
    planned = getattr(schedule, "num_train_steps", None)
    if planned is None:
        return
    highest = float(schedule(min(steps, schedule.num_warmup_steps)))
    if planned < steps:
        what = f"The rate is {schedule.end_lr:g} from step {planned} on, and the rest of the run learns nothing."
    elif batch_size >= 4 and planned >= 0.9 * steps * batch_size:
        what = (
            f"That looks like a count of examples: the rate will only reach {highest:.3g}, and hardly fall. "
            "A step is one update of the weights; an epoch has ceil(examples / batch_size) of them."
        )
    elif steps < schedule.num_warmup_steps:
        what = f"The warm-up is longer than the run: the rate will only reach {highest:.3g}."
    else:
        return
    warnings.warn(
        "num_train_steps of the schedule and the steps of the run should be the same. "
        f"Received: num_train_steps={planned}, steps={steps}. {what}",
        stacklevel=3,
    )


def check_batch(model, inputs, labels):
    """Looks at one batch: labels out of range, rows without a token, outputs that are no logits, regularizers.

    Args:
        model: `keras.Model`; where its output is one tensor, (..., classes), or a dictionary of them, labels are
            compared with it.
        inputs: what the model takes. In a dictionary, `input_mask` is looked at.
        labels: the labels, one tensor, or a dictionary with keys of the outputs.

    Returns:
        Number of classes, or None where the output is not one tensor. A dictionary has several losses, which begin at
        different numbers: of pre-training, ln(vocabulary) and ln(2), which is hard to leave for thousands of steps.

    Raises:
        TrainingError: A label is not a class, or the model has losses of its own.
    """
    if isinstance(inputs, dict) and "input_mask" in inputs:
        empty = int(np.sum(np.all(np.asarray(inputs["input_mask"]) == 0, axis=-1)))
        if empty:
            warnings.warn(
                f"Every row should hold tokens. Received: {empty} rows with an input_mask of zeros in the first batch.",
                stacklevel=3,
            )
    outputs = _outputs_of_some(model, inputs)
    pairs = _pairs(outputs, labels)
    if faults := _label_faults(pairs):
        raise TrainingError(f"{' '.join(faults)} Nothing was trained; number the classes from 0.")
    if model.losses:
        raise TrainingError(
            "The Trainer makes the loss alone smaller, so the model must not add losses of its own. Received: "
            f"{len(model.losses)} in model.losses, such as of regularizers. Take them out; weight_decay of "
            "create_optimizer keeps weights small."
        )
    for name, logits, _ in pairs:
        _warn_of_probabilities(logits, name)
    return outputs.shape[-1] if tf.is_tensor(outputs) and tf.is_tensor(labels) else None


def is_broken(logs, loss_scale):
    """Says whether a step was one to stop at: its loss or its gradient is not finite.

    Of float16 an infinite gradient alone is none: the step was left out, and the loss scale halved, until that is 1.

    Args:
        logs: dictionary with `loss` and `gradient_norm`.
        loss_scale: `LossScale` or None.
    """
    finite = math.isfinite(logs["loss"]), math.isfinite(logs["gradient_norm"])
    was_left_out = not finite[1] and loss_scale is not None and float(loss_scale.value.numpy()) > 1.0
    return not all(finite) and not was_left_out


def broken_step(step, logs, model, batches):
    """Makes the error that says why a step broke.

    Args:
        step: int.
        logs: dictionary of floats, of that step.
        model: `keras.Model`.
        batches: `tf.data.Dataset` in which to look for labels that are no classes: the batch of that step first, or
            where that cannot be had, as data is shuffled anew, an epoch.

    Returns:
        `TrainingError`.
    """
    faults = ()
    if math.isfinite(logs["gradient_norm"]):  # a label that is no class has a loss of NaN and no gradient
        faults = next((found for batch in batches if (found := label_faults(model, *batch))), ())
    why = " ".join(faults) or "Lower the learning rate, or look for broken examples and labels in that batch."
    return TrainingError(
        f"Loss and gradient must be finite. Received: loss {logs['loss']}, gradient norm {logs['gradient_norm']} at "
        f"step {step}. {why} The checkpoints are from before that step."
    )


def label_faults(model, inputs, labels):
    """Says which labels of a batch are no classes: list of str, one for each output that has such labels."""
    return _label_faults(_pairs(_outputs_of_some(model, inputs), labels))


def _outputs_of_some(model, inputs):
    return model(tf.nest.map_structure(lambda tensor: tensor[:_ROWS], inputs), training=False)


def _pairs(outputs, labels):
    """List of (name, output, labels) of the outputs that have labels; one that is alone has the name ""."""
    outputs, labels = (tensors if isinstance(tensors, dict) else {"": tensors} for tensors in (outputs, labels))
    pairs = [(name, outputs[name], labels[name]) for name in sorted(outputs.keys() & labels.keys())]
    return [pair for pair in pairs if tf.is_tensor(pair[1]) and tf.is_tensor(pair[2])]


def _label_faults(pairs):
    faults = []
    for name, logits, labels in pairs:
        classes, found = logits.shape[-1], np.asarray(labels)
        in_range = (found >= 0) & (found < classes) & (found % 1 == 0)
        wrong = sorted(set(found[(found != IGNORED_LABEL) & ~in_range].tolist()))[:10]
        if wrong:
            faults.append(
                f"Labels{f' of {name}' * bool(name)} must be class numbers from 0 to {classes - 1}, or {IGNORED_LABEL} "
                f"for no target. Received: {wrong}."
            )
    return faults


def _warn_of_probabilities(logits, name):
    numbers = np.asarray(logits, dtype="float64")
    if numbers.size and numbers.min() >= 0 and np.allclose(numbers.sum(axis=-1), 1.0, atol=1e-3):
        warnings.warn(
            f"The loss takes logits. Received: outputs{f' of {name}' * bool(name)} that are probabilities (from 0 to "
            "1, adding up to 1). Leave the softmax out of the model.",
            stacklevel=4,
        )


class StuckLoss:
    """Warns once when the loss stays at ln(classes), that of guessing.

    Args:
        num_classes: int, or None where there are no classes: then nothing is looked at.
        patience_steps: int, steps over which the mean is taken.
    """

    def __init__(self, num_classes, patience_steps=200):
        self.chance = math.log(num_classes) if num_classes else None
        self.patience_steps = patience_steps
        self._losses = []

    def see(self, step, loss):
        """Takes the loss of a step."""
        self._losses.append(loss)
        if len(self._losses) == self.patience_steps:
            mean = sum(self._losses) / len(self._losses)
            if self.chance and abs(mean - self.chance) < 0.01 * self.chance:
                warnings.warn(
                    f"The loss should fall. Received: {mean:.4f} on average over the last {self.patience_steps} steps, "
                    f"at step {step}, which is guessing (ln of the number of classes is {self.chance:.4f}). Is the "
                    "rate too low or too high, are labels and texts in the same order?",
                    stacklevel=2,
                )
            self._losses = []
