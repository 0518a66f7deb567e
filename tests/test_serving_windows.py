"""Documents longer than the model: the exported graph against windows cut in Python, one at a time."""

import numpy as np
import pytest
import tensorflow as tf
from serving_models import CLASS_NAMES, small_classifier, small_pack

from keras_bert_kit.serving import check, export_for_serving
from keras_bert_kit.serving.windows import WINDOWS_AT_A_TIME, in_chunks, logits_of_average, stride_for
from keras_bert_kit.text import BertPacker

LONG = "the team wins the game and we love the news report of the bank in space " * 3
TEXTS = ["We love the news", LONG, "", "robot " * 14, "robot " * 15, "market rise " * 100, "a"]
MAX_WINDOWS = 9


@pytest.fixture(scope="module")
def trained():
    return small_classifier(), small_pack(sequence_length=16)


@pytest.fixture(scope="module")
def signatures(trained, tmp_path_factory):
    names = ["serving_default", "embed", "examples"]
    path = tmp_path_factory.mktemp("out") / "long"
    version = export_for_serving(*trained, path, signatures=names, long_text="window", max_windows=MAX_WINDOWS)
    return tf.saved_model.load(str(version)).signatures


def cut(pack, text):
    """Windows of a text as lists of ids, by the definition: 14 tokens, a new window every 7, until the end is there."""
    ids = pack.tokenizer([text])[0].numpy().tolist()
    starts = [0]
    while starts[-1] + 14 < len(ids):
        starts.append(starts[-1] + 7)
    return [[pack.tokenizer.cls_id, *ids[start : start + 14], pack.tokenizer.sep_id] for start in starts[:MAX_WINDOWS]]


