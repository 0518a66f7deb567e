"""Where the tokens of one or two segments go: the arithmetic behind `BertPacker`, on tensors of whole batches.

A segment of a batch is a `Span`: each row is a slice of one flat array of ids. Truncation shortens slices, sliding
windows move them, and `lay_out` says for each place of a (batch, sequence) grid what stands there.
"""

from typing import NamedTuple

import tensorflow as tf


class Span(NamedTuple):
    """One segment of a batch of examples: row b is `values[starts[b] : starts[b] + lengths[b]]`; all int32.

    values: (tokens,).
    starts, lengths: (batch,).
    """

    values: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor


def span_of(ragged):
    """The rows of an int32 ragged tensor (batch, tokens) as a Span."""
    return Span(ragged.values, tf.cast(ragged.row_starts(), tf.int32), tf.cast(ragged.row_lengths(), tf.int32))


def truncate(spans, room, truncation):
    """Shortens one or two segments at their ends so that both together have at most `room` tokens.

    Args:
        spans: list of one or two Spans.
        room: int.
        truncation: "longest_first", the longer segment loses its last token until both fit, the second one where both
            are equally long; "only_first", "only_second", that one gives way as long as it has tokens.

    Returns:
        list of Spans.
    """
    if len(spans) == 1:
        return [spans[0]._replace(lengths=tf.minimum(spans[0].lengths, room))]
    first, second = (span.lengths for span in spans)
    if truncation == "only_first":
        kept_second = tf.minimum(second, room)
        kept_first = tf.minimum(first, room - kept_second)
    elif truncation == "only_second":
        kept_first = tf.minimum(first, room)
        kept_second = tf.minimum(second, room - kept_first)
    else:
        # Each may have what the other leaves, and half of the room in any case; an odd token goes to the first.
        kept_first = tf.minimum(first, tf.maximum(room - second, room - room // 2))
        kept_second = tf.minimum(second, tf.maximum(room - first, room // 2))
    return [spans[0]._replace(lengths=kept_first), spans[1]._replace(lengths=kept_second)]


def slide(span, room, stride, max_windows=None):
    """Cuts each row into windows of at most `room` tokens, a new one every `stride` tokens, until its end is reached.

    Args:
        span: Span of the long segment.
        room: int32 (batch,), at least 1.
        stride: int, at least 1; a row with less room than that takes its room, so that no token is left out.
        max_windows: int, windows of a row at most; what is behind them is left out. None: all of it.

    Returns:
        `(windows, rows, firsts)`: Span, and int32 (windows,), which row each window is of and which token of the row
        is its first. Every row has at least one window.
    """
    stride = tf.minimum(room, stride)  # (B,)
    num_windows = 1 + tf.maximum(span.lengths - room + stride - 1, 0) // stride
    if max_windows is not None:
        num_windows = tf.minimum(num_windows, max_windows)
    rows = tf.repeat(tf.range(tf.size(room)), num_windows)
    number = tf.range(tf.size(rows)) - tf.gather(tf.cumsum(num_windows, exclusive=True), rows)
    firsts = number * tf.gather(stride, rows)
    lengths = tf.minimum(tf.gather(span.lengths, rows) - firsts, tf.gather(room, rows))
    return Span(span.values, tf.gather(span.starts, rows) + firsts, lengths), rows, firsts


def lay_out(spans, sequence_length, cls_id, sep_id, pad_id):
    """Puts segments between [CLS], [SEP] and padding.

    Args:
        spans: list of one or two Spans that fit.
        sequence_length: int, or int32 scalar.

    Returns:
        dict of int32 (batch, sequence): `input_word_ids`, `input_mask`, `input_type_ids`.
    """
    place = tf.range(sequence_length)[None, :]  # (1, S)
    word_ids = tf.where(place == 0, cls_id, pad_id)  # (1, S)
    type_ids = tf.zeros_like(place)  # (1, S)
    begin = 1
    for number, span in enumerate(spans):
        end = begin + span.lengths[:, None]  # (B, 1), where its [SEP] stands
        word_ids = tf.where((place >= begin) & (place < end), _read(span, place - begin), word_ids)  # (B, S)
        word_ids = tf.where(place == end, sep_id, word_ids)
        type_ids = tf.where((place >= begin) & (place <= end), number, type_ids)
        begin = end + 1
    return {
        "input_word_ids": word_ids,
        "input_mask": tf.cast(place < begin, tf.int32),
        "input_type_ids": type_ids,
    }


def _read(span, columns):
    """Tokens of each row at `columns` (batch or 1, sequence); anything where the row has none."""
    values = tf.concat([span.values, [0]], axis=0)
    return tf.gather(values, tf.clip_by_value(span.starts[:, None] + columns, 0, tf.size(values) - 1))
