"""`reference="tf_hub"`: the ids of TF-Hub's preprocessing SavedModels, which normalise in their own way."""

import json
import random
import unicodedata

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_bert_kit as kbk

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["fi", "ne", "strasse", "οδος", "1", "2", "⁄", "ｱ", "ア", "é", "e", "a", "ss", "\u2028", "\ue000", "صلى", "i"]
VOCABULARY = [*SPECIALS, *WORDS, *(f"##{word}" for word in WORDS), "!", "/", "中", "##\u0307"]


def make(**options):
    return kbk.BertTokenizer(VOCABULARY, **{"reference": "tf_hub", **options})


def tokens(tokenizer, text):
    return [VOCABULARY[i] for i in tokenizer([text]).to_list()[0]]


@pytest.mark.parametrize(
    ("text", "uncased", "cased"),
    [
        ("ﬁne", ["fi", "##ne"], ["[UNK]"]),
        ("½", ["1", "##⁄", "##2"], ["[UNK]"]),
        ("Straße", ["strasse"], ["[UNK]"]),
        ("ΟΔΟΣ", ["[UNK]"], ["[UNK]"]),  # folded to "οδοσ", without a final sigma
        ("ｱ", ["ア"], ["ｱ"]),
        ("é", ["e"], ["é"]),
        ("a\u00ada\u200da", ["a", "##a", "##a"], ["a", "a", "a"]),  # dropped by case folding; controls are spaces
        ("a\0a\x07a", ["a", "a", "a"], ["a", "a", "a"]),
        ("a\u00a0a", ["a", "a"], ["[UNK]"]),
        ("a\u2028a", ["a", "##\u2028", "##a"], ["a", "##\u2028", "##a"]),
        ("\ue000", ["\ue000"], ["\ue000"]),
        ("İ", ["i"], ["[UNK]"]),
        ("a!中/a", ["a", "!", "中", "/", "a"], ["a", "!", "中", "/", "a"]),
        ("[MASK]", ["[UNK]"] * 3, ["[UNK]"] * 3),
        ("ﷺ", ["صلى", "[UNK]", "[UNK]", "[UNK]"], ["[UNK]"]),
    ],
)
def test_what_becomes_of_a_text(text, uncased, cased):
    assert tokens(make(), text) == uncased
    assert tokens(make(lowercase=False), text) == cased


def test_words_are_measured_in_bytes():
    assert make().max_characters_per_word == 100
    for word, longest in (("a", 100), ("ア", 33), ("ｱ", 33)):
        assert tokens(make(), word * longest)[0] != "[UNK]"
        assert tokens(make(), word * (longest + 1)) == ["[UNK]"]
    assert tokens(make(max_characters_per_word=2), "aa aaa é") == ["a", "##a", "[UNK]", "e"]


def test_offsets_are_those_of_the_text():
    ids, starts, ends = make().tokenize_with_offsets(["½ Straße\u00ad ﬁne"])
    assert [VOCABULARY[i] for i in ids.to_list()[0]] == ["1", "##⁄", "##2", "strasse", "fi", "##ne"]
    assert starts.to_list() == [[0, 0, 0, 2, 10, 11]]
    assert ends.to_list() == [[1, 1, 1, 8, 11, 13]]


def test_accents_cannot_be_kept():
    make(strip_accents=True), make(lowercase=False, strip_accents=False)
    with pytest.raises(ValueError, match="strips accents where it lower-cases.*strip_accents=False"):
        make(strip_accents=False)


def test_the_reference_is_kept_in_configs_and_in_exported_graphs(tmp_path):
    pack = kbk.BertPacker(make(), 16)
    again = kbk.BertPacker.from_config(json.loads(json.dumps(pack.get_config())))
    assert again.tokenizer.reference == "tf_hub"
    texts = keras.Input((), dtype="string")
    keras.Model(texts, pack(texts)).save(tmp_path / "m.keras")
    module = tf.Module()
    module.pack = again
    module.run = tf.function(again, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path / "m"))
    written = tf.constant(["½ Straße ﬁne", "ｱ" * 34])
    for other in (
        keras.saving.load_model(tmp_path / "m.keras")(written),
        tf.saved_model.load(str(tmp_path / "m")).run(written),
    ):
        for name, expected in pack(written).items():
            np.testing.assert_array_equal(other[name], expected)


