"""`Phases`: the batches of several sets, one after the other, from any position."""

import pytest
import tensorflow as tf

from keras_bert_kit.data.phases import Phases


class Numbers:
    """Endless batches of the numbers from `start` on, `batch_size` at a time."""

    def __init__(self, start, batch_size):
        self.start, self.batch_size = start, batch_size

    def batches_from(self, position):
        return tf.data.Dataset.range(self.start + position, self.start + 10**6).batch(self.batch_size)


def rows_of(dataset):
    return [batch.tolist() for batch in dataset.as_numpy_iterator()]


STRAIGHT = [[0, 1], [2, 3], [4, 5], [100, 101, 102], [103, 104, 105], [1000]]


@pytest.mark.parametrize(
    ("position", "first"), [(0, 0), (2, 1), (4, 2), (6, 3), (9, 4), (12, 5)], ids="start in-1 in-1 2 in-2 3".split()
)
def test_every_position_goes_on_where_the_straight_run_was(position, first):
    phases = Phases([Numbers(0, 2), Numbers(100, 3), Numbers(1000, 1)], [3, 2, 1])
    assert phases.num_steps == 6
    assert rows_of(phases.batches_from(position)) == STRAIGHT[first:]


def test_a_finished_run_still_has_a_batch_to_look_at():
    phases = Phases([Numbers(0, 2)], [3])
    assert rows_of(phases.batches_from(6).take(1)) == [[0, 1]]


@pytest.mark.parametrize("steps", [[], [1], [1, 0], [1, 2, 3]])
def test_every_phase_has_steps(steps):
    with pytest.raises(ValueError, match="2 sets of data, steps"):
        Phases([Numbers(0, 1), Numbers(0, 1)], steps)
