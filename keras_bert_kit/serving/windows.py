"""Documents longer than the model, inside the graph: windows all over the text, and one answer of their average.

    a b c d e f g h i     a text of 9 tokens, where the model has room for 4
    a b c d
        c d e f
            e f g h
                g h i     each window shares half of its tokens with the next one

A text that fits is one window, and its answer is the one that it has without windows. Windows go through the model a
few at a time, so that a request of many long documents takes time, and not memory.
"""

import tensorflow as tf

WINDOWS_AT_A_TIME = 64


def stride_for(pack):
    """Tokens from the start of a window to the start of the next: half of what has room beside [CLS] and [SEP]."""
    return max(1, ((pack.sequence_length or pack.max_sequence_length) - 2) // 2)


def in_chunks(function, inputs, size, chunk=WINDOWS_AT_A_TIME):
    """Applies a function to some rows after the other.

    Args:
        function: from a dictionary of tensors (rows, …) to float32 (rows, size).
        inputs: dictionary of tensors (windows, …).
        size: int.
        chunk: int, rows at a time.

    Returns:
        float32 (windows, size).
    """
    num_rows = tf.shape(next(iter(inputs.values())))[0]
    num_chunks = tf.maximum(1, (num_rows + chunk - 1) // chunk)
    outputs = tf.TensorArray(tf.float32, num_chunks, infer_shape=False, element_shape=[None, size])

    def one_more(number, outputs):
        rows = {name: tensor[number * chunk : (number + 1) * chunk] for name, tensor in inputs.items()}
        return number + 1, outputs.write(number, function(rows))

    _, outputs = tf.while_loop(lambda number, _: number < num_chunks, one_more, (0, outputs), parallel_iterations=1)
    return outputs.concat()


def logits_of_average(logits, rows):
    """Logits whose softmax is the average of the windows' probabilities.

    Args:
        logits: float32 (windows, classes).
        rows: int32 (windows,), the text that each window is of; sorted, each text at least once.

    Returns:
        float32 (batch, classes). Of a text with one window: its logits as they are.
    """
    sums = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)  # (W, 1)
    logarithms = logits - sums  # of probabilities; averaged in a way that none becomes log 0
    highest = tf.math.segment_max(logarithms, rows)  # (B, C)
    averages = tf.math.segment_mean(tf.exp(logarithms - tf.gather(highest, rows)), rows)  # (B, C)
    return tf.math.log(averages) + highest + tf.math.segment_mean(sums, rows)
