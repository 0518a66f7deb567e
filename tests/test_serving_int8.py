"""Export in int8: the product, the model of it, the export, and what is refused."""

import json
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from serving_models import CLASS_NAMES, small_classifier, small_pack
from tensorflow.core.protobuf import saved_model_pb2

from keras_bert_kit.errors import ExportError
from keras_bert_kit.serving import Predictor, calibration, check, export, export_for_serving
from keras_bert_kit.serving.export import KIT_FILE
from keras_bert_kit.serving.inspection import inspect_export
from keras_bert_kit.serving.int8 import OP, ROWS, Dense, Int8Dense, quantize
from keras_bert_kit.serving.ops import is_core_op
from keras_bert_kit.serving.signatures import SIGNATURES, Signatures
from keras_bert_kit.text import BertPacker

NO_KERNEL = f"TensorFlow has no kernel for {OP} here (builds without oneDNN lack it)"
needs_kernel = pytest.mark.skipif(not calibration.has_kernel(), reason=NO_KERNEL)

WORDS = "we love the news team wins game market robot in a of café 中 2.7 ! ? , good".split()
SIZES = {"hidden_size": 32, "intermediate_size": 64, "initializer_range": 0.2}


def some_texts(count, longest=14, seed=0):
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, longest))) for _ in range(count)]


TEXTS = some_texts(120)


def probabilities_of(model, pack, texts):
    return tf.nn.softmax(model(pack(texts), training=False)).numpy()


@pytest.fixture(scope="module")
def trained():
    return small_classifier(**SIZES), small_pack()


@pytest.fixture(scope="module")
def version(trained, tmp_path_factory):
    if not calibration.has_kernel():
        pytest.skip(NO_KERNEL)
    model, pack = trained
    before = [variable.numpy() for variable in model.variables]
    path = tmp_path_factory.mktemp("out") / "news"
    version = export_for_serving(
        model, pack, path, signatures=SIGNATURES, long_text="window", quantize="int8", calibration_texts=TEXTS
    )
    for one, variable in zip(before, model.variables, strict=True):
        np.testing.assert_array_equal(one, variable, err_msg=variable.path)  # the trained model is what it was
    return version


@pytest.fixture(scope="module")
def signatures(version):
    return tf.saved_model.load(str(version)).signatures


def in_graph(function, *arguments):
    return tf.function(function, autograph=False)(*arguments).numpy()


@needs_kernel
@pytest.mark.parametrize("rows", [0, 1, 7, 64])
def test_the_product_is_that_of_integers(rows):
    random = np.random.default_rng(rows)
    x, kernel, bias = (random.normal(size=size).astype(np.float32) for size in ((rows, 24), (24, 40), 40))
    added = tf.constant(random.normal(size=(rows, 40)), tf.float32)
    largest, columns = np.float32(2.0), np.abs(kernel).max(axis=0)
    in_steps = np.round(np.clip(x / largest, -1, 1) * 127).astype(int)  # the normal numbers above 2 are cut
    expected = in_steps @ np.round(kernel / columns * 127).astype(int) * (largest * columns / 127**2) + bias
    dense = Int8Dense(Dense(kernel, bias), largest)
    np.testing.assert_allclose(in_graph(dense, tf.constant(x)), expected, atol=1e-5)
    np.testing.assert_allclose(
        in_graph(lambda x: dense(x, add=added), tf.constant(x)), expected + added.numpy(), atol=1e-5
    )
    gelu = tf.nn.gelu(expected.astype(np.float32), approximate=False).numpy()
    np.testing.assert_allclose(in_graph(lambda x: dense(x, activation="gelu_erf"), tf.constant(x)), gelu, atol=1e-5)
    settings = {"activation": "gelu_erf", "output": tf.qint8, "largest_output": 3.0}
    steps = in_graph(lambda x: tf.cast(tf.bitcast(dense(x, **settings), tf.int8), tf.int32), tf.constant(x))
    assert np.abs(steps - np.clip(gelu / 3.0 * 127, -128, 127)).max(initial=0) <= 0.51  # rounded


