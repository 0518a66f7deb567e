"""What `Trainer` and `fit` are given, checked before anything is built or trained."""

import numbers

import keras
import tensorflow as tf

_OF_A_LOSS = ("parts", "counts", "sums", "metrics", "derived")


def require_objects(model, optimizer, loss):
    """Checks that there are a model, an optimizer and a loss, not their names or those of another kind.

    Raises:
        ValueError: The message lists all that are something else.
    """
    given = {"model": model, "optimizer": optimizer, "loss": loss}
    fits = {
        "model": isinstance(model, keras.Model),
        "optimizer": isinstance(optimizer, keras.Optimizer),
        "loss": all(hasattr(loss, name) for name in _OF_A_LOSS) and not isinstance(loss, type),
    }
    wrong = [f"{name}={given[name]!r:.100}" for name in given if not fits[name]]
    if wrong:
        raise ValueError(
            "Trainer needs objects: a keras.Model, an optimizer such as create_optimizer(…) gives, and a loss of sums "
            f"and counts such as CrossEntropy() or PretrainingLoss(). Received: {', '.join(wrong)}."
        )


def require_plain_optimizer(optimizer):
    """Checks that an optimizer does nothing by itself that the Trainer does, or would undo.

    Raises:
        ValueError: It clips other than by `global_clipnorm`, accumulates, scales the loss, or averages weights.
    """
    names = ("clipnorm", "clipvalue", "gradient_accumulation_steps", "loss_scale_factor", "use_ema")
    found = [f"{name}={getattr(optimizer, name)}" for name in names if getattr(optimizer, name, None)]
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        found.append("a LossScaleOptimizer")
    clip = getattr(optimizer, "global_clipnorm", None)
    if clip is not None and not clip > 0:
        found.append(f"global_clipnorm={clip}")
    if found:
        raise ValueError(
            "The optimizer may clip by global_clipnorm only, above 0, and must neither accumulate, scale the loss nor "
            f"average weights: the Trainer accumulates and scales. Received: {', '.join(found)}."
        )


def require_scope(strategy, model, optimizer):
    """Checks that model and optimizer have their variables where the strategy wants them.

    Raises:
        ValueError: One of them was made outside of the scope.
    """
    for name, variables in {"model": model.variables, "optimizer": optimizer.variables}.items():
        if not all(strategy.extended.variable_created_in_scope(variable.value) for variable in variables):
            raise ValueError(
                f"The {name} must be made in the scope of the strategy. Received: {type(strategy).__name__}, and a "
                f"{name} from outside. Make it in `with strategy.scope():`."
            )


def require_counts(**counts):
    """Checks that each is a whole number, 1 or more.

    Raises:
        ValueError: One is not.
    """
    for name, count in counts.items():
        if not isinstance(count, numbers.Integral) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{name} must be a whole number, 1 or more. Received: {name}={count!r:.80}.")


def require_nothing_to_validate(**options):
    """Checks that what needs evaluations is not asked for where there are none.

    Raises:
        ValueError: It is.
    """
    asked = [f"{name}={value!r}" for name, value in options.items() if value]
    if asked:
        raise ValueError(
            f"{', '.join(options)} need a validation_dataset. Received: {', '.join(asked)}, without one. Give fit a "
            "validation_dataset=…, and validate_every=… where it is to be evaluated more than once."
        )


def require_batches(dataset, name, endless=True):
    """Checks that a data set is one of batches (inputs, labels).

    Args:
        dataset: what was given.
        name: str, of the argument.
        endless: bool, whether it may be without end, or an object with `batches_from`.

    Raises:
        ValueError: It is no data set, or one of single examples, of triples, or without end.
    """
    if endless and hasattr(dataset, "batches_from"):
        return
    needs = f"{name} must be a tf.data.Dataset of batches (inputs, labels)"
    if not isinstance(dataset, tf.data.Dataset):
        raise ValueError(
            f"{needs}{' or an object with batches_from, such as ShuffledBatches' * endless}. Received: "
            f"{type(dataset).__name__}. tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(32) makes one."
        )
    parts = dataset.element_spec
    if not isinstance(parts, tuple) or len(parts) != 2:
        received = f"tuples of {len(parts)}" if isinstance(parts, tuple) else f"single elements, {parts!r:.100}"
        raise ValueError(
            f"{needs}. Received: {received}. Of sample weights only 0 and 1 can be had: a label of -100 is no target."
        )
    if any(part.shape.rank == 0 for part in tf.nest.flatten(parts)):
        raise ValueError(f"{needs}. Received: elements that are no batches, {parts!r:.200}. Add .batch(32).")
    if not endless and dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(f"{needs} that ends. Received: one without end. Leave .repeat() out, or add .take(…).")
