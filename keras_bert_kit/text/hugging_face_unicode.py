"""What Hugging Face's `tokenizers` library knows of Unicode, where that differs from Python's `unicodedata`.

The library takes categories (is it a mark, a control character, punctuation?) from tables of Unicode 8.0, of 2015,
decompositions from tables of 2019, and lower case from the newest ones. So a mark that joined Unicode in 2016 is no
accent to it, while Python, and Google's tokenizer with it, strips that mark. Found by asking the library (0.23.3)
about every code point and comparing with Unicode 18.
"""

import unicodedata

# Ranges of code points in which every mark, control character and punctuation sign is younger than Unicode 8.0.
_YOUNGER_THAN_UNICODE_8 = """
    5C8-5C9 61D 7FD 890-8E2 9FD-9FE A76 AFA-AFF B53-B55 C04-C3C C77 C84 D00 D3B-D3C D81 EBA ECE 180F-1886 1ABF-1AF0
    1B4E-1B4F 1B7D-1B7F 1DF6-1DFB 2E43-2E63 A82C A8C5 A8FF A9BD 10D24-10F89 11070-11074 110C2-110CD 111CF
    1123E-11241 1133B 113BB-1145E 11660-1166C 116B9 1182F-11FFF 12FF1-12FF2 13430-13455 1611E-1612F 16D6D-16F4F
    16FE2-16FE4 1CF00-1D128 1D25B-1D25C 1E000-1E6F5 1E944-1E95F
"""
# Characters that had another category in Unicode 8.0 than they have today.
_OLD_CATEGORIES = {0x166D: "Po", 0x1734: "Mn", 0x1171E: "Mn", 0x111C9: "Po"}
# Characters that came with a decomposition after 2019; the library leaves them whole.
_NOT_DECOMPOSED = "105C9 105E4 11383-11391 113C5-113C8 11938 16121-16128 16D68-16D6A"
# Pairs of capital and small letters that came after Unicode 13, which Python 3.10 has: first and last capital, first
# small letter.
_YOUNG_CAPITALS = (
    (0x1C89, 0x1C89, 0x1C8A),
    (0x2C2F, 0x2C2F, 0x2C5F),
    (0xA7C0, 0xA7C0, 0xA7C1),
    (0xA7CB, 0xA7CB, 0x264),
    (0xA7CC, 0xA7CC, 0xA7CD),
    (0xA7CE, 0xA7CE, 0xA7CF),
    (0xA7D0, 0xA7D0, 0xA7D1),
    (0xA7D2, 0xA7D2, 0xA7D3),
    (0xA7D4, 0xA7D4, 0xA7D5),
    (0xA7D6, 0xA7D6, 0xA7D7),
    (0xA7D8, 0xA7D8, 0xA7D9),
    (0xA7DA, 0xA7DA, 0xA7DB),
    (0xA7DC, 0xA7DC, 0x19B),
    (0x10570, 0x1057A, 0x10597),
    (0x1057C, 0x1058A, 0x105A3),
    (0x1058C, 0x10592, 0x105B3),
    (0x10594, 0x10595, 0x105BB),
    (0x10D50, 0x10D65, 0x10D70),
    (0x16EA0, 0x16EB8, 0x16EBB),
)


def _members(ranges):
    """`"61D 890-8E2"` as a set of code points."""
    bounds = [(*text.split("-"), text)[:2] if "-" in text else (text, text) for text in ranges.split()]
    return {code_point for first, last in bounds for code_point in range(int(first, 16), int(last, 16) + 1)}


_YOUNG = _members(_YOUNGER_THAN_UNICODE_8)
_WHOLE = {chr(code_point) for code_point in _members(_NOT_DECOMPOSED)}
_SMALL = {
    chr(capital): chr(small + capital - first)
    for first, last, small in _YOUNG_CAPITALS
    for capital in range(first, last + 1)
}


def category(character):
    """The general category; "Cn" (unassigned) for marks, controls and punctuation younger than Unicode 8.0."""
    old = _OLD_CATEGORIES.get(ord(character))
    if old:
        return old
    return "Cn" if ord(character) in _YOUNG else unicodedata.category(character)


def decompose(character):
    """The canonical decomposition, NFD."""
    return character if character in _WHOLE else unicodedata.normalize("NFD", character)


def lower(text):
    """Lower case, one character at a time: a capital sigma becomes "σ" at the end of a word too."""
    return "".join(_SMALL.get(character) or character.lower() for character in text)
