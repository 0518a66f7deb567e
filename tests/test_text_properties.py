"""Random Unicode: the same ids and offsets as the `tokenizers` library, and the promises that hold for every text."""

import functools
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.text.normalizer import GOOGLE, HUGGING_FACE, OTHER, SINGLE, normalization_rules
from keras_bert_kit.text.packer import BertPacker
from keras_bert_kit.text.tokenizer import BertTokenizer

hypothesis = pytest.importorskip("hypothesis")
tokenizers = pytest.importorskip("tokenizers")
st = hypothesis.strategies

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Letters, marks, controls, signs and ideographs of many scripts; half of them are in the vocabulary.
RANGES = [
    (0, 0x250),
    (0x300, 0x530),
    (0x590, 0x660),
    (0x900, 0x980),
    (0xE00, 0xE5C),
    (0x1100, 0x1200),
    (0x1E00, 0x2070),
]
RANGES += [
    (0x3000, 0x3100),
    (0x4E00, 0x4E40),
    (0xAC00, 0xAC80),
    (0xF900, 0xF940),
    (0x1F600, 0x1F640),
    (0x2B810, 0x2B830),
]
CHARACTERS = [chr(code_point) for first, last in RANGES for code_point in range(first, last)]
WRITTEN = [*SPECIALS, "[mask]", "[[MASK]]", "[MASK", "\ue000", "\U000f0000", "İ", "ẞ", "ΑΣ", "a" * 99, "\r\n", "\u1734"]


def vocabulary():
    pieces = {unicodedata.normalize("NFD", character.lower())[0] for character in CHARACTERS}
    pieces |= set(CHARACTERS)
    pieces = [piece for piece in sorted(pieces) if piece.strip() and ord(piece) % 2 == 0 or piece.isascii()]
    return [*SPECIALS, *pieces, *(f"##{piece}" for piece in pieces), "th", "##th", "the", "##ing", "##αβ", "가"]


def texts():
    parts = st.one_of(
        st.sampled_from(CHARACTERS),
        st.sampled_from(
            [character for character in CHARACTERS if unicodedata.category(character) in ("Mn", "Mc", "Cf")]
        ),
        st.characters(exclude_categories=["Cs"]),
        st.text("the ing", max_size=8),
        st.sampled_from(WRITTEN),
    )
    return st.lists(st.lists(parts, max_size=12).map("".join), min_size=1, max_size=6)


def in_canonical_order(text):
    """Whether decomposing character by character gives NFD, which also sorts marks that follow each other."""
    return unicodedata.normalize("NFD", text) == "".join(unicodedata.normalize("NFD", part) for part in text)


@pytest.fixture(
    scope="module", params=[(True, None), (False, None), (True, False)], ids=["uncased", "cased", "accents"]
)
def pair(request):
    lowercase, strip_accents = request.param
    tokens = vocabulary()
    theirs = tokenizers.BertWordPieceTokenizer(
        {token: i for i, token in enumerate(tokens)}, lowercase=lowercase, strip_accents=strip_accents
    )
    return BertTokenizer(tokens, lowercase, strip_accents), theirs


@hypothesis.given(texts=texts())
@hypothesis.settings(max_examples=150, deadline=None, derandomize=True)
def test_ids_and_offsets_of_the_tokenizers_library(pair, texts):
    ours, theirs = pair
    encodings = theirs.encode_batch(texts, add_special_tokens=False)
    ids, starts, ends, words = (x.to_list() for x in ours.locate(texts))
    assert ours(texts).to_list() == ids
    for i, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
        assert ids[i] == encoding.ids
        if in_canonical_order(text):
            assert list(zip(starts[i], ends[i], strict=True)) == encoding.offsets
        assert words[i] == sorted(words[i])
        # Pieces of one word follow each other; only the first piece of a word has no "##".
        tokens = [ours.vocabulary[j] for j in ids[i]]
        first = [k == 0 or words[i][k] != words[i][k - 1] for k in range(len(tokens))]
        assert all(
            token.startswith("##") != begins for token, begins in zip(tokens, first, strict=True) if token != "##"
        )


