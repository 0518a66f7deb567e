"""BertPacker: layout, truncation, empty sides, lengths, and the same tensors however it is called."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.text.packer import BertPacker
from keras_bert_kit.text.tokenizer import BertTokenizer

# The special ids are no one's default, so that an assumed id shows.
VOCABULARY = ["the", "##s", "a", "b", "[MASK]", "[PAD]", "[UNK]", "[SEP]", "[CLS]"]
PAD, SEP, CLS = 5, 7, 8


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(VOCABULARY)


def unpacked(packed):
    """Lists of (ids, types) without padding, after checking that padding is where the mask says."""
    ids, mask, types = (np.asarray(packed[f"input_{name}"]) for name in ("word_ids", "mask", "type_ids"))
    assert ids.dtype == mask.dtype == types.dtype == np.int32
    assert (np.diff(mask) <= 0).all() and ((ids != PAD) == mask).all() and (types[mask == 0] == 0).all()
    return [(row[m == 1].tolist(), t[m == 1].tolist()) for row, m, t in zip(ids, mask, types, strict=True)]


def test_one_segment(tokenizer):
    packed = BertPacker(tokenizer, 5)(["the a", "", "as as as"])
    assert unpacked(packed) == [([8, 0, 2, 7], [0] * 4), ([8, 7], [0] * 2), ([8, 2, 1, 2, 7], [0] * 5)]
    assert packed["input_word_ids"].shape == (3, 5)


def test_two_segments(tokenizer):
    packed = BertPacker(tokenizer, 8)((["the", "as as as"], ["b", "bs bs bs"]))
    assert unpacked(packed) == [
        ([8, 0, 7, 3, 7], [0, 0, 0, 1, 1]),
        ([8, 2, 1, 2, 7, 3, 1, 7], [0, 0, 0, 0, 0, 1, 1, 1]),
    ]


def test_empty_sides(tokenizer):  # FC17
    packed = BertPacker(tokenizer, 512)((["", "the", ""], ["a " * 510, "", ""]))
    first, second, third = unpacked(packed)
    assert first == ([CLS, SEP, *[2] * 509, SEP], [0, 0, *[1] * 510])
    assert second == ([CLS, 0, SEP, SEP], [0, 0, 0, 1])
    assert third == ([CLS, SEP, SEP], [0, 0, 1])


def test_length_of_the_longest(tokenizer):
    pack = BertPacker(tokenizer, None, max_sequence_length=6)
    assert pack(["a", "a b"])["input_word_ids"].shape == (2, 4)
    assert pack(["a " * 9, ""])["input_word_ids"].shape == (2, 6)
    assert pack((["a"], ["b"]))["input_word_ids"].shape == (1, 5)
    assert pack([])["input_word_ids"].shape[0] == 0


def test_longest_first_is_googles_rule(tokenizer):
    def google(a, b, room):
        while a + b > room:
            a, b = (a - 1, b) if a > b else (a, b - 1)
        return a, b

    cases = [(a, b) for a in range(9) for b in range(9)]
    texts = ["a " * a for a, _ in cases], ["b " * b for _, b in cases]
    for length in range(3, 15):
        rows = unpacked(BertPacker(tokenizer, length)(texts))
        counts = [(ids.count(2), ids.count(3)) for ids, _ in rows]
        assert counts == [google(a, b, length - 3) for a, b in cases], length


def test_longest_first_on_golden_lengths(shared, tokenizer):
    golden = json.loads((shared / "golden/generated_pretraining_instances.json").read_text())
    for case in golden["truncate_seq_pair"]:
        a, b = case["len_a"], case["len_b"]
        ((ids, _),) = unpacked(BertPacker(tokenizer, case["max_num_tokens"] + 3)((["a " * a], ["b " * b])))
        assert (ids.count(2), ids.count(3)) == (len(case["tokens_a"]), len(case["tokens_b"]))


def test_only_first_and_only_second(tokenizer):
    cases = [(a, b) for a in range(9) for b in range(9)]
    texts = ["a " * a for a, _ in cases], ["b " * b for _, b in cases]
    for length in range(3, 15):
        room = length - 3
        for truncation in ("only_first", "only_second"):
            rows = unpacked(BertPacker(tokenizer, length, truncation=truncation)(texts))
            for (a, b), (ids, _) in zip(cases, rows, strict=True):
                gives, stays = (a, b) if truncation == "only_first" else (b, a)
                stays = min(stays, room)
                gives = min(gives, room - stays)
                expected = (gives, stays) if truncation == "only_first" else (stays, gives)
                assert (ids.count(2), ids.count(3)) == expected


def test_windows_cover_the_document(tokenizer):
    documents = ["", "a", "a b a b a", "a b " * 20]
    for stride in (1, 2, 3, 50):
        windows = BertPacker(tokenizer, 7).windows(documents, stride)
        ids = unpacked(windows.inputs)
        for row, document in enumerate(documents):
            tokens = tokenizer(document).to_list()[0]
            mine = [i for i in range(len(ids)) if windows.rows[i] == row]
            assert [int(windows.firsts[i]) for i in mine] == [k * min(stride, 5) for k in range(len(mine))]
            covered = set()
            for i in mine:
                first, length, offset = (int(x[i]) for x in (windows.firsts, windows.lengths, windows.offsets))
                assert ids[i][0] == [CLS, *tokens[first : first + 5], SEP]
                assert ids[i][0][offset : offset + length] == tokens[first : first + length]
                covered |= set(range(first, first + length))
            assert covered == set(range(len(tokens)))


def test_windows_with_a_question_in_a_dataset(tokenizer):
    pack = BertPacker(tokenizer, None, max_sequence_length=9)
    texts = ["the the the", ""], ["a b a b a", "b b"]
    windows = pack.windows(texts, stride=2, max_first_length=2)
    assert unpacked(windows.inputs) == [
        ([8, 0, 0, 7, 2, 3, 2, 3, 7], [0] * 4 + [1] * 5),
        ([8, 0, 0, 7, 2, 3, 2, 7], [0] * 4 + [1] * 4),
        ([8, 7, 3, 3, 7], [0, 0, 1, 1, 1]),
    ]
    assert windows.offsets.numpy().tolist() == [4, 4, 2]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(2).map(lambda a, b: pack.windows((a, b), 2, 2))
    again = next(iter(dataset))
    assert_same(again.inputs, windows.inputs)
    np.testing.assert_array_equal(again.rows, [0, 0, 1])
    with pytest.raises(ValueError, match="stride must be at least 1.*stride=0"):
        pack.windows(texts, stride=0)
    with pytest.raises(ValueError, match="max_first_length=6, room for 6"):
        pack.windows(texts, max_first_length=6)


@pytest.mark.parametrize("run", range(5))
def test_windows_are_those_of_run_squad(shared, run):
    run = json.loads((shared / "golden/generated_squad_features.json").read_text())["runs"][run]
    config, features = run["config"], run["features"]
    squad = json.loads((shared / "data" / config["file"]).read_text())["data"]
    paragraphs = [paragraph for article in squad for paragraph in article["paragraphs"]]
    examples = {qa["id"]: (qa["question"], p["context"]) for p in paragraphs for qa in p["qas"]}
    vocabulary = shared / "data/vocab" / config["vocab"]
    pack = BertPacker(
        BertTokenizer.from_vocab_file(vocabulary, config["do_lower_case"], reference="google"),
        config["max_seq_length"],
    )
    names = list(dict.fromkeys(feature["qas_id"] for feature in features))
    questions, contexts = zip(*(examples[name] for name in names), strict=True)
    windows = pack.windows((list(questions), list(contexts)), config["doc_stride"], config["max_query_length"])
    tokens = np.array(pack.tokenizer.vocabulary)[windows.inputs["input_word_ids"].numpy()]
    lengths = windows.inputs["input_mask"].numpy().sum(axis=1)
    assert len(tokens) == len(features)
    for i, feature in enumerate(features):
        assert names[windows.rows[i]] == feature["qas_id"]
        assert tokens[i, : lengths[i]].tolist() == feature["tokens"]
        assert windows.offsets[i] == feature["n_query"]


@pytest.fixture
def texts():
    return tf.constant(["the a", "", "as as as as"]), tf.constant(["b", "b b", "bs bs"])


def assert_same(packed, expected):
    assert sorted(packed) == sorted(expected)
    for name in expected:
        np.testing.assert_array_equal(packed[name], expected[name])


@pytest.mark.parametrize("pair", [False, True])
def test_every_way_of_calling_gives_the_same(tokenizer, texts, pair, tmp_path):
    pack = BertPacker(tokenizer, 9)
    texts = texts if pair else texts[0]
    expected = pack(texts)
    assert_same(tf.function(pack)(texts), expected)

    dataset = tf.data.Dataset.from_tensor_slices((texts,))
    whole = next(iter(dataset.map(lambda x: pack(x)).unbatch().batch(3)))
    assert_same(whole, expected)
    batches = dataset.batch(3).map(lambda x: pack(x))
    assert batches.element_spec["input_mask"].shape == (None, 9)
    assert_same(next(iter(batches)), expected)

    inputs = (keras.Input((), dtype="string", name="a"), keras.Input((), dtype="string", name="b"))
    inputs = inputs if pair else inputs[0]
    outputs = pack(inputs)
    assert outputs["input_word_ids"].shape == (None, 9) and outputs["input_word_ids"].dtype == "int32"
    model = keras.Model(inputs, outputs)
    assert_same(model(texts), expected)
    assert_same(model.predict(texts, verbose=0), expected)

    model.save(tmp_path / "model.keras")
    assert_same(keras.models.load_model(tmp_path / "model.keras")(texts), expected)


def test_exported_beside_a_module(tokenizer, texts, tmp_path):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.pack = BertPacker(tokenizer, 9)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, texts):
            return self.pack(texts)

    module = Module()
    tf.saved_model.save(module, str(tmp_path / "saved"))
    assert_same(tf.saved_model.load(str(tmp_path / "saved"))(texts[0]), module(texts[0]))


def test_static_shapes_feed_a_compiled_model(tokenizer):
    @tf.function(jit_compile=True)
    def count(packed):
        return tf.reduce_sum(packed["input_mask"], axis=1)

    @tf.function(input_signature=[tf.TensorSpec([3], tf.string)])
    def run(texts):
        packed = BertPacker(tokenizer, 9)(texts)
        assert all(tensor.shape == (3, 9) for tensor in packed.values())
        return count(packed)

    assert run(["the a", "", "a " * 20]).numpy().tolist() == [4, 2, 9]


def test_the_tables_of_the_english_vocabulary_are_small(shared, tmp_path):
    module = tf.Module()
    module.pack = BertPacker(BertTokenizer.from_vocab_file(shared / "data/vocab/uncased_vocab.txt"), 9)
    signature = [tf.TensorSpec([None], tf.string)]
    module.run = tf.function(lambda texts: module.pack(texts), input_signature=signature)
    tf.saved_model.save(module, str(tmp_path / "saved"), signatures=module.run)
    assert (tmp_path / "saved/saved_model.pb").stat().st_size < 3_000_000


def test_a_saved_model_loads_in_a_fresh_process(tokenizer, texts, tmp_path):
    inputs = keras.Input((), dtype="string")
    model = keras.Model(inputs, BertPacker(tokenizer, 9)(inputs))
    model.save(tmp_path / "model.keras")
    program = (
        "import sys, keras, tensorflow as tf\n"
        "import keras_bert_kit.text.packer\n"
        "model = keras.models.load_model(sys.argv[1])\n"
        "print(model(tf.constant(['the a', '', 'as as as as']))['input_word_ids'].numpy().tolist())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.keras")]
    run = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    )
    assert json.loads(run.stdout.splitlines()[-1]) == model(texts[0])["input_word_ids"].numpy().tolist()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"sequence_length": 513}, "positions that the encoder has.*sequence_length=513, max_sequence_length=512"),
        ({"sequence_length": 2}, "sequence_length must be an int of at least 3.*sequence_length=2"),
        ({"sequence_length": 8.0}, "at least 3.*sequence_length=8.0"),
        ({"max_sequence_length": None}, "max_sequence_length must be an int.*None"),
        ({"truncation": "random"}, "truncation must be one of.*'random'"),
    ],
)
def test_bad_arguments_are_refused(tokenizer, arguments, message):  # FC31
    with pytest.raises(ValueError, match=message):
        BertPacker(tokenizer, **arguments)
    BertPacker(tokenizer, sequence_length=512)


def test_what_is_no_tokenizer_is_refused(tokenizer):
    with pytest.raises(ValueError, match=r"Received: a str. Give BertTokenizer.from_vocab_file\(path\)"):
        BertPacker("vocab.txt")
    with pytest.raises(ValueError, match="Received: a SimpleNamespace. Give .tokenizer of that"):
        BertPacker(SimpleNamespace(tokenizer=tokenizer))


@pytest.mark.parametrize(
    "texts, message",
    [
        ([None], "None .*at position 0"),
        ((["a"], [None]), r"texts\[1\] must be strings.*position 0"),
        (("a", "b", "c"), "tuple of 3"),
        ((["a"], ["a", "b"]), "1 and 2 texts"),
        (np.array([["a"]]), r"shape=\(1, 1\)"),
    ],
)
def test_bad_texts_are_refused(tokenizer, texts, message):
    with pytest.raises(ValueError, match=message):
        BertPacker(tokenizer, 8)(texts)


def test_segments_of_different_batch_size_are_refused_in_a_graph(tokenizer):
    signature = [tf.TensorSpec([None], tf.string)] * 2
    pack = tf.function(lambda a, b: BertPacker(tokenizer, 8)((a, b)), input_signature=signature)
    with pytest.raises(tf.errors.InvalidArgumentError, match="one text an example"):
        pack(tf.constant(["a"]), tf.constant(["a", "b"]))
