"""`Trainer`: the training loop. It knows nothing of BERT: model, optimizer, loss and strategy are arguments."""

import dataclasses
import math
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import tensorflow as tf

from keras_bert_kit.data.autotune import without_autotune
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import require_writable
from keras_bert_kit.training.arguments import (
    require_batches,
    require_counts,
    require_nothing_to_validate,
    require_objects,
    require_plain_optimizer,
    require_scope,
)
from keras_bert_kit.training.batches import batching_of, first_and_all
from keras_bert_kit.training.checkpoint import Checkpoints
from keras_bert_kit.training.distribution import share_batches
from keras_bert_kit.training.evaluation import Evaluator
from keras_bert_kit.training.guards import StuckLoss, broken_step, check_batch, check_schedule, is_broken
from keras_bert_kit.training.progress import ProgressBar
from keras_bert_kit.training.records import Records
from keras_bert_kit.training.step import TrainStep
from keras_bert_kit.training.stop import StopSignal
from keras_bert_kit.training.strategy import is_chief
from keras_bert_kit.training.tensorboard import Scalars


class Trainer:
    """Trains a Keras model by a loop over a `tf.distribute` strategy, the same on one replica and on many.

    Replicas and micro-batches draw dropout masks of their own: numbers are the same where there is no dropout.

    A step is one update of the weights. `batch_size`, in the data set, is global: over all replicas and micro-batches.

    Args:
        model: `keras.Model`, made in the scope of `strategy`.
        optimizer: `keras.optimizers.Optimizer`, such as `create_optimizer` gives.
        loss: object with `parts`, `counts`, `sums`, `metrics` and `derived`, such as `CrossEntropy`.
        strategy: `tf.distribute.Strategy`. Default: the current one.
        accumulation_steps: int, micro-batches that each replica splits its part of a batch into, to save memory. The
            numbers are those of the whole batch.
        steps_per_call: int, steps inside one call of the compiled function, which saves time between short steps.
        jit_compile: bool, whether XLA compiles the step; for data of static shapes, on one replica.
        seed: int, of dropout.

    Example:

    >>> strategy = make_strategy("auto")
    >>> with strategy.scope():
    ...     model = BertClassifier(load_pretrained(source).encoder, num_classes=4)
    ...     optimizer = create_optimizer(3e-5, num_train_steps=900, num_warmup_steps=90)
    >>> trainer = Trainer(model, optimizer, CrossEntropy(), strategy=strategy)
    >>> trainer.fit(train_dataset, steps=900, validation_dataset=held_out, checkpoint_dir="runs/news")
    """

    def __init__(
        self,
        model,
        optimizer,
        loss,
        *,
        strategy=None,
        accumulation_steps=1,
        steps_per_call=1,
        jit_compile=False,
        seed=0,
    ):
        require_objects(model, optimizer, loss)
        require_counts(accumulation_steps=accumulation_steps, steps_per_call=steps_per_call)
        require_plain_optimizer(optimizer)
        self.model = model
        self.optimizer = optimizer
        self.loss = loss
        self.strategy = strategy or tf.distribute.get_strategy()
        require_scope(self.strategy, model, optimizer)
        if jit_compile and self.strategy.num_replicas_in_sync > 1:
            raise ValueError("jit_compile=True is for one replica. On a TPU, XLA compiles the step anyway.")
        self.steps_per_call = steps_per_call
        with self.strategy.scope():
            optimizer.build(model.trainable_variables)
            self.step = TrainStep(model, optimizer, loss, self.strategy, accumulation_steps, seed, jit_compile)
        self._train_call = tf.function(self._train_steps, autograph=False)  # AutoGraph doubles the time of tracing
        self._evaluator = Evaluator(model, loss, self.strategy)

    def fit(
        self,
        train_dataset,
        steps,
        *,
        validation_dataset=None,
        validate_every=None,
        monitor=None,
        patience=None,
        restore_best=False,
        checkpoint_dir=None,
        save_every=None,
        keep_last=2,
        on_validation=None,
    ):
        """Trains until `steps` steps are done, counted from the first one ever made in `checkpoint_dir`.

        Afterwards the model holds the weights of the last step, or with `restore_best=True` those of the best one. The
        best ones are in `checkpoint_dir` either way, and `trainer.restore_best(checkpoint_dir)` brings them back later.

        Args:
            train_dataset: `tf.data.Dataset` of global batches (inputs, labels), which is repeated as needed; or an
                object with `batches_from(position)`, a data set of the batches after so many examples, such as
                `ShuffledBatches`, which resumes at once where a data set has to be run through from its start.
            steps: int, updates of the weights.
            validation_dataset: `tf.data.Dataset` of the same kind, to evaluate on.
            validate_every: int, steps between evaluations; the last step is always followed by one. Default: only that.
            monitor: str, which result says what is best: lower is better for names that end in `loss` or `perplexity`,
                higher for others. A result that is no number (NaN) is never the best. Default: `loss`.
            patience: int, evaluations without a new best after which the run ends early. Default: never.
            restore_best: bool, whether the model gets the weights of the best evaluation when the run ends, by
                `patience` or after its last step.
            checkpoint_dir: folder of checkpoints. If there is one, the run goes on from the newest. With several
                workers, a folder that all of them see; the first worker writes. Beside the checkpoints lie `log.jsonl`,
                a line per step and evaluation, and `tensorboard/`.
            save_every: int, steps between checkpoints; the last step is always followed by one. Default: only that,
                and SIGTERM, after which the run is saved and the process ends with exit code 0.
            keep_last: int, how many checkpoints to go on from are kept, besides the best.
            on_validation: function of (step, dictionary of results), called after each evaluation. Default: they are
                shown beside the progress.

        Returns:
            `History`.

        Raises:
            ValueError, DataError: An argument or the data makes no sense; nothing was trained.
            OSError: `checkpoint_dir` is no folder, or may not be written to.
            TrainingError: A loss or a gradient is not finite; the message says at which step.
            CheckpointError: The checkpoints are of another model or of other batches, or all damaged.
        """
        optional = {"validate_every": validate_every, "patience": patience, "save_every": save_every}
        require_counts(steps=steps, **{name: count for name, count in optional.items() if count is not None})
        require_batches(train_dataset, "train_dataset")
        if validation_dataset is None:
            require_nothing_to_validate(monitor=monitor, patience=patience, restore_best=restore_best)
        else:
            require_batches(validation_dataset, "validation_dataset", endless=False)
        with ExitStack() as running:
            stop = running.enter_context(StopSignal())
            chief = is_chief(self.strategy)
            folder = Path(checkpoint_dir) if checkpoint_dir else None
            if folder and chief:
                require_writable(folder)
            checkpoints = Checkpoints(folder, self._state_variables(), keep_last, chief) if folder else None
            state = _State(**(checkpoints and checkpoints.restore() or {}))
            first, batches = first_and_all(_from_position(train_dataset, state))
            state.require_same_batching(batching_of(train_dataset, state.step, _rows_of(first)))
            stuck = self._look_before(first, steps, validation_dataset, monitor)
            log_folder = folder if chief else None  # of several workers, one writes
            records = running.enter_context(closing(Records(log_folder, state.step, not state.to_validate)))
            scalars = running.enter_context(closing(Scalars(log_folder)))
            bar = running.enter_context(closing(ProgressBar(steps, state.step, state.position)))
            best_weights = []

            def save():
                records.flush()
                checkpoints.save(state.step, dataclasses.asdict(state))

            def validate():
                results = self.evaluate(validation_dataset)
                records.add(state.step, validation=results)
                scalars.add(state.step, results, "validation")
                if state.is_best(results, monitor or "loss"):
                    if checkpoints:
                        checkpoints.save_best(state.step, dataclasses.asdict(state))
                    if restore_best:
                        best_weights[:] = [weight.numpy() for weight in self.model.weights]
                if checkpoints:
                    records.flush()
                    checkpoints.update(state.step, dataclasses.asdict(state))
                (on_validation or bar.show)(state.step, results)

            if state.to_validate and validation_dataset is not None:  # saved, then killed before the evaluation ended
                validate()
            batches = iter(share_batches(batches, self.strategy))
            while state.step < steps and not state.is_exhausted(patience) and not stop.requested:
                count = min(_until(state.step, period) for period in (self.steps_per_call, validate_every, save_every))
                for logs, examples in self._train(batches, min(count, steps - state.step), state, train_dataset):
                    records.add(state.step, **logs)
                    scalars.add(state.step, logs, "train")
                    bar.update(state.step, logs, examples)
                    stuck.see(state.step, logs["loss"])
                is_last = state.step == steps
                state.to_validate = validation_dataset is not None and (is_last or _is_due(state.step, validate_every))
                if checkpoints and (is_last or _is_due(state.step, save_every)):
                    save()  # before the evaluation, which may fail
                if state.to_validate:
                    validate()
            if checkpoints:
                save()
            if stop.requested and state.step < steps:
                sys.exit(0 if checkpoints else 143)
            if restore_best and state.best_step is not None:
                self._set_weights(best_weights) if best_weights else self.restore_best(folder)
            return History(records.lines, state.step, state.best, state.best_step)

    def restore_best(self, checkpoint_dir):
        """Gives the model the weights that were best under `monitor`, from the folder of a run; returns their step.

        The optimizer stays as it is. To train on from there, use another `checkpoint_dir`: a run goes on from its last
        step, not from its best.

        Args:
            checkpoint_dir: what `fit` was given, beside a `validation_dataset`.

        Raises:
            CheckpointError: No evaluation was saved there, or it was of another model.
        """
        return Checkpoints(checkpoint_dir, self._state_variables(), writes=False).restore_best()

    def evaluate(self, dataset):
        """Evaluates on every example once: see `Evaluator`."""
        return self._evaluator(dataset)

    def _look_before(self, first, steps, validation_dataset, monitor):
        """Checks what can be checked before the first step; returns what looks for a loss that does not fall."""
        inputs, labels = first
        check_schedule(getattr(self.optimizer, "schedule", None), steps, _rows_of(first))
        stuck = StuckLoss(check_batch(self.model, inputs, labels))
        if validation_dataset is not None:
            results = self.evaluate(validation_dataset.take(1))
            if monitor not in (None, *results):
                raise ValueError(f"monitor must be one of {', '.join(results)}. Received: monitor={monitor!r}.")
        return stuck

    def _train(self, batches, count, state, train_dataset):
        """Makes some steps, and yields the logs of each, with the state moved on."""
        for row in self._train_call(batches, tf.constant(count)).numpy().tolist():
            logs = dict(zip(self.step.names, row, strict=True))
            state.step += 1
            examples = int(logs.pop("examples"))
            state.position += examples
            if is_broken(logs, self.step.loss_scale):
                before = dataclasses.replace(state, step=state.step - 1, position=state.position - examples)
                suspects = _from_position(train_dataset, before).take(state.steps_per_epoch or 1)
                raise broken_step(state.step, logs, self.model, suspects)
            yield logs, examples

    def _train_steps(self, batches, count):
        def one_more(number, table):
            return number + 1, table.write(number, self.step(next(batches)))

        table = tf.TensorArray(tf.float32, size=count)
        _, table = tf.while_loop(lambda number, table: number < count, one_more, (tf.constant(0), table))
        return table.stack()

    def _set_weights(self, values):
        for weight, value in zip(self.model.weights, values, strict=True):
            weight.assign(value)

    def _state_variables(self):
        """Everything that a step changes and the next one needs, by its place: Keras' names count a process' layers."""
        groups = {"model": self.model.weights, "optimizer": self.optimizer.variables}
        if self.step.loss_scale:
            groups["loss_scale"] = self.step.loss_scale.variables
        return {
            f"{group}/{place:04d}": variable
            for group, variables in groups.items()
            for place, variable in enumerate(variables)
        }


