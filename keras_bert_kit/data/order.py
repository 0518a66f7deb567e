"""`ShuffledBatches`: batches in an order that is known for every position, so that a run can go on anywhere."""

import tensorflow as tf

_POOL_BATCHES = 50  # large enough for batches of almost one length, small enough to mix


class ShuffledBatches:
    """Endless batches of examples; each epoch goes through all of them in another random order.

    The order of an epoch is a permutation that seed and epoch determine. So the position in the data is one integer,
    the number of examples seen, and to go on from there nothing has to be run through again.

    Given lengths, texts of similar length share a batch, which saves padding: after the permutation, pools of up to 50
    batches are sorted by length and cut into batches, and the batches of the epoch are permuted. A pool is at most an
    eighth of an epoch: where length goes with class, a small set sorted as a whole would have batches of one class.

    Args:
        num_examples: int.
        batch_size: int, examples a batch, over all replicas; the last batch of an epoch may be shorter.
        batch_at: function from an int64 tensor (batch,) of numbers of examples to a batch, run in `tf.data`.
        seed: int, 0 or more.
        lengths: ints (examples,), such as characters of the texts. Default: batches are not sorted by length.

    Raises:
        ValueError: There are no examples, or not as many lengths.
    """

    def __init__(self, num_examples, batch_size, batch_at, seed=0, lengths=None):
        if num_examples < 1 or batch_size < 1:
            raise ValueError(
                f"num_examples and batch_size must be 1 or more. Received: {num_examples} and {batch_size}."
            )
        self.num_examples = num_examples
        self.batch_size = batch_size
        self.batch_at = batch_at
        self.seed = seed
        self.lengths = None if lengths is None else tf.cast(tf.convert_to_tensor(lengths), tf.int64)
        if lengths is not None and self.lengths.shape != [num_examples]:
            raise ValueError(
                "lengths must be one number for each example. "
                f"Received: lengths of shape {tuple(self.lengths.shape)}, num_examples={num_examples}."
            )

    @property
    def steps_per_epoch(self):
        """Batches of an epoch."""
        return -(-self.num_examples // self.batch_size)

    def batches_from(self, position=0):
        """Returns a `tf.data.Dataset` of the batches after the first `position` examples.

        Args:
            position: int, examples seen since the start of the first epoch.
        """
        first_epoch, seen = divmod(position, self.num_examples)

        def indices(epoch):
            left = self.order(epoch)[tf.where(epoch == first_epoch, seen, 0) :]
            return tf.data.Dataset.from_tensor_slices(left).batch(self.batch_size)

        epochs = tf.data.Dataset.range(first_epoch, tf.int64.max)
        batches = epochs.flat_map(indices).map(self.batch_at, num_parallel_calls=tf.data.AUTOTUNE)
        return batches.prefetch(tf.data.AUTOTUNE)

    def order(self, epoch):
        """Returns the numbers of all examples in the order of an epoch, int64 (examples,).

        Args:
            epoch: scalar int64 tensor, from 0.
        """
        if self.lengths is None:
            return permuted(self.num_examples, self.seed, epoch)
        return order_by_length(self.lengths, self.batch_size, self.seed, epoch)


def order_by_length(lengths, batch_size, seed, number, head=0):
    """A random order in which rows of similar length share a batch.

    Args:
        lengths: int64 tensor (rows,).
        batch_size: int, rows a batch. Those that are left over come last.
        seed: int, 0 or more.
        number: scalar int64 tensor, 0 or more: which of the orders of this seed.
        head: int or scalar int64 tensor, rows that come before the first whole batch, to fill one that began elsewhere.

    Returns:
        int64 tensor (rows,), the number of the row at each place.
    """
    order = permuted(tf.size(lengths, tf.int64), seed, number)
    first, order = order[:head], order[head:]
    count = tf.size(order, tf.int64)
    whole = count // batch_size * batch_size
    pool_batches = tf.clip_by_value(-(-count // batch_size) // 8, 1, _POOL_BATCHES)
    pool = tf.range(count) // (pool_batches * batch_size)
    longest = tf.reduce_max(lengths) + 1
    order = tf.gather(order, tf.argsort(pool * longest + tf.gather(lengths, order), stable=True))
    batches = tf.gather(tf.reshape(order[:whole], (-1, batch_size)), permuted(whole // batch_size, seed + 1, number))
    return tf.concat([first, tf.reshape(batches, (-1,)), order[whole:]], axis=0)


def permuted(count, seed, number):
    """The numbers 0 to count - 1 in one of the random orders of a seed, int64 (count,)."""
    seeds = tf.stack([tf.constant(seed, tf.int64), tf.cast(number, tf.int64)])
    return tf.random.experimental.stateless_shuffle(tf.range(tf.cast(count, tf.int64)), seed=seeds)