def words_of(text):
    """The words of an uncased text, the SavedModel's four steps on the whole text in plain Python."""
    before = None
    text = "".join(character for character in text if character not in "\u00ad\u200b\u200d\u2060\ufe0f\u034f")
    while text != before:
        before = text
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Cf") else c for c in text)
    signs = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    alone = [c in signs or unicodedata.category(c)[0] == "P" or "\u4e00" <= c <= "\u9fff" for c in text]
    return "".join(f" {c} " if single else c for c, single in zip(text, alone, strict=True)).split(" ")


RANGES = [(0, 0x180), (0x300, 0x34F), (0x370, 0x400), (0x1E00, 0x2000), (0x2000, 0x2010), (0x2100, 0x2190)]
RANGES += [(0x3000, 0x3100), (0x4E00, 0x4E10), (0xAC00, 0xAC20), (0xFB00, 0xFB07), (0xFF00, 0xFF70)]
CHARACTERS = [
    chr(code_point)
    for first, last in RANGES
    for code_point in range(first, last)
    if code_point not in range(0x200C, 0x2010) and unicodedata.category(chr(code_point)) != "Cn"
]


LETTERS = sorted({part for character in CHARACTERS for word in words_of(character) for part in word})


@pytest.fixture(scope="module")
def spelling():
    """A tokenizer that has every letter, so that each word is spelled."""
    return kbk.BertTokenizer([*SPECIALS, *LETTERS, *(f"##{letter}" for letter in LETTERS)], reference="tf_hub")


@hypothesis.given(texts=st.lists(st.text(st.sampled_from(CHARACTERS), max_size=20), min_size=1, max_size=4))
@hypothesis.settings(max_examples=150, deadline=None, derandomize=True)
def test_ids_of_the_algorithm_on_whole_texts(spelling, texts):
    ids = {token: i for i, token in enumerate(spelling.vocabulary)}
    for text, found in zip(texts, spelling(texts).to_list(), strict=True):
        expected = []
        for word in filter(None, words_of(text)):
            too_long = len(word.encode()) > 100
            expected += ["[UNK]"] if too_long else [word[0], *(f"##{letter}" for letter in word[1:])]
        assert found == [ids[token] for token in expected], text


def test_ids_of_the_saved_model(shared):
    golden = json.loads((shared / "fixtures/hub/goldens_preprocess.json").read_text(encoding="utf-8"))
    vocabulary = shared / "fixtures/hub/preprocess_v3/assets/uncased_vocab_5000.txt"
    pack = kbk.BertPacker(kbk.BertTokenizer.from_vocab_file(vocabulary, reference="tf_hub"), 128)
    np.testing.assert_array_equal(pack(golden["texts"])["input_word_ids"], golden["input_word_ids"])


@pytest.mark.peers
def test_ids_of_the_saved_model_on_every_character(shared):
    pytest.importorskip("tensorflow_text")
    folder = shared / "fixtures/hub/preprocess_v3"
    theirs = tf.saved_model.load(str(folder))
    vocabulary = folder / "assets/uncased_vocab_5000.txt"
    pack = kbk.BertPacker(kbk.BertTokenizer.from_vocab_file(vocabulary, reference="tf_hub"), 128)
    code_points = [code for code in range(0x20000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    for i in range(0, len(code_points), 20_000):
        texts = [f"a{chr(code)}b {chr(code)}" for code in code_points[i : i + 20_000]]
        np.testing.assert_array_equal(pack(texts)["input_word_ids"], theirs(tf.constant(texts))["input_word_ids"])


@pytest.mark.peers
@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_of_tensorflow_texts_tokenizer(tmp_path, lowercase):
    tensorflow_text = pytest.importorskip("tensorflow_text")
    rng = random.Random(2)
    code_points = [code for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    letters = [chr(code) for code in code_points if code < 0x3000 and code % 2 and chr(code).isprintable()]
    letters = [letter for letter in dict.fromkeys(letters) if letter.strip()]
    vocabulary = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters), "the", "##ing"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    theirs = tensorflow_text.BertTokenizer(str(tmp_path / "vocab.txt"), lower_case=lowercase, token_out_type=tf.int32)
    ours = kbk.BertTokenizer(vocabulary, lowercase, reference="tf_hub")
    parts = [
        lambda: chr(rng.choice(code_points)),
        lambda: rng.choice(letters),
        lambda: rng.choice([" ", "the", "\xa0"]),
    ]
    texts = ["".join(rng.choice(parts)() for _ in range(rng.randrange(1, 30))) for _ in range(3000)]
    expected = theirs.tokenize(texts).merge_dims(-2, -1).to_list()
    for text, one, two in zip(texts, expected, ours(texts).to_list(), strict=True):
        assert one == two, text
