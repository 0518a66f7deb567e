"""Pairs for next sentence prediction, by the rules of Google's `create_pretraining_data.py`.

A document is gone through from its start. Sentences are gathered until they fill a sequence; a random place divides
them into A and B. Half of the time B is thrown away for sentences of another document, and those thrown away are
gathered again for the next pair. What is too long loses tokens at its ends.

    document 3:   s0 s1 s2 s3 s4 …              A = s0 s1   B = s2 s3       label 0: B follows A
    document 7:   t0 t1 t2 …                    A = s4      B = t1 t2       label 1: B is from elsewhere

Sentences are spans of one flat array of tokens, so a pair is five numbers, and only the choice of pairs is a loop.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

IS_NEXT, IS_RANDOM = 0, 1
SPECIAL_TOKENS_PER_PAIR = 3
"""[CLS] A [SEP] B [SEP]"""


class TokenizedDocuments(NamedTuple):
    """Documents as token ids.

    ids: int32 (tokens,), of all sentences one after the other.
    sentence_bounds: int64 (sentences + 1,), where each sentence starts in `ids`.
    document_bounds: int64 (documents + 1,), with which sentence each document starts.
    """

    ids: np.ndarray
    sentence_bounds: np.ndarray
    document_bounds: np.ndarray


class Pairs(NamedTuple):
    """Segments A and B of each pair as spans of tokens, and labels (0 where B follows A, else 1); int64 (pairs,)."""

    a_start: np.ndarray
    a_length: np.ndarray
    b_start: np.ndarray
    b_length: np.ndarray
    labels: np.ndarray


def draw_pairs(documents: TokenizedDocuments, max_tokens: int, short_seq_prob: float, rng) -> Pairs:
    """Draws the pairs of all documents, in their order.

    Args:
        documents: TokenizedDocuments.
        max_tokens: tokens of A and B together at most.
        short_seq_prob: probability that the sequences of a document are to be shorter, of a length drawn evenly from 2.
        rng: np.random.Generator.

    Returns:
        Pairs.
    """
    bounds = documents.sentence_bounds
    rows = list(_sentence_pairs(documents, max_tokens, short_seq_prob, _uniform_numbers(rng)))
    a_first, a_end, b_first, b_end, labels = np.array(rows, np.int64).reshape(-1, 5).T
    a_start, b_start = bounds[a_first], bounds[b_first]
    a_length, b_length = bounds[a_end] - a_start, bounds[b_end] - b_start
    a_kept, b_kept = truncated_lengths(a_length, b_length, max_tokens)
    # Each token too many goes from the front or from the back, as a coin falls.
    a_start = a_start + rng.binomial(a_length - a_kept, 0.5)
    b_start = b_start + rng.binomial(b_length - b_kept, 0.5)
    return Pairs(a_start, a_kept, b_start, b_kept, labels)


def truncated_lengths(a_length, b_length, max_tokens: int):
    """Lengths of A and B after tokens of the longer one, of B where they are equal, went until both fit.

    Args:
        a_length, b_length: int arrays.
        max_tokens: what both may have together.

    Returns:
        (int array, int array).
    """
    a_kept = np.minimum(a_length, np.maximum(max_tokens - b_length, -(-max_tokens // 2)))
    return a_kept, np.minimum(b_length, max_tokens - a_kept)


def _sentence_pairs(documents, max_tokens, short_seq_prob, draw) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields first sentence and end of A, those of B, and the label."""
    bounds, starts = documents.sentence_bounds.tolist(), documents.document_bounds.tolist()
    num_others = len(starts) - 2
    for number, (start, document_end) in enumerate(zip(starts, starts[1:], strict=False)):
        target = max_tokens if next(draw) >= short_seq_prob else 2 + int(next(draw) * (max_tokens - 1))
        while start < document_end:
            end = bisect_left(bounds, bounds[start] + target, start + 1, document_end)
            count = end - start
            a_end = start + 1 + int(next(draw) * (count - 1))
            if count > 1 and (num_others == 0 or next(draw) >= 0.5):
                yield start, a_end, a_end, end, IS_NEXT
                start = end
                continue
            if num_others > 0:
                other = int(next(draw) * num_others)
                other += other >= number
                b_first = starts[other] + int(next(draw) * (starts[other + 1] - starts[other]))
                missing = target - (bounds[a_end] - bounds[start])
                b_end = bisect_left(bounds, bounds[b_first] + missing, b_first + 1, starts[other + 1])
                yield start, a_end, b_first, b_end, IS_RANDOM
            start = a_end  # The sentences that B would have had are gathered again.


def _uniform_numbers(rng) -> Iterator[float]:
    """Yields random numbers from 0 to below 1; one call of NumPy for each would take longer than all the rest."""
    while True:
        yield from rng.random(4096).tolist()
