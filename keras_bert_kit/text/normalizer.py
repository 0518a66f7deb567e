"""From a character as written to the characters BERT looks up, and where words end: one table for all of Unicode.

BERT cleans a text before it looks for words (`BasicTokenizer` in google-research/bert, `BertNormalizer` in Hugging
Face tokenizers). Each step looks at one character at a time, so all of them together are a table, built here
once with `unicodedata`:

    control characters, NUL, U+FFFD       ->  nothing
    tab, line ends, every kind of space   ->  a space
    "É"  (accents stripped: NFD, no Mn)   ->  "E"         a Hangul syllable  ->  its two or three jamo
    "É"  (lower-cased as well)            ->  "e"

A normalised character is of one of three classes: SPACE ends a word, SINGLE (punctuation and ideographs) is a word
of its own, OTHER forms words with its neighbours.
"""

import functools
import unicodedata

import numpy as np

SPACE, SINGLE, OTHER = 0, 1, 2
NUM_CODE_POINTS = 0x110000

# CJK ideographs, as listed by Google's tokenizer. Not kana, not Hangul: those write words.
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# Planes 4 to 13 hold nothing, 15 and 16 hold private-use characters: no need to ask about each.
_PRIVATE_PLANES = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_SURVEYED = (range(0x40000), range(0xE0000, 0xE1000))
_DROPPED_CATEGORIES = {"Cc", "Cf", "Co"}
_SPACE_CATEGORIES = {"Zs", "Zl", "Zp"}


def is_ideograph(code_point):
    """Whether Google's tokenizer sets the character apart as CJK."""
    return any(first <= code_point <= last for first, last in IDEOGRAPHS)


def is_punctuation(code_point):
    """Every ASCII sign that is neither letter, digit nor space ("$" too), and Unicode's categories P*."""
    if code_point < 128:
        return chr(code_point).isprintable() and not chr(code_point).isalnum() and code_point != 0x20
    return unicodedata.category(chr(code_point)).startswith("P")


def character_class(code_point):
    """SPACE, SINGLE or OTHER, for a character that is already normalised."""
    if code_point == 0x20:
        return SPACE
    return SINGLE if is_punctuation(code_point) or is_ideograph(code_point) else OTHER


def normalize_character(character, lowercase, strip_accents):
    """Normalises one character to a string of none, one or a few characters."""
    if character in "\t\n\r":
        return " "
    category = unicodedata.category(character)
    if category in _SPACE_CATEGORIES:
        return " "
    if category in _DROPPED_CATEGORIES or character in "\0\ufffd":
        return ""
    if strip_accents:
        decomposed = unicodedata.normalize("NFD", character)
        character = "".join(mark for mark in decomposed if unicodedata.category(mark) != "Mn")
    return character.lower() if lowercase else character


@functools.lru_cache(maxsize=8)
def normalization_rules(lowercase, strip_accents):
    """Lists what normalisation changes.

    Returns:
        `(replacements, dropped_ranges, classes)`: `{code point: string}` of the characters that do not stay as they
        are; ranges (first, last) that are dropped as a whole; uint8 (1114112,), the class of every code point that
        may come out.
    """
    replacements = {}
    classes = np.full(NUM_CODE_POINTS, OTHER, np.uint8)
    for code_points in _SURVEYED:
        for code_point in code_points:
            character = chr(code_point)
            normalized = normalize_character(character, lowercase, strip_accents)
            if normalized != character:
                replacements[code_point] = normalized
            if unicodedata.category(character)[0] == "P" or code_point < 128:
                classes[code_point] = character_class(code_point)
    for first, last in IDEOGRAPHS:
        classes[first : last + 1] = SINGLE
    return replacements, _PRIVATE_PLANES, classes
