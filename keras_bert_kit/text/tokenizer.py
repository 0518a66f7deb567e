"""BertTokenizer: texts to token ids, in core TensorFlow ops.

    "Åsa plays!"                                text
     Å s a ␣ p l a y s !                        code points           tf.strings.unicode_decode
     a s a ␣ p l a y s !                        normalised            characters.py: a table look-up
    [asa] [plays] [!]                           words                 wordpiece.py: where the class changes
    as ##a  play ##s  !                         pieces                wordpiece.py: a walk through the vocabulary
    2004 2050 2377 2015 999                     ids

No step is Python code at run time and none needs a custom op, so the same tokenizer works eagerly, in `tf.data`, in a
Keras functional model and inside an exported SavedModel, wherever TensorFlow runs. The tables are constants, not
resources: nothing to initialise, to track or to lose.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_bert_kit.text.characters import (
    CLASS_BITS,
    UNKNOWN,
    CharacterTable,
    alphabet_of,
    build_character_table,
    mark_special_tokens,
    normalize,
    spell,
    unpack,
)
from keras_bert_kit.text.normalizer import NUM_CODE_POINTS
from keras_bert_kit.text.texts import as_texts
from keras_bert_kit.text.trie import CONTINUATION_ROOT, NONE, WORD_ROOT, Trie, build_trie
from keras_bert_kit.text.vocabulary import MASK, OBLIGATORY_TOKENS, read_vocabulary, special_ids, token_ids
from keras_bert_kit.text.wordpiece import match_pieces, split_words

PACKAGE = "keras_bert_kit"


@keras.saving.register_keras_serializable(package=PACKAGE)
class BertTokenizer(keras.layers.Layer):
    """Cuts texts into the word pieces of a BERT vocabulary.

    The ids are those of Google's and Hugging Face's BERT tokenizers. Where the two differ, Hugging Face's.

    Args:
        vocabulary: list of str, the token of each id. Must hold [UNK], [CLS], [SEP] and [PAD].
        lowercase: bool, whether the model is an "uncased" one.
        strip_accents: bool, whether "é" becomes "e". None: as `lowercase`.
        max_characters_per_word: int, longer words become [UNK]. 100 in Hugging Face's tokenizers, 200 in Google's.
        special_tokens_in_text: bool, whether "[MASK]" (or [CLS], [SEP], [PAD], [UNK]) written in a text is that token,
            as in Hugging Face's tokenizers, or the five signs and letters that it is in Google's.
        **kwargs: passed to `keras.layers.Layer`.

    Call arguments:
        texts: a str, a list of str, a NumPy array or tensor of strings (UTF-8) of rank 1. A single str is one text.

    Returns:
        tf.RaggedTensor int32 (batch, tokens). No [CLS] or [SEP] is added; `BertPacker` does that.

    Raises:
        VocabularyError: the vocabulary lacks a special token.
        ValueError: texts are not strings, or not of rank 1.

    Example:
    ```python
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing"])
    tokenizer(["Playing play"])     # <tf.RaggedTensor [[4, 5, 4]]>
    ```

    Reference: google-research/bert `tokenization.py`.
    """

    def __init__(
        self,
        vocabulary,
        lowercase=True,
        strip_accents=None,
        *,
        max_characters_per_word=100,
        special_tokens_in_text=True,
        **kwargs,
    ):
        super().__init__(**{"trainable": False, "dtype": "int32", **kwargs})
        if not isinstance(max_characters_per_word, int) or max_characters_per_word < 1:
            raise ValueError(
                f"max_characters_per_word must be a positive int. Received: {max_characters_per_word=}. "
                f"BERT models were trained with 100 or 200."
            )
        self.lowercase = bool(lowercase)
        self.strip_accents = strip_accents
        self.max_characters_per_word = max_characters_per_word
        self.special_tokens_in_text = bool(special_tokens_in_text)
        self._tokens = tuple(vocabulary)
        ids = token_ids(self._tokens)
        self._special_ids = special_ids(ids)
        self._characters, self._trie, self._special_tokens = self._build_tables(ids)
        # Strings and look-ups stay on the CPU, and one graph serves eager calls too.
        self._tokenize = tf.function(
            self._tokenize_batch, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
        )
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
        return list(self._tokens)

    @property
    def vocab_size(self):
        """Number of ids."""
        return len(self._tokens)

    @property
    def unk_id(self):
        """Id of [UNK], which stands for a word that cannot be cut into known pieces."""
        return self._special_ids.unk

    @property
    def cls_id(self):
        """Id of [CLS], the first token of every input."""
        return self._special_ids.cls

    @property
    def sep_id(self):
        """Id of [SEP], the end of each segment."""
        return self._special_ids.sep

    @property
    def pad_id(self):
        """Id of [PAD], behind the last [SEP]."""
        return self._special_ids.pad

    @property
    def mask_id(self):
        """Id of [MASK], or None in a vocabulary without it."""
        return self._special_ids.mask

    def __call__(self, texts, **kwargs):
        """Checks the texts before Keras does anything with them: its own errors would print them all."""
        return super().__call__(texts if isinstance(texts, keras.KerasTensor) else as_texts(texts), **kwargs)

    def call(self, texts):
        """See the class."""
        return self._tokenize(texts)

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
            "max_characters_per_word": self.max_characters_per_word,
            "special_tokens_in_text": self.special_tokens_in_text,
        }

    def _build_tables(self, ids):
        """The tables as eager tensors, also when the layer is made inside a graph."""
        strip_accents = self.lowercase if self.strip_accents is None else bool(self.strip_accents)
        special_tokens = []
        if self.special_tokens_in_text:
            special_tokens = [token for token in (*OBLIGATORY_TOKENS, MASK) if token in ids]
        alphabet = alphabet_of(self._tokens, special_tokens)
        characters = build_character_table(alphabet, self.lowercase, strip_accents)
        spellings, continues, tokens = spell(ids, alphabet, self.lowercase, strip_accents)
        num_special = len(special_tokens)
        spellings += [[alphabet[NUM_CODE_POINTS + i]] for i in range(num_special)]
        roots = np.concatenate([np.where(continues, CONTINUATION_ROOT, WORD_ROOT), np.full(num_special, WORD_ROOT)])
        tokens = np.concatenate([tokens, [ids[token] for token in special_tokens]]).astype(np.int32)
        trie = build_trie(spellings, roots, tokens, num_symbols=len(alphabet) + UNKNOWN + 1)
        with tf.init_scope(), tf.device("CPU:0"):
            return CharacterTable(*map(tf.constant, characters)), Trie(*map(tf.constant, trie)), special_tokens

    def _tokenize_batch(self, texts):
        """Texts, string (batch,), to ids, int32 ragged (batch, tokens)."""
        with tf.device("CPU:0"):
            # A space at the end of each text keeps the words of neighbours apart.
            code_points = tf.strings.unicode_decode(texts + " ", "UTF-8")
            marked = mark_special_tokens(code_points.values, self._special_tokens)
            codes, row_splits = normalize(marked, code_points.row_splits, self._characters)
            symbols, classes = unpack(codes, CLASS_BITS)
            words = split_words(symbols, classes)
            ids = match_pieces(symbols, words, self._trie, self.unk_id, self.max_characters_per_word)
            is_piece = ids != NONE
            num_pieces_before = tf.cumsum(tf.concat([[0], tf.cast(is_piece, tf.int64)], axis=0))
            return tf.RaggedTensor.from_row_splits(
                tf.boolean_mask(ids, is_piece), tf.gather(num_pieces_before, row_splits), validate=False
            )
