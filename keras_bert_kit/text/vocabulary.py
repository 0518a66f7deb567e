"""Vocabularies: one token a line, the line number (from 0) is the id.

    [PAD]         0
    [UNK]         1
    ...
    the         1996
    ##ing       2075      "##": continues a word

The format is Google's and Hugging Face's `vocab.txt`. Lines end at a line feed and nowhere else: the Chinese BERT
vocabulary has U+2028 as a token, which `str.splitlines` would take for two lines, shifting every id after it.
"""

import os
import warnings
from pathlib import Path

from keras_bert_kit.errors import VocabularyError

UNK, CLS, SEP, PAD, MASK = "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"
OBLIGATORY_TOKENS = (UNK, CLS, SEP, PAD)
SPECIAL_TOKENS = (*OBLIGATORY_TOKENS, MASK)
CONTINUATION_PREFIX = "##"


def read_vocabulary(path):
    """Reads a `vocab.txt`.

    A byte-order mark, carriage returns and empty lines at the end are dropped. Empty lines elsewhere keep their id,
    since the ids of the lines after them were counted with them when the model was trained. White space around a
    token is dropped, except when the token is nothing else (U+2028).

    Args:
        path: str or path of a UTF-8 text file.

    Returns:
        list of str, the token of each id.

    Raises:
        VocabularyError: the file is missing, is not UTF-8, or is empty.
    """
    path = Path(os.fspath(path))
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise VocabularyError(
            f"A vocabulary must be a text file that can be read. Received: path={str(path)!r} ({error.strerror}). "
            f"Give the path of a vocab.txt."
        ) from error
    except UnicodeDecodeError as error:
        line_number = error.object[: error.start].count(b"\n") + 1
        raise VocabularyError(
            f"A vocabulary must be UTF-8 text. Received: {str(path)!r}, not UTF-8 in line {line_number}. "
            f"Is this a vocab.txt?"
        ) from error
    tokens = [line.removesuffix("\r") for line in text.split("\n")]
    tokens = [token.strip(" \t") or token for token in tokens]
    while tokens and not tokens[-1].strip(" \t"):
        tokens.pop()
    if not tokens:
        raise VocabularyError(f"A vocabulary must hold one token a line. Received: {str(path)!r}, an empty file.")
    return tokens


class Vocabulary:
    """Tokens and their ids, both ways.

    Of a repeated token the last id counts, as in Google's and Hugging Face's readers; a UserWarning says so. Empty
    lines have an id, which no text leads to.

    Args:
        tokens: iterable of str, the token of each id.

    Attributes:
        tokens: tuple of str.
        ids: dict of token to id.
        unk_id, cls_id, sep_id, pad_id: int.
        mask_id: int, or None where [MASK] is missing, which only pre-training needs.

    Raises:
        VocabularyError: tokens are not strings, or one of [UNK], [CLS], [SEP], [PAD] is missing.
    """

    def __init__(self, tokens):
        if isinstance(tokens, (str, bytes, os.PathLike)):
            raise VocabularyError(
                f"A vocabulary must be a list of strings, the token of each id. Received: {str(tokens)[:80]!r}. "
                f"To read a file, call BertTokenizer.from_vocab_file(path)."
            )
        self.tokens = tuple(tokens)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.ids.pop("", None)
        if not all(isinstance(token, str) for token in self.ids):
            odd = next(token for token in self.ids if not isinstance(token, str))
            raise VocabularyError(f"A vocabulary must be a list of strings. Received: {odd!r} in it.")
        self._warn_of_repetitions()
        missing = [token for token in OBLIGATORY_TOKENS if token not in self.ids]
        if missing:
            raise VocabularyError(
                f"A BERT vocabulary must hold {', '.join(OBLIGATORY_TOKENS)}. Received: {len(self.ids)} tokens without "
                f"{', '.join(missing)}. Is this the vocab.txt of a BERT model? If so, add them at its end."
            )
        self.unk_id, self.cls_id, self.sep_id, self.pad_id, self.mask_id = map(self.ids.get, SPECIAL_TOKENS)

    def _warn_of_repetitions(self):
        if len(self.ids) + self.tokens.count("") == len(self.tokens):
            return
        repeated = [f"{token!r} (id {i})" for i, token in enumerate(self.tokens) if token and self.ids[token] != i]
        warnings.warn(
            f"The vocabulary repeats {len(repeated)} tokens; the last line of each counts, earlier ids are never "
            f"used: {', '.join(repeated[:5])}{', ...' if len(repeated) > 5 else ''}.",
            stacklevel=4,
        )