@hypothesis.given(texts=st.lists(st.binary(max_size=20), min_size=1, max_size=6))
@hypothesis.settings(max_examples=100, deadline=None, derandomize=True)
def test_any_bytes_are_what_python_decodes(pair, texts):
    ours, theirs = pair
    decoded = [text.decode("utf-8", "replace") for text in texts]
    expected = [encoding.ids for encoding in theirs.encode_batch(decoded, add_special_tokens=False)]
    assert ours(texts).to_list() == expected


@hypothesis.given(
    sides=st.lists(st.tuples(st.text("ab", max_size=9), st.text("ab", max_size=9)), min_size=1, max_size=5),
    length=st.integers(3, 20),
    truncation=st.sampled_from(["longest_first", "only_first", "only_second"]),
)
@hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
def test_what_packing_promises(sides, length, truncation):
    tokenizer = _letters()
    first, second = ([" ".join(side) for side in column] for column in zip(*sides, strict=True))
    for segments in (first, (first, second)):
        packed = BertPacker(tokenizer, length, truncation=truncation)(segments)
        ids, mask, types = (packed[f"input_{name}"].numpy() for name in ("word_ids", "mask", "type_ids"))
        assert ids.shape == mask.shape == types.shape == (len(sides), length)
        assert ((ids != tokenizer.pad_id) == mask).all() and (np.diff(mask) <= 0).all()
        assert (ids[:, 0] == tokenizer.cls_id).all()
        assert ((ids == tokenizer.sep_id).sum(axis=1) == len(segments if isinstance(segments, tuple) else [0])).all()
        room = length - 2 if segments is first else length - 3
        wanted = [len(a) if segments is first else len(a) + len(b) for a, b in sides]
        assert (mask.sum(axis=1) - (length - room) == np.minimum(wanted, room)).all()


@functools.cache
def _letters():
    return BertTokenizer([*SPECIALS, "a", "b"])


@pytest.mark.parametrize("lowercase, strip_accents", [(True, True), (False, False), (True, False), (False, True)])
def test_every_character_is_normalised_as_in_the_tokenizers_library(lowercase, strip_accents):
    replacements, dropped_ranges, classes = normalization_rules(lowercase, strip_accents, HUGGING_FACE)
    normalizer = tokenizers.normalizers.BertNormalizer(True, True, strip_accents, lowercase)
    splitter = tokenizers.pre_tokenizers.BertPreTokenizer()
    for code_point in [*range(0x34FF), *range(0x9F00, 0xD800), *range(0xE000, 0x20010), *range(0x2B810, 0x2B930)]:
        character = chr(code_point)
        ours = replacements.get(code_point, character)
        theirs = normalizer.normalize_str(f"a{character}b")[1:-1]
        # They put spaces around ideographs; with us these are words of their own by class.
        assert ours == (theirs.strip(" ") or theirs[:1]), hex(code_point)
        for part in ours.strip():
            is_single = theirs.startswith(" ") or len(splitter.pre_tokenize_str(f"a{part}b")) == 3
            assert classes[ord(part)] == (SINGLE if is_single else OTHER), hex(code_point)
    assert dropped_ranges == ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))


def test_google_differs_where_the_documentation_says():
    theirs, _, their_classes = normalization_rules(True, True, HUGGING_FACE)
    googles, dropped_ranges, classes = normalization_rules(True, True, GOOGLE)
    changed = {c for c in theirs.keys() | googles.keys() if theirs.get(c, chr(c)) != googles.get(c, chr(c))}
    private = {c for c in changed if unicodedata.category(chr(c)) == "Co"}
    assert private == set(range(0xE000, 0xF900)) and dropped_ranges == ()
    # The others are younger than the tables of the tokenizers library, or than Python's.
    assert all(c > 0x5C0 for c in changed) and len(changed - private) < 600
    ideographs = set(range(0x2B820, 0x2B920))
    different = set(np.flatnonzero(their_classes != classes).tolist())
    assert ideographs <= different and len(different - ideographs) < 150


def test_a_text_gives_the_same_alone_and_in_any_batch(pair):
    ours, _ = pair
    generator = np.random.default_rng(7)
    texts = ["".join(generator.choice(CHARACTERS, size=generator.integers(0, 30))) for _ in range(60)]
    together = ours(texts).to_list()
    assert [ours(text).to_list()[0] for text in texts] == together
    assert ours(texts[::-1]).to_list() == together[::-1]
    assert ours(tf.constant(texts[20:])).to_list() == together[20:]