def alone(ids):
    """A window without padding, as inputs of an encoder."""
    ids = np.array([ids], np.int32)
    return {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": np.zeros_like(ids)}


def test_probabilities_are_averages_over_windows(trained, signatures):
    model, pack = trained
    answers = {name: value.numpy() for name, value in signatures["serving_default"](text=tf.constant(TEXTS)).items()}
    counts = []
    for row, text in enumerate(TEXTS):
        windows = cut(pack, text)
        counts.append(len(windows))
        expected = np.mean([tf.nn.softmax(model(alone(ids)))[0] for ids in windows], axis=0)
        np.testing.assert_allclose(answers["probabilities"][row], expected, atol=1e-5)
        assert answers["label"][row].decode() == CLASS_NAMES[expected.argmax()]
    assert counts == [1, 6, 1, 1, 2, MAX_WINDOWS, 1]
    np.testing.assert_allclose(tf.nn.softmax(answers["logits"]), answers["probabilities"], atol=1e-6)


def test_embeddings_are_averages_over_windows(trained, signatures):
    model, pack = trained
    answers = signatures["embed"](text=tf.constant(TEXTS))["embeddings"].numpy()
    for row, text in enumerate(TEXTS):
        windows = [model.encoder(alone(ids))["sequence_output"].numpy()[0].mean(axis=0) for ids in cut(pack, text)]
        np.testing.assert_allclose(answers[row], np.mean(windows, axis=0), atol=1e-5)


def test_a_text_that_fits_is_answered_as_without_windows(trained, signatures):
    model, pack = trained
    texts = ["We love the news", "", "robot " * 14]
    answers = signatures["serving_default"](text=tf.constant(texts))
    np.testing.assert_allclose(answers["logits"], model(pack(texts), training=False), atol=1e-5)


def test_batches(signatures):
    serve = signatures["serving_default"]
    assert serve(text=tf.constant([], tf.string))["probabilities"].shape == (0, 3)
    many = serve(text=tf.constant([LONG, "a"] * 40))["logits"].numpy()  # 280 windows: several chunks
    np.testing.assert_allclose(many, np.tile(serve(text=tf.constant([LONG, "a"]))["logits"], (40, 1)), atol=1e-5)


@pytest.mark.parametrize("num_rows", [0, 1, WINDOWS_AT_A_TIME, WINDOWS_AT_A_TIME + 1, 3 * WINDOWS_AT_A_TIME])
def test_chunks(num_rows):
    sizes = []

    @tf.function
    def run(numbers):
        def doubled(rows):
            tf.py_function(lambda size: sizes.append(int(size)), [tf.shape(rows["x"])[0]], [])
            return 2 * rows["x"]

        return in_chunks(doubled, {"x": numbers}, 2)

    numbers = tf.random.stateless_uniform([num_rows, 2], (1, 2))
    np.testing.assert_array_equal(run(numbers), 2 * numbers)
    assert max(sizes) <= WINDOWS_AT_A_TIME and len(sizes) == max(1, -(-num_rows // WINDOWS_AT_A_TIME))


def test_logits_of_average_are_finite():
    """A probability that float32 rounds to 0 in all windows of a text does not become minus infinity."""
    logits = tf.constant([[300.0, 0.0], [400.0, 0.0], [1.0, 2.0]])
    averaged = logits_of_average(logits, tf.constant([0, 0, 1])).numpy()
    assert np.isfinite(averaged).all()
    np.testing.assert_allclose(tf.nn.softmax(averaged), [[1.0, 0.0], tf.nn.softmax([1.0, 2.0])], atol=1e-6)
    np.testing.assert_allclose(averaged[1], [1.0, 2.0], rtol=1e-6)


@pytest.mark.parametrize(("sequence_length", "stride"), [(128, 63), (16, 7), (4, 1), (3, 1)])
def test_stride(sequence_length, stride):
    assert stride_for(BertPacker(small_pack().tokenizer, sequence_length)) == stride
    assert stride_for(BertPacker(small_pack().tokenizer, None, max_sequence_length=sequence_length)) == stride


@pytest.mark.parametrize("sequence_length", [3, 4, 5])
def test_short_models(tmp_path, monkeypatch, sequence_length):
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)
    model, pack = small_classifier(), BertPacker(small_pack().tokenizer, sequence_length)
    version = export_for_serving(model, pack, tmp_path / "model", signatures=["serving_default"], long_text="window")
    answers = tf.saved_model.load(str(version)).signatures["serving_default"](text=tf.constant(TEXTS))
    assert np.isfinite(answers["probabilities"]).all()


def test_half_precision_with_weights_as_variables(tmp_path):
    """The fresh process compares them too."""
    model, pack = small_classifier(dtype="mixed_bfloat16"), small_pack(sequence_length=16)
    names = ["serving_default", "embed"]
    version = export_for_serving(model, pack, tmp_path / "m", signatures=names, long_text="window", freeze=False)
    answers = tf.saved_model.load(str(version)).signatures["serving_default"](text=tf.constant([LONG]))
    assert answers["probabilities"].dtype == tf.float32 and np.isfinite(answers["logits"]).all()


def test_most_windows_of_pairs():
    """The first windows of each text, as they are without a limit."""
    pack = BertPacker(small_pack().tokenizer, 9)
    pairs = (["we", "we love the news", ""], [LONG, "robot", LONG])
    every, most = pack.windows(pairs, 3, 2), pack.windows(pairs, 3, 2, max_windows=4)
    rows = every.rows.numpy()
    number = np.arange(len(rows)) - np.searchsorted(rows, rows)
    for name, expected in every.inputs.items():
        np.testing.assert_array_equal(most.inputs[name], expected.numpy()[number < 4])
    np.testing.assert_array_equal(most.rows, rows[number < 4])
    assert np.bincount(most.rows).tolist() == [4, 1, 4]


def test_many_windows_are_as_many_as_there_are():
    """Numbers near the end of int32 do not turn negative."""
    pack = BertPacker(small_pack().tokenizer, 9)
    every = pack.windows([LONG, ""], 3)
    for most in (len(every.rows) - 1, 10**9, 2**31 - 1):
        found = pack.windows([LONG, ""], 3, max_windows=most)
        np.testing.assert_array_equal(found.inputs["input_word_ids"], every.inputs["input_word_ids"])
    for stride in (7, 10**12):
        np.testing.assert_array_equal(pack.windows([LONG], stride).firsts[:3], [0, 7, 14])


@pytest.mark.parametrize("max_windows", [0, -1, 2**31, 2.0])
def test_numbers_of_windows_that_are_refused(max_windows):
    with pytest.raises(ValueError, match=f"from 1 to 2147483647. Received: max_windows={max_windows}"):
        small_pack().windows(["we"], 3, max_windows=max_windows)