def test_quantize_rounds_and_cuts():
    x = tf.constant([[0.0, 1.0, -1.0, 5.0, -5.0, 0.49 / 127, 0.51 / 127]])
    steps = tf.bitcast(quantize(x, 1.0), tf.int8).numpy().tolist()
    assert steps == [[0, 127, -127, 127, -127, 0, 1]]


def test_numbers_of_rows_are_few_and_near():
    sizes = np.array(ROWS)
    for tokens in (1, 8, 9, 53, 129, 1700, 4096):
        found = sizes[np.searchsorted(sizes, tokens)]
        assert tokens <= found <= max(tokens + 7, tokens * 17 / 16)
    assert len(sizes[sizes <= 128]) == 17


def in_int8(model, pack):
    """A function from texts to logits, of the same weights in int8."""
    pack = BertPacker(pack.tokenizer, None, max_sequence_length=32)
    classifier, weights = calibration.int8_classifier(model, pack, calibration.halves(TEXTS)[0])

    @tf.function(autograph=False)
    def logits(inputs):
        with calibration.with_weights(weights):
            return classifier(inputs, training=False)

    return lambda texts: logits(pack(texts)).numpy()


@needs_kernel
@pytest.mark.parametrize(("activation", "dtype"), [("gelu_erf", "mixed_bfloat16"), ("gelu_tanh", "float32")])
def test_the_model_is_the_trained_one_but_for_rounding(activation, dtype):
    model, pack = small_classifier(hidden_act=activation, dtype=dtype, **SIZES), small_pack()
    exact = model(pack(TEXTS)).numpy()
    error = np.abs(in_int8(model, pack)(TEXTS) - exact) / np.abs(exact).max()
    assert 1e-4 < error.max() < 0.2 and error.mean() < 0.02
    assert np.ptp(exact, axis=0).min() > 0.3 * np.abs(exact).max(), "the same to every text would test nothing"


def test_answers_are_those_of_the_trained_model(trained, signatures):
    texts = some_texts(64, longest=6, seed=1)  # none has two windows
    answers = signatures["serving_default"](text=tf.constant(texts))
    expected = probabilities_of(*trained, texts)
    differences = np.abs(answers["probabilities"] - expected)
    assert 1e-5 < differences.max() < 0.2 and differences.mean() < 0.02
    assert [label.decode() for label in answers["label"].numpy()] == [
        CLASS_NAMES[row] for row in answers["probabilities"].numpy().argmax(axis=-1)
    ]
    pairs = signatures["pairs"](text_a=tf.constant(texts), text_b=tf.constant(texts[::-1]))
    assert np.abs(pairs["probabilities"] - probabilities_of(*trained, (texts, texts[::-1]))).mean() < 0.02
    ids = signatures["token_ids"](**trained[1](texts))
    np.testing.assert_allclose(ids["logits"], answers["logits"], atol=1e-5)
    hidden = signatures["embed"](text=tf.constant(texts))["embeddings"].numpy()
    exact = trained[0].encoder(BertPacker(trained[1].tokenizer, None, max_sequence_length=32)(texts), only="tokens")
    lengths = [len(row) + 2 for row in trained[1].tokenizer(texts)]
    rows = zip(exact["sequence_output"].numpy(), lengths, strict=True)
    exact = np.stack([one[:length].mean(axis=0) for one, length in rows])
    assert np.abs(hidden - exact).max() < 0.1 * np.abs(exact).max()


@pytest.mark.parametrize("count", [0, 1, 7, 40])
def test_a_row_does_not_depend_on_its_batch(signatures, count):
    texts = some_texts(count, longest=60, seed=2)  # the longer ones are several windows
    together = signatures["serving_default"](text=tf.constant(texts, tf.string))
    assert together["probabilities"].shape == (count, 3)
    for row, text in enumerate(texts[:7]):
        alone = signatures["serving_default"](text=tf.constant([text]))
        np.testing.assert_allclose(together["probabilities"][row], alone["probabilities"][0], atol=1e-5)


