"""BertPacker: texts to the three tensors that a BERT encoder takes.

one segment      [CLS] a1 a2 a3 [SEP] [PAD] [PAD] [PAD]
two segments     [CLS] a1 a2 a3 [SEP] b1    b2    [SEP]
input_mask         1   1  1  1    1   1     1      1        0 on padding
input_type_ids     0   0  0  0    0   1     1      1        1 on the second segment and its [SEP]
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_bert_kit.text.layout import lay_out, slide, span_of, truncate
from keras_bert_kit.text.texts import as_segments
from keras_bert_kit.text.tokenizer import PACKAGE, BertTokenizer

TRUNCATIONS = ("longest_first", "only_first", "only_second")
LARGEST_MAX_WINDOWS = 2**31 - 1  # they are counted in int32


class Windows(NamedTuple):
    """Long texts, packed window by window.

    inputs: dict of int32 (windows, sequence), as from a BertPacker.
    rows: int32 (windows,), which example of the batch each window is of.
    firsts: int32 (windows,), which token of the long segment, from 0, is the first in the window.
    lengths: int32 (windows,), how many tokens of the long segment are in the window.
    offsets: int32 (windows,), where in the sequence they begin.
    """

    inputs: dict
    rows: tf.Tensor
    firsts: tf.Tensor
    lengths: tf.Tensor
    offsets: tf.Tensor


@keras.saving.register_keras_serializable(package=PACKAGE)
class BertPacker(keras.layers.Layer):
    """Tokenizes one or two segments and packs them with [CLS], [SEP] and padding.

    It stands where the TF-Hub lessons have the preprocessing layer: `bert(pack(x))["pooled_output"]`.

    Args:
        tokenizer: BertTokenizer.
        sequence_length: int, tokens of each packed example; shorter ones are padded, longer ones truncated. None: as
            many as the longest example of the batch needs, at most `max_sequence_length`.
        max_sequence_length: int, the positions that the encoder has.
        truncation: which of two segments loses tokens at its end. "longest_first": the longer one until both fit, the
            second where both are equally long, one token at a time (Google's rule in `run_classifier.py`).
            "only_first", "only_second": that one; the other only when it does not fit alone.
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
        if not isinstance(tokenizer, BertTokenizer):
            remedy = ".tokenizer of that" if hasattr(tokenizer, "tokenizer") else "BertTokenizer.from_vocab_file(path)"
            raise ValueError(
                f"tokenizer must be a BertTokenizer. Received: a {type(tokenizer).__name__}. Give {remedy}."
            )
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
        return super().__call__(as_segments(texts), **kwargs)

    def call(self, texts):
        """See the class."""
        return self.pack_ids(tuple(map(self.tokenizer, texts)) if isinstance(texts, tuple) else self.tokenizer(texts))

    def pack_ids(self, segments):
        """Packs texts that are token ids already.

        Args:
            segments: int32 ragged (batch, tokens), or a tuple of two such.

        Returns:
            What a call returns.
        """
        segments = segments if isinstance(segments, tuple) else (segments,)
        spans = truncate([span_of(segment) for segment in segments], self._room(len(segments)), self.truncation)
        batch_size = segments[0].shape[0]
        return {name: tf.ensure_shape(x, [batch_size, None]) for name, x in self._pack(spans).items()}

    def windows(self, texts, stride=128, max_first_length=64, max_windows=None):
        """Packs texts of any length, several windows each, instead of truncating them.

        Args:
            texts: as in a call. Of two segments the second one is cut into windows, and each window has the whole
                first segment before it, as with a question about a long document.
            stride: int, tokens from the start of a window to the start of the next (`doc_stride` of `run_squad.py`).
            max_first_length: int, tokens that the first of two segments may keep (`max_query_length`).
            max_windows: int, windows of a text at most; what is behind them is left out. None: all of it.

        Returns:
            Windows.

        Raises:
            ValueError: as in a call; `stride`, `max_first_length` or `max_windows` is out of range.
        """
        if max_windows is not None and (fault := fault_of_max_windows(max_windows)):
            raise ValueError(f"{fault}.")
        texts = as_segments(texts)
        texts = texts if isinstance(texts, tuple) else (texts,)
        room = self._room(len(texts))
        if stride < 1 or (len(texts) == 2 and not 0 <= max_first_length < room):
            raise ValueError(
                f"stride must be at least 1, and max_first_length must leave room for a token of the second segment. "
                f"Received: {stride=}, {max_first_length=}, room for {room} tokens. Raise the sequence length."
            )
        *first, document = [span_of(self.tokenizer(segment)) for segment in texts]
        first = [span._replace(lengths=tf.minimum(span.lengths, max_first_length)) for span in first]
        taken = first[0].lengths if first else tf.zeros_like(document.lengths)
        window, rows, firsts = slide(document, room - taken, min(stride, room), max_windows)
        first = [span._replace(starts=tf.gather(span.starts, rows), lengths=tf.gather(taken, rows)) for span in first]
        offsets = tf.gather(taken, rows) + 1 + len(first)
        return Windows(self._pack([*first, window]), rows, firsts, window.lengths, offsets)

    def compute_output_spec(self, texts):
        """Shapes and dtypes for a functional model, which Keras could not find by tracing strings."""
        first = texts[0] if isinstance(texts, tuple) else texts
        shape = (first.shape[0], self.sequence_length)
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

    def _room(self, num_segments):
        """Tokens that fit beside [CLS] and one [SEP] a segment."""
        return (self.sequence_length or self.max_sequence_length) - 1 - num_segments

    def _pack(self, spans):
        """Lays out segments that fit."""
        length = self.sequence_length
        if length is None:
            longest = tf.reduce_max(tf.concat([[0], tf.add_n([span.lengths for span in spans])], axis=0))
            length = longest + 1 + len(spans)
        packed = lay_out(spans, length, self.tokenizer.cls_id, self.tokenizer.sep_id, self.tokenizer.pad_id)
        return {name: tf.ensure_shape(x, [None, self.sequence_length]) for name, x in packed.items()}


def fault_of_max_windows(max_windows):
    """What is wrong with a number of windows, or "": for `BertPacker.windows` and for exports."""
    if isinstance(max_windows, int) and 1 <= max_windows <= LARGEST_MAX_WINDOWS:
        return ""
    return f"max_windows must be an int from 1 to {LARGEST_MAX_WINDOWS}. Received: max_windows={max_windows!r}"


def _check_length(name, length, largest):
    """Refuses what is not an int from 3 ([CLS], one token, [SEP]) to `largest`."""
    if not isinstance(length, int) or isinstance(length, bool) or length < 3:
        raise ValueError(f"{name} must be an int of at least 3. Received: {name}={length!r}.")
    if largest is not None and length > largest:
        raise ValueError(
            f"sequence_length must not exceed the positions that the encoder has. Received: sequence_length={length}, "
            f"max_sequence_length={largest}. Shorten the one or, if the encoder has more positions, raise the other."
        )
