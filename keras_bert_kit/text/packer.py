"""BertPacker: texts to the three tensors that a BERT encoder takes.

one segment      [CLS] a1 a2 a3 [SEP] [PAD] [PAD] [PAD]
two segments     [CLS] a1 a2 a3 [SEP] b1    b2    [SEP]
input_mask         1   1  1  1    1   1     1      1        0 on padding
input_type_ids     0   0  0  0    0   1     1      1        1 on the second segment and its [SEP]
"""

import keras
import tensorflow as tf

from keras_bert_kit.text.texts import as_texts
from keras_bert_kit.text.tokenizer import PACKAGE

TRUNCATIONS = ("longest_first",)


@keras.saving.register_keras_serializable(package=PACKAGE)
class BertPacker(keras.layers.Layer):
    """Tokenizes one or two segments and packs them with [CLS], [SEP] and padding.

    It stands where the TF-Hub lessons have the preprocessing layer: `bert(pack(x))["pooled_output"]`.

    Args:
        tokenizer: BertTokenizer.
        sequence_length: int, tokens of each packed example; shorter ones are padded, longer ones truncated. None: as
            many as the longest example of the batch needs, at most `max_sequence_length`.
        max_sequence_length: int, the positions that the encoder has.
        truncation: "longest_first": of two segments, the longer one loses its last token until both fit, the second
            one where both are equally long (Google's rule in `run_classifier.py`).
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        texts: str, list of str, NumPy array or string tensor of rank 1; or a tuple of two such, the two segments.

    Returns:
        dict of int32 tensors (batch, sequence): `input_word_ids`, `input_mask` (1 on tokens, 0 on padding),
        `input_type_ids` (0 on the first segment, 1 on the second).

    Raises:
        ValueError: a bad argument, texts that are not strings of rank 1, segments of different batch size.

    Example:
    ```python
    pack = BertPacker(tokenizer, sequence_length=128)
    inputs = pack(["How are you?"])
    inputs = pack((["How are you?"], ["Fine."]))
    ```

    Reference: Devlin et al. 2018, figure 2; google-research/bert `run_classifier.py`.
    """

    def __init__(
        self, tokenizer, sequence_length=128, *, max_sequence_length=512, truncation="longest_first", **kwargs
    ):
        super().__init__(**{"trainable": False, "dtype": "int32", **kwargs})
        _check_length("max_sequence_length", max_sequence_length, largest=None)
        if sequence_length is not None:
            _check_length("sequence_length", sequence_length, largest=max_sequence_length)
        if truncation not in TRUNCATIONS:
            raise ValueError(f"truncation must be one of {TRUNCATIONS}. Received: {truncation=}.")
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.max_sequence_length = max_sequence_length
        self.truncation = truncation
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    def __call__(self, texts, **kwargs):
        """Checks the texts before Keras does anything with them: its own errors would print them all."""
        return super().__call__(_as_segments(texts), **kwargs)

    def call(self, texts):
        """See the class."""
        texts = texts if isinstance(texts, tuple) else (texts,)
        segments = [self.tokenizer(segment) for segment in texts]
        if len(texts) == 2 and None in (texts[0].shape[0], texts[1].shape[0]):
            tf.debugging.assert_equal(
                tf.size(texts[0]), tf.size(texts[1]), "Both segments must have one text an example."
            )
        longest = self.sequence_length or self.max_sequence_length
        room = longest - 1 - len(segments)  # without [CLS] and one [SEP] a segment
        lengths = truncated_lengths([segment.row_lengths() for segment in segments], room)
        if self.sequence_length is None:
            longest = tf.reduce_max(tf.concat([[0], tf.add_n(lengths)], axis=0)) + 1 + len(segments)
        packed = self._lay_out(segments, lengths, longest)
        return {name: tf.ensure_shape(x, [texts[0].shape[0], self.sequence_length]) for name, x in packed.items()}

    def compute_output_spec(self, texts):
        """Shapes and dtypes for a functional model, which Keras could not find by tracing strings."""
        first = texts[0] if isinstance(texts, tuple) else texts
        shape = (first.shape[0] if len(first.shape) else None, self.sequence_length)
        names = ("input_word_ids", "input_mask", "input_type_ids")
        return {name: keras.KerasTensor(shape, dtype="int32") for name in names}

    def get_config(self):
        """The constructor's arguments; the vocabulary is among them, so that a saved model needs no other file."""
        return {
            **super().get_config(),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "sequence_length": self.sequence_length,
            "max_sequence_length": self.max_sequence_length,
            "truncation": self.truncation,
        }

    @classmethod
    def from_config(cls, config):
        """Makes the packer again, with its tokenizer."""
        return cls(**{**config, "tokenizer": keras.saving.deserialize_keras_object(config["tokenizer"])})

    def _lay_out(self, segments, lengths, sequence_length):
        """Says for each place of a (batch, sequence) grid what stands there."""
        place = tf.range(tf.cast(sequence_length, tf.int32))[None, :]  # (1, S)
        word_ids = tf.where(place == 0, self.tokenizer.cls_id, self.tokenizer.pad_id)  # (1, S)
        type_ids = tf.zeros_like(place)
        begin = 1
        for number, (segment, length) in enumerate(zip(segments, lengths, strict=True)):
            end = begin + length[:, None]  # (B, 1), where its [SEP] stands
            tokens = _read_rows(segment, place - begin)  # (B, S)
            word_ids = tf.where((place >= begin) & (place < end), tokens, word_ids)
            word_ids = tf.where(place == end, self.tokenizer.sep_id, word_ids)
            type_ids = tf.where((place >= begin) & (place <= end), number, type_ids)
            begin = end + 1
        mask = tf.cast(place < begin, tf.int32)
        return {"input_word_ids": word_ids, "input_mask": mask, "input_type_ids": type_ids}


