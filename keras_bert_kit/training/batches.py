"""What a run is fed with: batches (inputs, labels), looked at before they are used, and none of them lost."""

import tensorflow as tf

from keras_bert_kit.data.autotune import without_autotune
from keras_bert_kit.errors import DataError


def first_and_all(dataset):
    """Returns the first batch, to look at, and a data set of all batches, that one included.

    The data is run through once, not from its start again: to start a `tf.data.Dataset` once more would change the
    order of one that is shuffled, and a run that goes on would see another order than one that was never stopped.

    Args:
        dataset: `tf.data.Dataset` of batches.

    Returns:
        Pair of a batch and a `tf.data.Dataset` that can be iterated over once.

    Raises:
        DataError: There is no batch.
    """
    batches = iter(dataset)
    first = next(batches, None)
    if first is None:
        raise DataError("The data must hold at least one batch. Received: an empty data set. Is drop_remainder set?")
    rest = tf.data.Dataset.range(tf.int64.max).map(_as_it_is(lambda _: batches.get_next_as_optional()))
    rest = rest.take_while(_as_it_is(_has_value)).map(_as_it_is(_value_of))
    all_batches = tf.data.Dataset.from_tensors(first).concatenate(rest)
    return first, without_autotune(all_batches.prefetch(1))  # handed on beside the step, which does not wait for it


def batching_of(dataset, step, rows):
    """Says how data is cut into batches, as far as it is certain: with another cut, a position is another place.

    Args:
        dataset: `tf.data.Dataset`, or an object with `batches_from`.
        step: int, steps done, each with a batch.
        rows: int, examples in the next batch.

    Returns:
        Dictionary with `batch_size` and `steps_per_epoch`: ints, or None where unknown. The batches of a data set that
        does not know their number may all differ in size, and of one that does the last may be shorter.
    """
    if not isinstance(dataset, tf.data.Dataset):
        found = {name: getattr(dataset, name, None) for name in ("batch_size", "steps_per_epoch")}
        return {name: None if number is None else int(number) for name, number in found.items()}  # of NumPy, perhaps
    count = int(dataset.cardinality())
    if count < 1:
        return {"batch_size": tf.nest.flatten(dataset.element_spec)[0].shape[0], "steps_per_epoch": None}
    is_last = step % count == count - 1
    return {"batch_size": None if is_last and count > 1 else rows, "steps_per_epoch": count}


_as_it_is = tf.autograph.experimental.do_not_convert  # nothing to convert, which takes time


def _has_value(optional):
    return optional.has_value()


def _value_of(optional):
    return optional.get_value()
