"""Faster tokenization in `tf.data` where tensorflow-text is installed, with the same ids.

tensorflow-text has a WordPiece kernel in C++ (Song et al. 2021, "Fast WordPiece Tokenization"). Its own clean-up of
texts differs from BERT's, but on printable ASCII there is nothing to differ about: lower-casing is all that happens.
So texts of printable ASCII go to that kernel and all others to ours. Before that is done, both are compared on a probe
made of the vocabulary; if a single id differs, or tensorflow-text cannot be imported, everything stays with ours.

This is for input pipelines. An exported graph would need tensorflow-text's ops in the server, so layers never use it.
"""

import logging

import tensorflow as tf

from keras_bert_kit.text.packer import BertPacker
from keras_bert_kit.text.texts import as_segments, as_texts
from keras_bert_kit.text.vocabulary import CONTINUATION_PREFIX, UNK

logger = logging.getLogger(__name__)

# A bracket may begin a special token, which only our tokenizer knows about.
_SIMPLE_TEXT = r"[\t\n\r\x20-Z\\-~]*"


def faster(layer):
    """Finds the fastest equal of a tokenizer or packer, for `tf.data.Dataset.map`.

    Args:
        layer: BertTokenizer or BertPacker.

    Returns:
        A callable that takes what `layer` takes and returns what it returns; `layer` itself where tensorflow-text is
        missing or differs. One line in the log of `keras_bert_kit` says which, and why.

    Example:
    ```python
    dataset.map(faster(pack))
    ```
    """
    is_packer = isinstance(layer, BertPacker)
    tokenizer = layer.tokenizer if is_packer else layer
    try:
        tokenize = _with_tensorflow_text(tokenizer)
    except (ImportError, tf.errors.OpError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        logger.info("Tokenization with core ops; tensorflow-text is not used: %s", reason)
        return layer
    logger.info("Tokenization with tensorflow-text for texts of printable ASCII, with core ops for others.")
    if not is_packer:
        return lambda texts: tokenize(as_texts(texts))

    def pack(texts):
        segments = as_segments(texts)
        return layer.pack_ids(tuple(map(tokenize, segments)) if isinstance(segments, tuple) else tokenize(segments))

    return pack


def _with_tensorflow_text(tokenizer):
    """A function from string (batch,) to ids, int32 ragged, as fast as it gets. Raises where that is not possible."""
    import tensorflow_text

    kernel = tensorflow_text.FastWordpieceTokenizer(
        vocab=tokenizer.vocabulary,
        suffix_indicator=CONTINUATION_PREFIX,
        max_bytes_per_word=tokenizer.max_characters_per_word,
        unknown_token=UNK,
        token_out_type=tf.int32,
    )

    def tokenize_simple(texts):
        return kernel.tokenize(tf.strings.lower(texts) if tokenizer.lowercase else texts)

    def tokenize_mixed(texts, is_simple):
        simple, other = tf.where(is_simple)[:, 0], tf.where(~is_simple)[:, 0]
        ids = tf.concat([tokenize_simple(tf.gather(texts, simple)), tokenizer(tf.gather(texts, other))], axis=0)
        return tf.gather(ids, tf.argsort(tf.concat([simple, other], axis=0)))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def tokenize(texts):
        is_simple = tf.strings.regex_full_match(texts, _SIMPLE_TEXT)
        return tf.cond(
            tf.reduce_all(is_simple), lambda: tokenize_simple(texts), lambda: tokenize_mixed(texts, is_simple)
        )

    probe = probe_texts(tokenizer)
    ours, theirs = tokenizer(probe), tokenize(probe)
    for text, expected, found in zip(probe, ours.to_list(), theirs.to_list(), strict=True):
        if expected != found:
            raise ValueError(f"it gives other ids for {text[:60]!r}")
    return tokenize


def probe_texts(tokenizer):
    """Texts that show whether two tokenizers agree: every token of the vocabulary, every sign, the longest words."""
    tokens = [token.removeprefix(CONTINUATION_PREFIX) for token in tokenizer.vocabulary]
    signs = [chr(code_point) for code_point in range(128)]
    limit = tokenizer.max_characters_per_word
    return [
        *tokens,
        *(f"{first}{second} {second}{first.upper()}" for first, second in zip(tokens, tokens[1:], strict=False)),
        *(f"a{sign}b {sign}{sign}" for sign in signs),
        *("a" * (limit + more) for more in (-1, 0, 1)),
        *("ab, " * (limit + more) for more in (-1, 0, 1)),
        *("", " ", "\r\n", "[MASK]", "[MASK", "é", "e\u0301", "\0", "\x7f"),
    ]
