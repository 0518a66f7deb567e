"""The way from texts to pieces as one graph: the steps of the other modules in a row, with their tables."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.text.characters import CharacterTable, alphabet_of, build_character_table, normalize, spell
from keras_bert_kit.text.code_points import NUM_CODE_POINTS, decode
from keras_bert_kit.text.final_sigma import casing_table, lower_final_sigmas
from keras_bert_kit.text.normalizer import GOOGLE, TF_HUB, normalization_rules
from keras_bert_kit.text.special_tokens import lengths_in_text, mark_special_tokens
from keras_bert_kit.text.trie import CONTINUATION_ROOT, NONE, WORD_ROOT, build_trie
from keras_bert_kit.text.wordpiece import match_pieces, positions_of, split_words


class Pieces(NamedTuple):
    """Pieces and where they come from; int32 ragged (batch, tokens).

    ids: token ids.
    starts, ends: the code points of the text that the piece was made of are `text[start:end]`.
    words: which word of its text, counted from 0, the piece belongs to; "it's" is three words.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    words: tf.RaggedTensor


class PieceFinder:
    """Cuts batches of texts into pieces.

    Its tables are constant tensors, so that every graph that uses it contains or captures them, and nothing has to be
    tracked, initialised or restored.

    Args:
        ids: dict of token to id.
        unknown_id: int, id of the piece for words that cannot be cut.
        lowercase, strip_accents: bool.
        reference: HUGGING_FACE, GOOGLE or TF_HUB.
        max_characters_per_word: int; for TF_HUB it counts bytes of UTF-8.
        special_tokens: list of tokens that are one piece where a text writes them out; those without id are not.
    """

    def __init__(self, ids, unknown_id, lowercase, strip_accents, reference, max_characters_per_word, special_tokens):
        self.unknown_id = unknown_id
        self.max_characters_per_word = max_characters_per_word
        self.special_tokens = special_tokens = [token for token in special_tokens if token in ids]
        rules = normalization_rules(lowercase, strip_accents, reference)
        alphabet = alphabet_of(ids, len(special_tokens))
        characters = build_character_table(alphabet, rules)
        trie = _trie_of(ids, alphabet, rules, special_tokens)
        with tf.init_scope(), tf.device("CPU:0"):  # eager tensors, also when a graph is being built around
            self._characters = CharacterTable(_constants(characters.table), tf.constant(characters.sequences))
            self._trie = _constants(trie)
            self._casing = _constants(casing_table()) if lowercase and reference == GOOGLE else None
            self._bytes_of_symbols = tf.constant(_bytes_of_symbols(alphabet)) if reference == TF_HUB else None

    def find(self, texts):
        """Token ids, int32 ragged (batch, tokens), of texts, string (batch,)."""
        with tf.device("CPU:0"):  # strings live there, and the ids are few
            return self._find(texts)[0]

    def locate(self, texts):
        """Pieces of texts, string (batch,)."""
        with tf.device("CPU:0"):
            ids, places, words, normalized, marked, text_starts = self._find(texts)
            word = tf.searchsorted(words.starts, places, side="right") - 1
            # A piece ends where the next one of its word begins, or where the word ends.
            last = tf.minimum(tf.concat([places[1:], words.ends[-1:] + 1], axis=0) - 1, tf.gather(words.ends, word))
            first_source, last_source = tf.gather(normalized.sources, places), tf.gather(normalized.sources, last)
            last_length = lengths_in_text(tf.gather(marked, last_source), self.special_tokens)

            row = ids.value_rowids()
            text_start = tf.gather(tf.cast(text_starts, tf.int32), row)
            first_words = tf.searchsorted(words.starts, tf.cast(normalized.row_splits, tf.int32))
            return Pieces(
                ids,
                ids.with_values(first_source - text_start),
                ids.with_values(last_source + last_length - text_start),
                ids.with_values(word - tf.gather(first_words, row)),
            )

    def _find(self, texts):
        """The ids, where each piece starts, and what `locate` needs to say more."""
        code_points, text_starts = decode(texts)
        if self._casing is not None:
            code_points = lower_final_sigmas(code_points, self._casing)
        marked = mark_special_tokens(code_points, self.special_tokens)
        normalized = normalize(marked, text_starts, self._characters)
        words = split_words(normalized.symbols, normalized.classes)
        acceptable = self._lengths(words, normalized.symbols) <= self.max_characters_per_word
        ids = match_pieces(normalized.symbols, words, acceptable, self._trie, self.unknown_id)
        places = positions_of(ids != NONE)
        row_splits = tf.searchsorted(places, tf.cast(normalized.row_splits, tf.int32), out_type=tf.int64)
        ids = tf.RaggedTensor.from_row_splits(tf.gather(ids, places), row_splits, validate=False)
        return ids, places, words, normalized, marked, text_starts

    def _lengths(self, words, symbols):
        """How long each word is, int32 (words,)."""
        if self._bytes_of_symbols is None:
            return words.ends - words.starts + 1
        before = tf.cumsum(tf.pad(tf.gather(self._bytes_of_symbols, symbols), [[1, 0]]))
        return tf.gather(before, words.ends + 1) - tf.gather(before, words.starts)


def _bytes_of_symbols(alphabet):
    """The bytes of UTF-8 of each symbol. A word with a character of no symbol is [UNK], however long it is."""
    sizes = np.ones(max(alphabet.values()) + 1, np.int32)
    for code_point, symbol in alphabet.items():
        sizes[symbol] = len(chr(code_point).encode(errors="surrogatepass")) if code_point < NUM_CODE_POINTS else 1
    return sizes


def _trie_of(ids, alphabet, rules, special_tokens):
    """The trie of all tokens that can be met, and of the special tokens as single symbols."""
    spellings, continues, tokens = spell(ids, alphabet, rules)
    spellings += [[alphabet[NUM_CODE_POINTS + i]] for i in range(len(special_tokens))]
    tokens = np.concatenate([tokens, np.array([ids[token] for token in special_tokens], np.int32)])
    roots = np.full(len(tokens), WORD_ROOT)
    roots[: len(continues)][continues] = CONTINUATION_ROOT
    return build_trie(spellings, roots, tokens, num_symbols=max(alphabet.values()) + 1)


def _constants(arrays):
    """A named tuple of arrays as one of tensors."""
    return type(arrays)(*map(tf.constant, arrays))