def truncated_lengths(lengths, room):
    """How many tokens of each segment stay, so that all fit.

    Args:
        lengths: list of one or two int tensors (batch,).
        room: int, tokens that fit.

    Returns:
        list of int32 tensors (batch,), whose sum is at most `room`.
    """
    lengths = [tf.cast(length, tf.int32) for length in lengths]
    if len(lengths) == 1:
        return [tf.minimum(lengths[0], room)]
    # A segment may have what the other leaves, and half of the room in any case; an odd token goes to the first.
    first, second = lengths
    return [
        tf.minimum(first, tf.maximum(room - second, room - room // 2)),
        tf.minimum(second, tf.maximum(room - first, room // 2)),
    ]


def _read_rows(ragged, columns):
    """Elements of a ragged tensor (batch, None) at `columns` (batch or 1, sequence); anything where there is none."""
    starts = tf.cast(ragged.row_starts(), tf.int32)[:, None]
    values = tf.concat([ragged.values, [0]], axis=0)
    return tf.gather(values, tf.clip_by_value(starts + columns, 0, tf.size(values) - 1))


def _as_segments(texts):
    """Checked texts: one string tensor, or a tuple of two of the same batch size.

    A list of two tensors counts as a tuple, because that is what Keras makes of one in a saved functional model.
    """
    if isinstance(texts, list) and len(texts) == 2 and all(_is_batch_tensor(segment) for segment in texts):
        texts = tuple(texts)
    if not isinstance(texts, tuple):
        return texts if isinstance(texts, keras.KerasTensor) else as_texts(texts)
    if len(texts) != 2:
        raise ValueError(
            f"A tuple must hold the two segments of each example. Received: a tuple of {len(texts)}. "
            f"Give the texts of a batch as a list."
        )
    if any(isinstance(segment, keras.KerasTensor) for segment in texts):
        return texts
    segments = as_texts(texts[0], "texts[0]"), as_texts(texts[1], "texts[1]")
    sizes = [segment.shape[0] for segment in segments]
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(f"Both segments must have one text an example. Received: {sizes[0]} and {sizes[1]} texts.")
    return segments


def _is_batch_tensor(segment):
    return isinstance(segment, keras.KerasTensor) or (tf.is_tensor(segment) and segment.shape.rank != 0)


def _check_length(name, length, largest):
    """Refuses what is not an int from 3 ([CLS], one token, [SEP]) to `largest`."""
    if not isinstance(length, int) or isinstance(length, bool) or length < 3:
        raise ValueError(f"{name} must be an int of at least 3. Received: {name}={length!r}.")
    if largest is not None and length > largest:
        raise ValueError(
            f"sequence_length must not exceed the positions that the encoder has. Received: sequence_length={length}, "
            f"max_sequence_length={largest}. Shorten the one or, if the encoder has more positions, raise the other."
        )
