"""`TokenLayout`: where the tokens of a flat list stand in a batch of padded texts."""

import tensorflow as tf

from keras_bert_kit.layers.functions import look_up, shape_of


class TokenLayout:
    """Moves vectors between (batch, sequence, …) and a flat list (tokens, …), with the padding or without.

    Dense layers, LayerNorm and activations treat each token by itself, so they take the flat list, and padding that is
    not in it costs nothing. Attention needs to know which tokens are of one text, so it takes the batch.

    Source: the idea of dropping padding is ByteDance's Effective Transformer, 2020,
    https://github.com/bytedance/effective_transformer.

    Args:
        batch: int or scalar int32 tensor.
        sequence: int or scalar int32 tensor.

    Example:

    >>> layout = TokenLayout.without_padding(tf.constant([[True, True, False], [True, False, False]]))
    >>> layout.flat(tf.constant([[7, 8, 0], [9, 0, 0]])).numpy()
    array([7, 8, 9], dtype=int32)
    """

    def __init__(self, batch, sequence):
        self.batch = batch
        self.sequence = sequence
        self._mask = self._places = self._sources = None  # all places, in their order

    @classmethod
    def without_padding(cls, mask, multiple_of=1):
        """Returns the layout in which the flat list holds the tokens alone.

        Args:
            mask: boolean tensor (batch, sequence), true for tokens, false for padding.
            multiple_of: int; the list is filled up with places of padding, if there are any, to a length that is a
                multiple of it, so that there are fewer different lengths to compile for. A batch without tokens gets
                such places too: an average over nothing is no number.
        """
        layout = cls(*shape_of(mask))
        layout._mask = mask = tf.reshape(mask, (-1,))
        tokens, padding = (tf.cast(tf.where(found)[:, 0], tf.int32) for found in (mask, ~mask))
        length = -(-tf.maximum(tf.size(tokens), 1) // multiple_of) * multiple_of
        filling = padding[: length - tf.size(tokens)]
        layout._places = tf.concat([tokens, filling], axis=0)
        # At padding stands what is on the token before it: a number that nobody looks at, and no text of another row.
        layout._sources = tf.maximum(tf.cumsum(tf.cast(mask, tf.int32)) - 1, 0)
        return layout

    def filled_up(self, lengths):
        """Returns the layout whose flat list has one of a few lengths, where kernels are prepared for each length.

        Behind the tokens stands the first place of the batch, over and over. For answers alone: a gradient would count
        it more than once.

        Args:
            lengths: sorted list of int, of which the next is taken; 0 is the first, for an empty batch.
        """
        layout = TokenLayout(self.batch, self.sequence)
        layout._mask, layout._sources = self._mask, self._sources
        tokens = tf.size(self._places)
        length = tf.gather(lengths, tf.searchsorted(lengths, [tokens])[0])
        layout._places = tf.pad(self._places, [[0, length - tokens]])
        return layout

    def flat(self, x):
        """(batch, sequence, …) -> (tokens, …)."""
        x = tf.reshape(x, (-1, *x.shape[2:]))
        if self._places is None:
            return x

        @tf.custom_gradient
        def take(x):
            return tf.gather(x, self._places), self._spread

        return take(x)

    def padded(self, x):
        """(tokens, …) -> (batch, sequence, …). What stands at padding has no meaning, and gets no gradient."""
        if self._places is not None:

            @tf.custom_gradient
            def spread(x):
                return tf.gather(x, self._sources), lambda upstream: tf.gather(upstream, self._places)

            x = spread(x)
        return tf.reshape(x, (self.batch, self.sequence, *x.shape[1:]))

    def at(self, x, positions):
        """(tokens, width) -> (batch · picked, width): what is at `positions` (batch, picked); 0 at padding."""
        rows = tf.range(self.batch)[:, tf.newaxis] * self.sequence  # in the batch, row after row
        places = tf.reshape(rows + positions, (-1,))
        if self._places is None:
            return look_up(x, places)
        found = look_up(x, tf.gather(self._sources, places))
        return tf.where(tf.gather(self._mask, places)[:, tf.newaxis], found, tf.zeros([], x.dtype))

    def _spread(self, upstream):
        """The gradient of `flat`: each token's at its place, 0 at padding. That of `tf.gather` adds row to row."""
        mask = tf.reshape(self._mask, (-1,) + (1,) * (upstream.shape.rank - 1))
        return tf.where(mask, tf.gather(upstream, self._sources), tf.zeros([], upstream.dtype))
