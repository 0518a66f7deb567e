"""Learning a WordPiece vocabulary from texts, with the `tokenizers` library.

The library counts words and merges the most frequent neighbours until the vocabulary is full (its trainer does this as
byte-pair encoding does, and writes the result as WordPiece tokens). It numbers the single letters in the order of a
hash table, which differs from run to run and decides between equally frequent pairs; given the letters in a fixed
order, it learns the same vocabulary every time. The only choice left to chance is which lines are used when there are
more than `max_lines`, and `seed` fixes that.
"""

import collections
import os
import random
from pathlib import Path

from keras_bert_kit.errors import DataError
from keras_bert_kit.text.normalizer import OTHER, character_class
from keras_bert_kit.text.vocabulary import CLS, CONTINUATION_PREFIX, MASK, PAD, SEP, UNK

# The order that BERT's own vocabularies have: [PAD] is 0.
LEARNED_SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
MAX_LETTERS = 1000


def learn_vocabulary(
    paths,
    vocab_size=30522,
    *,
    lowercase=True,
    strip_accents=None,
    min_frequency=2,
    max_lines=None,
    num_unused=0,
    seed=0,
):
    """Learns the tokens of a vocabulary from text files.

    Args:
        paths: list of paths of UTF-8 text files, or one path.
        vocab_size: int, tokens at most, special and unused ones included.
        lowercase, strip_accents: as in `BertTokenizer`.
        min_frequency: int, how often a pair must occur to become a token.
        max_lines: int, lines to learn from; more are sampled. None: all.
        num_unused: int, "[unused0]" and so on after the special tokens, room for words that are added later.
        seed: int, fixes the sample.

    Returns:
        list of str, the token of each id, to be written by `write_vocabulary`.

    Raises:
        ImportError: the `tokenizers` library is missing.
        DataError: a file is missing or not UTF-8, or there is no text in them.
        ValueError: `vocab_size` leaves no room.
    """
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    unused = [f"[unused{i}]" for i in range(num_unused)]
    if vocab_size <= len(LEARNED_SPECIAL_TOKENS) + num_unused:
        raise ValueError(f"vocab_size must leave room for tokens. Received: {vocab_size=}, {num_unused=}.")
    lines = _sample(_read_lines(paths), max_lines, random.Random(seed))
    if not any(line.strip() for line in lines):
        raise DataError(f"There must be text to learn from. Received: {len(lines)} empty lines in {list(paths)!r}.")
    learner = _tokenizers().BertWordPieceTokenizer(lowercase=lowercase, strip_accents=strip_accents)
    letters = _letters(map(learner.normalizer.normalize_str, lines))
    first = [*LEARNED_SPECIAL_TOKENS, *letters]
    learner.train_from_iterator(
        lines,
        vocab_size=vocab_size - num_unused,
        min_frequency=min_frequency,
        special_tokens=first[: vocab_size - num_unused],
        wordpieces_prefix=CONTINUATION_PREFIX,
        show_progress=False,
    )
    ids = learner.get_vocab()
    learned = sorted(ids, key=ids.get)
    num_special = len(LEARNED_SPECIAL_TOKENS)
    return [*learned[:num_special], *unused, *learned[num_special:]]


def write_vocabulary(vocabulary, path):
    """Writes `vocab.txt`, one token a line, replacing an existing file at once or not at all. Returns the path.

    Folders on its way are made.
    """
    path = Path(os.fspath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes("".join(f"{token}\n" for token in vocabulary).encode("utf-8"))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _letters(texts):
    """The most frequent characters of normalised texts, sorted, then the continuations of those that words are of."""
    counts = collections.Counter()
    for text in texts:
        counts.update(text)
    frequent = sorted(counts, key=lambda letter: (-counts[letter], letter))[:MAX_LETTERS]
    letters = sorted(letter for letter in frequent if not letter.isspace())
    return [*letters, *(f"{CONTINUATION_PREFIX}{letter}" for letter in letters if character_class(letter) == OTHER)]


def _tokenizers():
    """The optional library, or an error that says how to get it."""
    try:
        import tokenizers
    except ImportError as error:
        message = "Learning a vocabulary needs the library `tokenizers`. Run: pip install 'keras_bert_kit[vocab]'"
        raise ImportError(message) from error
    return tokenizers


def _read_lines(paths):
    """All lines of all files."""
    for path in paths:
        try:
            with open(path, encoding="utf-8-sig", newline="\n") as file:
                yield from file
        except OSError as error:
            raise DataError(
                f"A text file must be readable. Received: {os.fspath(path)!r} ({error.strerror})."
            ) from error
        except UnicodeDecodeError as error:
            raise DataError(f"A text file must be UTF-8. Received: {os.fspath(path)!r} ({error.reason}).") from error


def _sample(lines, max_lines, generator):
    """All lines, or `max_lines` of them drawn evenly in one pass (reservoir sampling), in the order of the files."""
    if max_lines is None:
        return list(lines)
    kept = []
    for number, line in enumerate(lines):
        if number < max_lines:
            kept.append((number, line))
        elif (place := generator.randrange(number + 1)) < max_lines:
            kept[place] = (number, line)
    return [line for _, line in sorted(kept)]