@dataclasses.dataclass(frozen=True)
class History:
    """What a run did.

    Attributes:
        records: list of dictionaries, see `Records`.
        step: int, steps done.
        best: float, the best result under `monitor`, or None.
        best_step: int, when it was reached.
    """

    records: list
    step: int
    best: float | None
    best_step: int | None

    @property
    def validations(self):
        """List of (step, results) of all evaluations."""
        return [(record["step"], record["validation"]) for record in self.records if "validation" in record]


@dataclasses.dataclass
class _State:
    """What a checkpoint holds besides variables; all of it fits into JSON.

    `position` counts examples since the start of the run. `batch_size` and `steps_per_epoch` are those of the data,
    None where they are not known, or in a checkpoint from before they were saved. `to_validate` says that the
    evaluation which is due after this step is still to be done.
    """

    step: int = 0
    position: int = 0
    best: float | None = None
    best_step: int | None = None
    since_best: int = 0
    batch_size: int | None = None
    steps_per_epoch: int | None = None
    to_validate: bool = False

    def require_same_batching(self, found):
        """Takes note of how the data is cut into batches, and refuses data that is cut in another way than before."""
        before = {name: getattr(self, name) for name in found}
        if any(None not in (before[name], found[name]) and before[name] != found[name] for name in found):
            raise CheckpointError(
                "A run must go on with the batches that it began with, or examples would be repeated and left out. "
                f"Received: {_in_words(found)}, and in the checkpoint {_in_words(before)}. "
                "Use the former batch size and examples, or another checkpoint_dir."
            )
        for name in found:
            setattr(self, name, found[name] or before[name])

    def is_best(self, results, monitor):
        """Takes note of an evaluation, and says whether it is the best so far."""
        value = results[monitor]
        lower_is_better = monitor.endswith(("loss", "perplexity"))
        nothing_yet = self.best is None or math.isnan(self.best)
        better = nothing_yet or (value < self.best if lower_is_better else value > self.best)
        better = better and not math.isnan(value)
        self.to_validate = False
        self.since_best += 1
        if better:
            self.best, self.best_step, self.since_best = value, self.step, 0
        return better

    def is_exhausted(self, patience):
        """Says whether so many evaluations in a row brought nothing better."""
        return patience is not None and self.since_best >= patience


def _from_position(dataset, state):
    if hasattr(dataset, "batches_from"):
        return without_autotune(dataset.batches_from(state.position))
    return without_autotune(dataset.repeat().skip(state.step))


def _rows_of(batch):
    return len(tf.nest.flatten(batch[1])[0])


def _in_words(values):
    return ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)


def _until(step, period):
    """Steps until the next multiple of a period."""
    return period - step % period if period else sys.maxsize


def _is_due(step, period):
    return bool(period) and step % period == 0
