"""Packed rows: several sequences in one row of a batch, each computed as if it stood alone."""

import tensorflow as tf


def separate_sequences(sequence_ids, input_mask):
    """What keeps the sequences of a row apart: whom a token may look at, and where in its sequence it stands.

    Args:
        sequence_ids: int tensor (batch, sequence): the number of the sequence that each token belongs to, the tokens
            of one sequence side by side, for example 1, 1, 2, 2, 2, 0, where 0 is padding.
        input_mask: boolean tensor (batch, sequence), true for tokens, false for padding.

    Returns:
        Pair of a boolean tensor (batch, sequence, sequence), true where a token may look at another: blocks along the
        diagonal; and int32 positions (batch, sequence), which begin at 0 in each sequence.

    Source: Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination",
    https://arxiv.org/abs/2107.02027.

    Example:

    >>> separate_sequences(tf.constant([[1, 1, 2, 2, 2, 0]]), tf.constant([[True] * 5 + [False]]))[1].numpy()
    array([[0, 1, 0, 1, 2, 0]], dtype=int32)
    """
    same = sequence_ids[:, :, tf.newaxis] == sequence_ids[:, tf.newaxis, :]  # (B, S, S)
    first = tf.argmax(same, axis=-1, output_type=tf.int32)  # (B, S), the first place of the sequence of each token
    positions = tf.range(tf.shape(sequence_ids)[1]) - first
    return same & input_mask[:, tf.newaxis, :], positions
