"""`Prediction`, the answer for one text, and texts in batches. `Predictor` and `ServingClient` share both."""

import dataclasses
import math
from numbers import Integral

import numpy as np

from keras_bert_kit.text.texts import as_segments


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The answer for one text.

    Args:
        label: str, name of the most probable class.
        probability: float, its probability.
        probabilities: dict from class name to probability, in the order of the classes; they sum to 1.
    """

    label: str
    probability: float
    probabilities: dict[str, float]


def prediction_of(probabilities, class_names):
    """Makes a `Prediction` of one row.

    Args:
        probabilities: float32 array (classes,).
        class_names: sequence of str, in the order of the classes.
    """
    by_name = dict(zip(class_names, probabilities.tolist(), strict=True))
    label = class_names[int(np.argmax(probabilities))]
    return Prediction(label, by_name[label], by_name)


def signature_for(texts):
    """What a model is asked about texts: (signature, object arrays of bytes (texts,), one for each of its inputs).

    A tuple holds two segments, as for `BertPacker`; everything else, one text for each answer.

    Raises:
        ValueError: as in `as_segments`.
    """
    segments = as_segments(texts)
    if isinstance(segments, tuple):
        return "pairs", tuple(segment.numpy() for segment in segments)
    return "serving_default", (segments.numpy(),)


def answer_in_batches(segments, answer, batch_size, largest_bytes=math.inf):
    """Answers texts a batch at a time. Texts of similar length share a batch, since all are padded to its longest.

    Args:
        segments: tuple of object arrays of bytes (texts,): one, or two for pairs.
        answer: function from such arrays to a list with one answer for each text in them.
        batch_size: int, the largest number of texts in a batch.
        largest_bytes: the largest sum of their sizes. A text that is larger by itself makes a batch of its own.

    Returns:
        list of the answers, in the order of the texts.

    Raises:
        ValueError: batch_size is not a whole number from 1.
    """
    require_batch_size(batch_size)
    sizes = [sum(map(len, texts)) for texts in zip(*segments, strict=True)]
    answers = [None] * len(sizes)
    for positions in _batches(sizes, batch_size, largest_bytes):
        for position, one in zip(positions, answer(*(texts[positions] for texts in segments)), strict=True):
            answers[position] = one
    return answers


def require_batch_size(batch_size):
    """Raises ValueError where it is not a whole number from 1."""
    if not isinstance(batch_size, Integral) or batch_size < 1:
        raise ValueError(f"batch_size must be a whole number, 1 or more. Received: batch_size={batch_size!r}.")


def _batches(sizes, batch_size, largest_bytes):
    """Yields lists of positions, shortest texts first."""
    batch, total = [], 0
    for position in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) == batch_size or total + sizes[position] > largest_bytes):
            yield batch
            batch, total = [], 0
        batch.append(position)
        total += sizes[position]
    if batch:
        yield batch
