"""`reference="google"`: equal to the algorithm of google-research/bert, written out here in plain Python."""

import unicodedata

import pytest

from keras_bert_kit.text.tokenizer import BertTokenizer

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
RANGES = [(0, 0x180), (0x300, 0x400), (0x590, 0x600), (0x1100, 0x1180), (0x1F00, 0x2040), (0x3000, 0x3100)]
RANGES += [(0x4E00, 0x4E20), (0xAC00, 0xAC40), (0xE000, 0xE010), (0xF900, 0xF920), (0x2B818, 0x2B828)]
CHARACTERS = [chr(code_point) for first, last in RANGES for code_point in range(first, last)]
IDEOGRAPHS = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F)]
IDEOGRAPHS += [(0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


def clean(text):
    """Control characters go, spaces become plain, ideographs get spaces around them."""
    cleaned = ""
    for character in text:
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            cleaned += " "
        elif any(first <= ord(character) <= last for first, last in IDEOGRAPHS):
            cleaned += f" {character} "
        elif character not in "\0\ufffd" and category not in ("Cc", "Cf"):
            cleaned += character
    return cleaned


def is_punctuation(character):
    ascii_sign = 33 <= ord(character) <= 126 and not character.isalnum()
    return ascii_sign or unicodedata.category(character).startswith("P")


def words_of(text, lowercase):
    for token in clean(text).split():
        if lowercase:
            token = unicodedata.normalize("NFD", token.lower())
            token = "".join(character for character in token if unicodedata.category(character) != "Mn")
        spaced = "".join(f" {character} " if is_punctuation(character) else character for character in token)
        yield from spaced.split()


def pieces_of(word, vocabulary, limit):
    pieces, start = [], 0
    while start < len(word) <= limit:
        prefix = "##" if start else ""
        ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary)
        end = next(ends, None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces or ["[UNK]"]


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def tokenizer(request):
    letters = {part for character in CHARACTERS for part in unicodedata.normalize("NFD", character + character.lower())}
    letters = [letter for letter in sorted(letters) if letter.strip() and (letter.isascii() or ord(letter) % 3)]
    vocabulary = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters), "the", "##ing", "οδος", "##ος"]
    return BertTokenizer(vocabulary, lowercase=request.param, reference="google")


def texts():
    written = ["ΟΔΟΣ", "Σ", "[MASK]", "[UNK]", "\u2028", "\x85", "\x1c", "the", "a" * 199, "İ", "\ue000", "'", "\u0345"]
    parts = st.one_of(
        st.sampled_from(CHARACTERS),
        st.sampled_from(written),
        st.text("the ing", max_size=6),
        st.characters(codec="utf-8"),
    )
    return st.lists(st.lists(parts, max_size=12).map("".join), min_size=1, max_size=6)


@hypothesis.given(texts=texts())
@hypothesis.settings(max_examples=250, deadline=None, derandomize=True)
def test_ids_of_googles_algorithm(tokenizer, texts):
    parts = [unicodedata.normalize("NFD", character) for text in texts for character in text.lower()]
    hypothesis.assume(unicodedata.normalize("NFD", "".join(texts).lower()) == "".join(parts))  # marks stay in order
    vocabulary = {token: i for i, token in enumerate(tokenizer.vocabulary)}
    for text, found in zip(texts, tokenizer(texts).to_list(), strict=True):
        pieces = [piece for word in words_of(text, tokenizer.lowercase) for piece in pieces_of(word, vocabulary, 200)]
        assert found == [vocabulary[piece] for piece in pieces], text