def test_windows_of_a_long_text_are_averaged(trained, signatures):
    text = " ".join(some_texts(20, seed=3))
    windows = BertPacker(trained[1].tokenizer, None, max_sequence_length=16).windows([text], 7, max_windows=64)
    expected = tf.nn.softmax(trained[0](windows.inputs)).numpy().mean(axis=0)
    answer = signatures["serving_default"](text=tf.constant([text]))["probabilities"][0]
    np.testing.assert_allclose(answer, expected, atol=0.05)


def test_long_texts_are_compared_in_windows(trained, monkeypatch):
    """What the version is asked is what the trained model is asked: the same windows, averaged."""
    model, pack = trained[0], BertPacker(trained[1].tokenizer, None, max_sequence_length=16)
    texts = np.array([text.encode() for text in some_texts(40, longest=80, seed=4)], object)
    windows = pack.windows(texts, 7, max_windows=64)
    rows, every = windows.rows.numpy(), tf.nn.softmax(model(windows.inputs)).numpy()
    averages = np.stack([every[rows == row].mean(axis=0) for row in range(40)])
    answers = [{"probabilities": averages[first : first + 32].tolist()} for first in (0, 32)]
    monkeypatch.setattr(check, "fresh_answers", lambda *args: {"answers": {"session": answers}})
    found = export._compare(None, Signatures(model, pack, [], {}, "window"), [], "int8", texts)
    assert found.texts == 40 and found.labels_changed == 0 and found.largest_difference < 1e-5


def test_what_is_written_says_what_it_is(version):
    kit_file = json.loads((version / KIT_FILE).read_text(encoding="utf-8"))
    assert [op for op in kit_file["ops"] if not is_core_op(op)] == [OP]
    assert kit_file["quantize"] == "int8" and kit_file["weights"] == "constants" and kit_file["dtype"] == "float32"
    found = calibration.Int8Comparison(**kit_file["int8"])
    assert found.texts == len(set(TEXTS)) // 2 and found.labels_changed <= 1
    assert 0 < found.mean_difference < 0.02 and found.mean_difference < found.largest_difference < 0.2
    readme = (version.parent / "README.md").read_text(encoding="utf-8")
    assert OP in readme and str(found) in readme and "@" not in readme
    metadata = tf.saved_model.load(str(version)).signatures["metadata"](request=tf.constant(["?"]))
    assert metadata["requires"].numpy().tolist() == [calibration.REQUIREMENT.encode()]


@pytest.mark.slow
def test_check_export_and_predictor_take_it(trained, version):
    inspection = inspect_export(version, *trained)
    assert inspection.difference_between_processes < 1e-3 and 1e-5 < inspection.difference_to_model < 0.02
    assert Predictor(version).predict("We love the news")[0].label in CLASS_NAMES


def test_a_process_with_tensorflow_alone_answers(version, signatures):
    question = calibration.questions_of(calibration.halves(TEXTS)[1])[:1]
    answers = check.fresh_answers(version, question)["answers"]
    expected = signatures["serving_default"](text=tf.constant(question[0].inputs["text"]))["probabilities"]
    for (answer,) in answers.values():
        np.testing.assert_allclose(answer["probabilities"], expected, atol=1e-3)


def test_the_c_library_answers(version, signatures, c_program):
    """As a server has it: no Python, no other library."""
    graph = saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes()).meta_graphs[0]
    signature = graph.signature_def["serving_default"]
    text, probabilities = signature.inputs["text"].name, signature.outputs["probabilities"].name
    words = ["input", text.split(":")[0], "text=We love the news", "output", *probabilities.split(":")]
    ran = subprocess.run([c_program, version, *words], capture_output=True, encoding="utf-8", check=True)
    expected = signatures["serving_default"](text=tf.constant(["We love the news"]))["probabilities"][0]
    np.testing.assert_allclose([float(line) for line in ran.stdout.splitlines()], expected, atol=1e-3)


