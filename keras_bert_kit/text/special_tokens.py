"""Special tokens that are written out in a text: "Paris is the [MASK] of France." """

import tensorflow as tf

from keras_bert_kit.text.code_points import NUM_CODE_POINTS


def mark_special_tokens(code_points, special_tokens):
    """Puts one code point beyond Unicode in the place of each special token that is written out.

    The characters left over become NUL, which normalisation drops, so that nothing moves.

    Args:
        code_points: int32 (code points,); the texts of a batch, each with a space at the end.
        special_tokens: tuple of str, each between brackets, as all of BERT's are.

    Returns:
        int32 (code points,): NUM_CODE_POINTS + i in the place of the i-th special token.
    """

    def mark():
        marked = code_points
        opened = tf.cast(tf.where(code_points == ord("["))[:, 0], tf.int32)
        padded = tf.pad(code_points, [[0, max(map(len, special_tokens))]])
        for i, token in enumerate(special_tokens):
            token_range = tf.range(len(token))
            written = tf.gather(padded, opened[:, None] + token_range) == [ord(character) for character in token]
            places = tf.boolean_mask(opened, tf.reduce_all(written, axis=1))[:, None] + token_range
            replacement = tf.broadcast_to([NUM_CODE_POINTS + i] + [0] * (len(token) - 1), tf.shape(places))
            marked = tf.tensor_scatter_nd_update(marked, places[..., None], replacement)
        return marked

    if not special_tokens:
        return code_points
    return tf.cond(tf.reduce_any(code_points == ord("[")), mark, lambda: code_points)


def lengths_in_text(marked, special_tokens):
    """How many code points of the text each element of `marked` stands for: 1, or the length of a special token."""
    lengths = tf.constant([1, *map(len, special_tokens)])
    return tf.gather(lengths, tf.maximum(marked - NUM_CODE_POINTS + 1, 0))
