"""How a global batch is shared among replicas: in consecutive parts, the same way on one machine and on many."""

import tensorflow as tf


def share_batches(dataset, strategy):
    """Distributes a data set of global batches over the replicas of a strategy.

    Replica r of R gets rows n·r/R to n·(r+1)/R of a batch of n rows, so parts differ by one row at most, and a batch
    with fewer rows than replicas leaves some of them with none. No row is dropped or repeated. Every worker runs the
    whole input pipeline and keeps its own rows: the pipeline must give the same batches everywhere.

    Args:
        dataset: `tf.data.Dataset` of batches, nested tensors that share the first axis.
        strategy: `tf.distribute.Strategy`.

    Returns:
        An iterable of per-replica batches for `strategy.run`.
    """
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return dataset

    def for_worker(context):
        mine = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * mine

        def parts(*batch):
            return tf.data.Dataset.range(first, first + mine).map(lambda replica: part_of(batch, replica, replicas))

        return dataset.flat_map(parts).prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(for_worker)


def part_of(batch, part, parts):
    """Returns one of `parts` nearly equal, consecutive parts of a batch.

    Args:
        batch: nested tensors that share the first axis.
        part: int or scalar int tensor, from 0.
        parts: int.
    """

    def rows_of(tensor):
        static = tensor.shape[0]
        if static is not None and static % parts == 0:  # equal parts, of a size that the graph then knows
            size = static // parts
            return tf.ensure_shape(tensor[number * size : (number + 1) * size], [size, *tensor.shape[1:]])
        rows = tf.shape(tensor)[0]
        return tensor[rows * number // parts : rows * (number + 1) // parts]

    number = tf.cast(part, tf.int32)
    return tf.nest.map_structure(rows_of, batch)
