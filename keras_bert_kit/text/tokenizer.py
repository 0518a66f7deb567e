"""BertTokenizer: texts to token ids, in core TensorFlow ops.

    "Åse yodels!"                               text
     Å s e ␣ y o d e l s !                      code points           code_points.py: decode
     a s e ␣ y o d e l s !                      normalised            characters.py: a table look-up
    [ase] [yodels] [!]                          words                 wordpiece.py: where the class changes
    as ##e  yo ##del ##s  !                     pieces                wordpiece.py: a walk through the vocabulary
    2004 2063 10930 9247 2015 999               ids

No step is Python code at run time and none needs a custom op, so the same tokenizer works eagerly, in `tf.data`, in a
Keras functional model and inside an exported SavedModel, wherever TensorFlow runs.
"""

import keras
import tensorflow as tf

from keras_bert_kit.text.normalizer import GOOGLE, HUGGING_FACE, REFERENCES, TF_HUB
from keras_bert_kit.text.pieces import PieceFinder
from keras_bert_kit.text.texts import as_ids, as_texts
from keras_bert_kit.text.vocabulary import CONTINUATION_PREFIX, SPECIAL_TOKENS, Vocabulary, read_vocabulary

PACKAGE = "keras_bert_kit"


@keras.saving.register_keras_serializable(package=PACKAGE)
class BertTokenizer(keras.layers.Layer):
    """Cuts texts into the word pieces of a BERT vocabulary.

    The ids are those of Google's and Hugging Face's BERT tokenizers. Where these two differ, `reference` says which to
    follow; docs/tokenization.md lists the differences.

    Args:
        vocabulary: list of str, the token of each id. Must hold [UNK], [CLS], [SEP] and [PAD].
        lowercase: bool, whether the model is an "uncased" one.
        strip_accents: bool, whether "é" becomes "e". None: as `lowercase`.
        reference: "hugging_face" or "google". Decides about rare characters and the two arguments below. Or "tf_hub":
            ids of TF-Hub's preprocessing SavedModels, which normalise with NFKC case folding (`tf_hub_unicode.py`).
        max_characters_per_word: int, longer words become [UNK]. None: 100 as in Hugging Face's, 200 as in Google's, and
            100 as in TF-Hub's, where it counts bytes of UTF-8.
        special_tokens_in_text: bool, whether "[MASK]" (or [CLS], [SEP], [PAD], [UNK]) written in a text is that token,
            or the brackets and letters that it is. None: True as in Hugging Face's, False as in the others. Say False
            where strangers write the texts.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        texts: a str, a list of str, a NumPy array or tensor of strings (UTF-8) of rank 1. A single str is one text.
            Bytes that are not UTF-8 are dropped.

    Returns:
        tf.RaggedTensor int32 (batch, tokens). No [CLS] or [SEP] is added; `BertPacker` does that.

    Raises:
        VocabularyError: the vocabulary lacks a special token.
        ValueError: an argument is out of range; texts are not strings, or not of rank 1.

    Example:
    ```python
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing"])
    tokenizer(["Playing play"])     # <tf.RaggedTensor [[4, 5, 4]]>
    ```

    Reference: google-research/bert `tokenization.py`; huggingface/tokenizers `normalizers/bert.rs`.
    """

    def __init__(
        self,
        vocabulary,
        lowercase=True,
        strip_accents=None,
        *,
        reference=HUGGING_FACE,
        max_characters_per_word=None,
        special_tokens_in_text=None,
        **kwargs,
    ):
        super().__init__(**{"trainable": False, "dtype": "int32", **kwargs})
        if reference not in REFERENCES:
            raise ValueError(f"reference must be one of {REFERENCES}. Received: {reference=}.")
        if reference == TF_HUB and strip_accents not in (None, bool(lowercase)):
            raise ValueError(
                f"TF-Hub's preprocessing strips accents where it lower-cases, and only there. Received: {lowercase=}, "
                f"{strip_accents=}. Leave strip_accents out, or take another reference."
            )
        follows_hugging_face = reference == HUGGING_FACE
        if max_characters_per_word is None:
            max_characters_per_word = 200 if reference == GOOGLE else 100
        if not isinstance(max_characters_per_word, int) or max_characters_per_word < 1:
            raise ValueError(f"max_characters_per_word must be a positive int. Received: {max_characters_per_word=}.")
        self.lowercase = bool(lowercase)
        self.strip_accents = strip_accents
        self.reference = reference
        self.max_characters_per_word = max_characters_per_word
        self.special_tokens_in_text = follows_hugging_face if special_tokens_in_text is None else special_tokens_in_text
        self._vocabulary = Vocabulary(vocabulary)
        self._finder = PieceFinder(
            self._vocabulary.ids,
            self.unk_id,
            self.lowercase,
            self.lowercase if strip_accents is None else bool(strip_accents),
            reference,
            max_characters_per_word,
            special_tokens=[token for token in SPECIAL_TOKENS if self.special_tokens_in_text],
        )
        # One graph each, which eager calls use too.
        signature = [tf.TensorSpec([None], tf.string)]
        self._find = tf.function(self._finder.find, input_signature=signature, autograph=False)
        self._locate = tf.function(self._finder.locate, input_signature=signature, autograph=False)
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    @classmethod
    def from_vocab_file(cls, path, lowercase=True, strip_accents=None, **kwargs):
        """Reads a `vocab.txt`: one token a line, the line number is the id. Arguments as in the constructor."""
        return cls(read_vocabulary(path), lowercase, strip_accents, **kwargs)

    @property
    def vocabulary(self):
        """List of str, the token of each id."""
        return list(self._vocabulary.tokens)

    @property
    def vocab_size(self):
        """Number of ids."""
        return len(self._vocabulary.tokens)

    @property
    def unk_id(self):
        """Id of [UNK], which stands for a word that cannot be cut into known pieces."""
        return self._vocabulary.unk_id

    @property
    def cls_id(self):
        """Id of [CLS], the first token of every input."""
        return self._vocabulary.cls_id

    @property
    def sep_id(self):
        """Id of [SEP], the end of each segment."""
        return self._vocabulary.sep_id

    @property
    def pad_id(self):
        """Id of [PAD], behind the last [SEP]."""
        return self._vocabulary.pad_id

    @property
    def mask_id(self):
        """Id of [MASK], or None in a vocabulary without it."""
        return self._vocabulary.mask_id

    def __call__(self, texts, **kwargs):
        """Checks the texts before Keras does anything with them: its own errors would print them all."""
        return super().__call__(as_texts(texts), **kwargs)

    def call(self, texts):
        """See the class."""
        ids = self._find(texts)
        if texts.shape[0] is None:
            return ids
        row_splits = tf.ensure_shape(ids.row_splits, [texts.shape[0] + 1])  # a graph keeps a known batch size
        return tf.RaggedTensor.from_row_splits(ids.values, row_splits, validate=False)

    def locate(self, texts):
        """Tokenizes, and says where in the text each piece comes from.

        Args:
            texts: as in a call.

        Returns:
            Pieces(ids, starts, ends, words), each int32 ragged (batch, tokens): the piece comes from the characters
            (code points) `text[start:end]`, and belongs to the word with that number, counted from 0 in each text.
            Ideographs, punctuation signs and special tokens are words of their own.
        """
        return self._locate(as_texts(texts))

    def tokenize_with_offsets(self, texts):
        """Token ids with their places in the text.

        Returns:
            `(ids, starts, ends)`, int32 ragged (batch, tokens): `text[start:end]` are the characters (code points, not
            bytes) that the piece was made of. Equal to the offsets of Hugging Face's tokenizers.
        """
        return self.locate(texts)[:3]

    def detokenize(self, ids):
        """Joins pieces to words, and words by spaces.

        What normalisation and word splitting did stays done: "It's" comes back as "it ' s". To mark a piece in the
        original text, use `tokenize_with_offsets`.

        Args:
            ids: ragged or dense int tensor (batch, tokens), a list of lists, or one text of rank 1. [PAD], [CLS] and
                [SEP] are left out.

        Returns:
            string tensor (batch,).

        Raises:
            ValueError: ids are not whole numbers from 0 to vocab_size - 1.
        """
        ids = as_ids(ids, self.vocab_size)
        layout = [self.pad_id, self.cls_id, self.sep_id]
        kept = tf.ragged.boolean_mask(ids, ids.with_values(tf.reduce_all(ids.values[:, None] != layout, axis=1)))
        texts = tf.strings.reduce_join(
            tf.ragged.map_flat_values(tf.gather, list(self._vocabulary.tokens), kept), 1, separator=" "
        )
        return tf.strings.regex_replace(texts, f" {CONTINUATION_PREFIX}", "")

    def compute_output_spec(self, texts):
        """Shapes and dtypes for a functional model, which Keras could not find by tracing strings."""
        return keras.KerasTensor((texts.shape[0], None), dtype="int32", ragged=True)

    def get_config(self):
        """The constructor's arguments; the vocabulary is among them, so that a saved model needs no other file."""
        return {
            **super().get_config(),
            "vocabulary": self.vocabulary,
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "reference": self.reference,
            "max_characters_per_word": self.max_characters_per_word,
            "special_tokens_in_text": self.special_tokens_in_text,
        }
