"""Normalisation as TF-Hub's `bert_..._preprocess` SavedModels do it, which is not what BERT was pre-trained with.

Their graphs hold four steps of tensorflow-text (`BasicTokenizer`), the first three of them in uncased models only:

    case folding with NFKC     "ﬁne" -> "fine"   "½" -> "1⁄2"   "Straße" -> "strasse"   soft hyphens: dropped
    NFD                        "é" -> "e" and an accent
    no nonspacing marks        the accent: dropped
    controls become spaces     Google's and Hugging Face's tokenizers drop most of them

Only a space, a tab, a line feed, a form feed and a carriage return divide words after that; U+00A0 does in uncased
models, since NFKC makes a space of it, and is a letter in cased ones. NFKC case folding is done one character at a
time (Unicode, chapter 3.13, R5), so it is a table like the others. Letters that are younger than Python's Unicode
stay as they are. Reference: https://github.com/tensorflow/text, `bert_tokenizer.py`.
"""

import unicodedata

# Default_Ignorable_Code_Point of Unicode, which NFKC case folding drops: first and last code points.
_IGNORED = (
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)


def normalize(character, lowercase):
    """Normalises one character to a string of none, one or several characters, at most 18 (U+FDFA)."""
    text = character
    if lowercase:
        text = unicodedata.normalize("NFD", nfkc_casefold(character))
        text = "".join(part for part in text if unicodedata.category(part) != "Mn")
    return "".join(" " if unicodedata.category(part) in {"Cc", "Cf"} else part for part in text)


def nfkc_casefold(character):
    """NFKC_Casefold of one character: dropped, or folded and composed until nothing changes any more."""
    if any(first <= ord(character) <= last for first, last in _IGNORED):
        return ""
    text, before = character, None
    while text != before:
        before = text
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return text
