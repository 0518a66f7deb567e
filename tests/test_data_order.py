"""The order of examples: a permutation for each epoch, the same from any position."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.data import ShuffledBatches
from keras_bert_kit.data.order import order_by_length


def order(count, num_examples=10, batch_size=4, position=0, seed=0):
    """The first `count` examples from a position on, and the sizes of their batches."""
    batches, found = ShuffledBatches(num_examples, batch_size, lambda rows: rows, seed), []
    for batch in batches.batches_from(position):
        found.append(batch.numpy().tolist())
        if sum(map(len, found)) >= count:
            return sum(found, [])[:count], [len(batch) for batch in found]


def test_every_epoch_holds_every_example_once_in_another_order():
    examples, sizes = order(30)
    epochs = [examples[start : start + 10] for start in (0, 10, 20)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] and sizes == [4, 4, 2] * 3
    assert order(10, seed=1)[0] != epochs[0]


@pytest.mark.parametrize("position", [0, 1, 4, 9, 10, 17, 20])
def test_going_on_from_a_position_gives_the_rest(position):
    assert order(12, position=position)[0] == order(32)[0][position : position + 12]


def test_the_order_does_not_depend_on_the_batch_size():
    assert order(20, batch_size=3)[0] == order(20, batch_size=10)[0]


def test_all_orders_come_up():
    """Three examples have six orders; over 600 epochs each comes up about 100 times."""
    examples, _ = order(1800, num_examples=3, batch_size=3)
    counts = np.unique(np.reshape(examples, (600, 3)), axis=0, return_counts=True)[1]
    assert len(counts) == 6 and counts.min() > 60 and counts.max() < 140


def test_texts_of_similar_length_share_a_batch_in_random_order():
    lengths = np.random.default_rng(0).integers(5, 100, 10_000)
    plain, sorted_ = (ShuffledBatches(10_000, 16, lambda rows: rows, 3, given) for given in (None, lengths))
    epochs = [sorted_.order(tf.constant(epoch, tf.int64)).numpy() for epoch in (0, 1)]
    assert all(np.array_equal(np.sort(epoch), np.arange(10_000)) for epoch in epochs)
    assert np.mean(epochs[0] == epochs[1]) < 0.01

    def padding_share(order):
        rows = lengths[order.reshape(-1, 16)]
        return 1 - rows.sum() / (16 * rows.max(axis=1)).sum()

    assert padding_share(plain.order(tf.constant(0, tf.int64)).numpy()) > 0.4
    assert padding_share(epochs[0]) < 0.02
    # Long and short batches come in no order, and a text has other neighbours in the next epoch.
    longest = lengths[epochs[0].reshape(-1, 16)].max(axis=1)
    assert abs(np.corrcoef(np.arange(len(longest)), longest)[0, 1]) < 0.1
    beside = [dict(zip(epoch[:-1].tolist(), epoch[1:].tolist(), strict=True)) for epoch in epochs]
    assert np.mean([beside[1].get(text) == after for text, after in beside[0].items()]) < 0.01


def test_a_short_last_batch_stays_last_with_lengths():
    found = ShuffledBatches(10, 4, lambda rows: rows, 0, lengths=range(10)).batches_from(0).take(6)
    assert [len(batch) for batch in found] == [4, 4, 2, 4, 4, 2]


def test_steps_per_epoch_counts_the_short_batch():
    assert ShuffledBatches(10, 4, lambda rows: rows).steps_per_epoch == 3


@pytest.mark.parametrize(("num_examples", "batch_size"), [(0, 4), (4, 0)])
def test_nothing_to_give_is_refused(num_examples, batch_size):
    with pytest.raises(ValueError, match="must be 1 or more"):
        ShuffledBatches(num_examples, batch_size, lambda rows: rows)


@pytest.mark.parametrize("head", [0, 5, 16])
def test_a_batch_that_began_elsewhere_is_filled_first(head):
    lengths = tf.constant(np.random.default_rng(1).integers(5, 100, 1003), tf.int64)
    order = order_by_length(lengths, 16, 0, tf.constant(0, tf.int64), head).numpy()
    assert np.array_equal(np.sort(order), np.arange(1003))
    spread = [np.ptp(lengths.numpy()[order[start : start + 16]]) for start in range(head, 1003 - 16, 16)]
    assert np.mean(spread) < 20 < np.ptp(lengths.numpy()[order[-16:]])


def test_fewer_rows_than_the_head():
    assert sorted(order_by_length(tf.constant([3, 4], tf.int64), 16, 0, tf.constant(0, tf.int64), 2).numpy()) == [0, 1]
