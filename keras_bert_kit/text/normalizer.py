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

The references differ on a few hundred rare characters, so each table is made after one of them: HUGGING_FACE
(private-use characters dropped, categories of Unicode 8.0) or GOOGLE (private use kept, Python's categories). TF_HUB
has steps of its own, see `tf_hub_unicode.py`.
"""

import functools
import unicodedata

import numpy as np

from keras_bert_kit.text import hugging_face_unicode, tf_hub_unicode
from keras_bert_kit.text.code_points import NUM_CODE_POINTS

HUGGING_FACE, GOOGLE, TF_HUB = "hugging_face", "google", "tf_hub"
REFERENCES = (HUGGING_FACE, GOOGLE, TF_HUB)
SPACE, SINGLE, OTHER = 0, 1, 2

# CJK ideographs, as listed by Google's tokenizer. Not kana, not Hangul: those write words.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# Hugging Face's list has 2B920 where Google's has 2B820.
_NO_IDEOGRAPHS_IN_HUGGING_FACE = (0x2B820, 0x2B91F)
_PRIVATE_PLANES = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
# Where to ask about each character. Between these lie ideographs, which stay as they are, and unassigned planes.
_SURVEYED = (range(0x3400), range(0xA000, 0x20000), range(0x2F800, 0x2FA20), range(0xE0000, 0xE1000))
_SPACE_CATEGORIES = {"Zs", "Zl", "Zp"}


def normalize_character(character, lowercase, strip_accents, reference=HUGGING_FACE):
    """Normalises one character to a string of none, one or a few characters; `strip_accents` says nothing to TF_HUB."""
    if reference == TF_HUB:
        return tf_hub_unicode.normalize(character, lowercase)
    if character in "\t\n\r":
        return " "
    category = _category(character, reference)
    if category in _SPACE_CATEGORIES:
        return " "
    if category in {"Cc", "Cf"} or character in "\0\ufffd" or (category == "Co" and reference == HUGGING_FACE):
        return ""
    if reference == GOOGLE:
        lowered = character.lower() if lowercase else character
        return _without_marks(unicodedata.normalize("NFD", lowered), reference) if strip_accents else lowered
    if strip_accents:
        character = _without_marks(hugging_face_unicode.decompose(character), reference)
    return hugging_face_unicode.lower(character) if lowercase else character


def character_class(character, reference=HUGGING_FACE):
    """SPACE, SINGLE or OTHER, for a character that is already normalised."""
    code_point = ord(character)
    if character == " ":
        return SPACE
    if code_point < 128:  # every sign that is neither letter nor digit, "$" too
        return SINGLE if character.isprintable() and not character.isalnum() else OTHER
    is_punctuation = _category(character, reference).startswith("P")
    return SINGLE if is_punctuation or any(a <= code_point <= b for a, b in _IDEOGRAPHS) else OTHER


@functools.lru_cache(maxsize=8)
def normalization_rules(lowercase, strip_accents, reference):
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
            normalized = normalize_character(character, lowercase, strip_accents, reference)
            if normalized != character:
                replacements[code_point] = normalized
            if code_point < 128 or _category(character, reference).startswith("P"):
                classes[code_point] = character_class(character, reference)
    for first, last in _IDEOGRAPHS:
        classes[first : last + 1] = SINGLE
    if reference != HUGGING_FACE:
        return replacements, (), classes
    first, last = _NO_IDEOGRAPHS_IN_HUGGING_FACE
    classes[first : last + 1] = OTHER
    return replacements, _PRIVATE_PLANES, classes


def is_normalized_word(text, rules):
    """Whether a text, normalised and divided into words by `normalization_rules`, stays as it is: one word."""
    replacements, dropped_ranges, classes = rules
    code_points = [ord(character) for character in text]
    stays = all(replacements.get(code_point, chr(code_point)) == chr(code_point) for code_point in code_points)
    dropped = any(first <= code_point <= last for first, last in dropped_ranges for code_point in code_points)
    is_run = all(classes[code_point] == OTHER for code_point in code_points)
    return stays and not dropped and (is_run if len(text) != 1 else classes[code_points[0]] != SPACE) and text != ""


def _category(character, reference):
    """The general category that the reference sees."""
    return (hugging_face_unicode if reference == HUGGING_FACE else unicodedata).category(character)


def _without_marks(decomposed, reference):
    """What is left of a decomposed character without its accents and other nonspacing marks."""
    return "".join(part for part in decomposed if _category(part, reference) != "Mn")