@needs_kernel
def test_a_model_that_int8_spoils_is_refused(tmp_path, monkeypatch):
    """With weights so large that nearly nothing is left of differences; the folder that is served stays as it was."""
    model, pack = small_classifier(**SIZES), small_pack()
    (tmp_path / "news").mkdir()
    monkeypatch.setattr(calibration, "Int8Dense", lambda dense, largest: Int8Dense(dense, largest / 50))
    monkeypatch.setattr(check, "TOLERANCE_OF_INT8", 1.0)
    with pytest.raises(ExportError, match=r"may change 1 of \d\d labels, .*Received: int8 changed the label of \d"):
        export_for_serving(model, pack, tmp_path / "news", quantize="int8", calibration_texts=TEXTS)
    assert list((tmp_path / "news").iterdir()) == []


def test_comparison():
    expected = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], np.float32)
    same = calibration.compare(expected, [{"probabilities": expected[:2].tolist()}, {"probabilities": [[0.2, 0.8]]}])
    assert same == calibration.Int8Comparison(3, 0, 0.0, 0.0)
    one_changed = [{"probabilities": [[0.9, 0.1], [0.49, 0.51], [0.2, 0.8]]}]
    found = calibration.compare(expected, one_changed)
    assert (found.labels_changed, round(found.largest_difference, 3)) == (1, 0.11)
    with pytest.raises(ExportError, match="may change 1 of 3 labels, .* changed the label of 2 of 3 texts"):
        calibration.compare(expected, [{"probabilities": [[0.9, 0.1], [0.49, 0.51], [0.6, 0.4]]}])
    with pytest.raises(ExportError, match=r"probabilities by 0.05 in the mean. Received: .* by 0.2 in the mean"):
        calibration.compare(expected, [{"probabilities": [[0.7, 0.3], [0.8, 0.2], [0.4, 0.6]]}])
    with pytest.raises(ExportError, match="by nan in the mean"):
        calibration.compare(expected, [{"probabilities": [[np.nan, 0.3], [0.8, 0.2], [0.4, 0.6]]}])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quantize": "int8"}, "needs calibration_texts: 32 different ones at least.* Received: 0"),
        ({"quantize": "int8", "calibration_texts": ["the news"] * 100}, "Received: 1"),
        ({"quantize": "int8", "calibration_texts": TEXTS, "freeze": False}, "constants .* Received: freeze=False"),
        ({"quantize": "int4", "calibration_texts": TEXTS}, "quantize must be None or 'int8'. Received: 'int4'"),
        ({"calibration_texts": TEXTS}, "calibration_texts are for quantize='int8'. Received: quantize=None"),
    ],
)
def test_settings_that_are_refused(trained, tmp_path, settings, message):
    with pytest.raises(ExportError, match=message):
        export_for_serving(*trained, tmp_path / "model", **settings)
    assert list(tmp_path.iterdir()) == []


def test_other_activations_are_refused(tmp_path):
    model = small_classifier(hidden_act="relu", **SIZES)
    with pytest.raises(ExportError, match="the activations gelu_erf, gelu_tanh. Received: a model with relu"):
        export_for_serving(model, small_pack(), tmp_path / "model", quantize="int8", calibration_texts=TEXTS)
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_the_kernel_is_told(trained, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert_kit.serving.int8.OP", "_NoSuchMatMul")
    assert not calibration.has_kernel()
    with pytest.raises(ExportError, match="int8 needs a TensorFlow .* Received: TensorFlow 2.* without it"):
        export_for_serving(*trained, tmp_path / "model", quantize="int8", calibration_texts=TEXTS)
    assert list(tmp_path.iterdir()) == []
