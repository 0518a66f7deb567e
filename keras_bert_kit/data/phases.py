"""`Phases`: several sets of batches, one after the other, as one that a run can go on in anywhere."""

from collections.abc import Sequence

import tensorflow as tf


class Phases:
    """Batches of one set for so many steps, then of the next: short sequences first, then long ones.

    BERT was pre-trained for nine tenths of its steps on sequences of 128 tokens, since attention on 512 costs several
    times as much, and for the last tenth on 512, to learn the positions behind.

    Args:
        batches: objects with `batch_size` and `batches_from(position)`, such as `PretrainingBatches`; every batch of
            them must be full.
        steps: steps of each.

    Source: Devlin et al. 2018, appendix A.2, https://arxiv.org/abs/1810.04805.
    """

    def __init__(self, batches: Sequence, steps: Sequence[int]):
        if len(batches) != len(steps) or not steps or min(steps) < 1:
            raise ValueError(
                "Every phase must have its data and a positive number of steps. "
                f"Received: {len(batches)} sets of data, steps {list(steps)}."
            )
        self.batches = tuple(batches)
        self.steps = tuple(steps)

    @property
    def num_steps(self) -> int:
        """Steps of all phases."""
        return sum(self.steps)

    def batches_from(self, position: int = 0) -> tf.data.Dataset:
        """Returns a data set of the batches after the first `position` rows, counted over all phases.

        Args:
            position: rows seen since the start of the first phase.
        """
        parts = []
        for batches, steps in zip(self.batches, self.steps, strict=True):
            rows = steps * batches.batch_size
            seen = min(position, rows)
            if left := (rows - seen) // batches.batch_size:
                parts.append(batches.batches_from(seen).take(left))
            position -= seen
        if not parts:  # all is done: the trainer still looks at one batch
            parts.append(self.batches[-1].batches_from(0))
        dataset = parts[0]
        for part in parts[1:]:
            dataset = dataset.concatenate(part)
        return dataset
