"""Predictor: every form of texts, order, batches, versions, and damaged folders."""

import itertools
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from serving_models import CLASS_NAMES, small_classifier, small_pack

from keras_bert_kit.errors import ExportError
from keras_bert_kit.serving import Prediction, Predictor, check, export, export_for_serving


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # tested in test_serving_export.py
        return export_for_serving(small_classifier(), small_pack(), tmp_path_factory.mktemp("模型") / "news")


@pytest.fixture(scope="module")
def predictor(version):
    return Predictor(version)


def rows(predictions):
    return np.array([list(prediction.probabilities.values()) for prediction in predictions])


def test_prediction(predictor):
    (prediction,) = predictor.predict(["we love the news"])
    assert isinstance(prediction, Prediction)
    assert list(prediction.probabilities) == list(CLASS_NAMES) == list(predictor.class_names)
    assert (
        prediction.probability == max(prediction.probabilities.values()) == prediction.probabilities[prediction.label]
    )
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-6)
    model, pack = small_classifier(), small_pack()
    expected = tf.nn.softmax(model(pack(["we love the news"]), training=False))
    np.testing.assert_allclose(rows([prediction]), expected, atol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "news",
        b"news",
        ["news"],
        np.array("news"),
        np.array(["news"]),
        np.array([b"news"]),
        np.array(["news"], object),
        tf.constant("news"),
        tf.constant(["news"]),
        (text for text in ["news"]),
    ],
    ids=["str", "bytes", "list", "0-d", "fixed", "fixed bytes", "object", "scalar", "tensor", "generator"],
)
def test_forms_of_one_text(predictor, text):
    """FC45: a bare string is one text, not one per letter, and all forms with one axis give the same."""
    np.testing.assert_allclose(rows(predictor.predict(text)), rows(predictor.predict(["news"])), atol=1e-6)


@pytest.mark.parametrize("texts", [np.array([["news"]]), tf.constant([["news"]]), [["news"]]])
def test_two_axes_are_refused(predictor, texts):
    with pytest.raises(ValueError, match="must be (of rank 1|strings)"):
        predictor.predict(texts)


def test_empty_texts(predictor):
    """FC47: empty, blank and invisible texts are [CLS] [SEP], and disturb no other row."""
    answers = rows(predictor.predict(["", "   ", "\u200b", "news"]))
    np.testing.assert_allclose(answers[1:3], answers[[0, 0]], atol=1e-6)
    np.testing.assert_allclose(answers[3:], rows(predictor.predict("news")), atol=1e-5)
    only_cls_sep = {
        "input_word_ids": tf.constant([[2, 3]]),
        "input_mask": tf.constant([[1, 1]]),
        "input_type_ids": tf.constant([[0, 0]]),
    }
    expected = tf.nn.softmax(small_classifier()(only_cls_sep, training=False))
    np.testing.assert_allclose(answers[:1], expected, atol=1e-5)


@pytest.mark.parametrize("missing", [None, float("nan"), 3])
def test_missing_texts_are_refused(predictor, missing):
    with pytest.raises(ValueError, match=r"must be strings. Received: (None|nan|3) \(.*\) at position 1"):
        predictor.predict(["news", missing, "a"])


def test_order_and_batches(predictor):
    texts = ["team " * length + "wins" for length in (9, 0, 4, 12, 1, 7, 3)]
    expected = np.concatenate([rows(predictor.predict(text)) for text in texts])
    for batch_size in (1, 3, 7, 100):
        np.testing.assert_allclose(rows(predictor.predict(texts, batch_size=batch_size)), expected, atol=1e-5)
    assert predictor.predict([]) == []
    with pytest.raises(ValueError, match="batch_size=0"):
        predictor.predict(texts, batch_size=0)


def test_strange_texts(predictor):
    answers = rows(predictor.predict([b"\xff\xfe", "a\x00b", "news " * 200_000, "🙂"]))
    assert np.isfinite(answers).all() and answers.shape == (4, 3)


def test_long_texts(predictor):
    """As the export cuts them: what is beyond the model's length changes nothing."""
    start = "team wins " * 40
    answers = rows(predictor.predict([start, start + "robot " * 1000, "robot " + start]))
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-6)
    assert np.abs(answers[2] - answers[0]).max() > 1e-3


def test_windows(tmp_path):
    """Exported with long_text="window", what is beyond the model's length counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)
        version = export_for_serving(small_classifier(), small_pack(), tmp_path / "news", long_text="window")
    start = "team wins " * 40
    texts = [start, start + "robot " * 40, "news"]
    answers = rows(Predictor(version).predict(texts))
    assert np.abs(answers[1] - answers[0]).max() > 1e-3
    for text, answer in zip(texts, answers, strict=True):
        np.testing.assert_allclose(rows(Predictor(version).predict(text)), [answer], atol=1e-5)


def test_nothing_is_traced_after_loading(version, monkeypatch):
    """A trace would make a graph. Loading makes some, answers of whatever batch and length make none."""
    graphs, make = [], tf.Graph.__init__
    monkeypatch.setattr(tf.Graph, "__init__", lambda graph, *args, **kwargs: graphs.append(graph) or make(graph))
    predictor = Predictor(version)
    assert graphs, "this test would not see a graph"
    graphs.clear()
    for batch in (1, 2, 7, 33):
        predictor.predict(["news " * length for length in range(batch)])
    assert graphs == []


def resident_bytes():
    """Memory of this process, by Linux; 0 elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_threads(predictor, seconds, capsys):
    """32 threads on one object: the serial answers, and no more memory than after the first round."""
    texts = [f"we love {word} {'team ' * length}" for word in ("news", "robot", "cafe") for length in (0, 5, 12)]
    requests = [texts[first : first + 1 + first % 4] for first in range(len(texts))]
    expected = [predictor.predict(request) for request in requests]
    expected_rows = [rows(answers) for answers in expected]

    def ask(thread, until):
        """Asks until then, returns how often."""
        for count in itertools.count():
            if time.monotonic() > until:
                return count
            position = (thread + count) % len(requests)
            answers = predictor.predict(requests[position])
            assert [answer.label for answer in answers] == [answer.label for answer in expected[position]]
            np.testing.assert_allclose(rows(answers), expected_rows[position], atol=1e-6)

    with ThreadPoolExecutor(32) as pool:

        def ask_for(seconds):
            return sum(pool.map(ask, range(32), [time.monotonic() + seconds] * 32))

        ask_for(1)  # every thread has its own memory from here on
        before = resident_bytes()
        count = ask_for(seconds)
        growth = resident_bytes() - before
    with capsys.disabled():
        print(f"\n{count} requests of 32 threads in {seconds} s, memory grew by {growth / 2**20:.1f} MB")
    assert count >= 32 and growth < 16 * 2**20


def test_newest_version(version, tmp_path):
    for name in ("2", "10"):
        shutil.copytree(version, tmp_path / name)
    (tmp_path / ".tmp-11-dead").mkdir()
    assert Predictor(tmp_path).version_folder == tmp_path / "10"
    assert Predictor(str(tmp_path / "2")).version_folder == tmp_path / "2"


def test_no_model(tmp_path):
    with pytest.raises(ExportError, match="absent or empty"):
        Predictor(tmp_path / "nothing")
    (tmp_path / "notes").mkdir()
    with pytest.raises(ExportError, match="with notes"):
        Predictor(tmp_path)
    (tmp_path / "1").mkdir()
    with pytest.raises(ExportError, match=r"must be a whole version .* with assets.extra/kit.json"):
        Predictor(tmp_path)


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/variables.index"])
def test_damaged_files(version, tmp_path, name):
    copy = shutil.copytree(version, tmp_path / "1")
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(ExportError, match=f"as they were exported. Received: changed {name}"):
        Predictor(copy)
    (copy / name).unlink()
    with pytest.raises(ExportError):
        Predictor(copy)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "{}",
        json.dumps({"sha256": {}}),
        "[]",
        json.dumps({"sha256": [], "class_names": [], "max_sequence_length": 3}),
    ],
)
def test_damaged_kit_file(version, tmp_path, content):
    copy = shutil.copytree(version, tmp_path / "1")
    (copy / export.KIT_FILE).write_text(content)
    with pytest.raises(ExportError, match="must be a whole version"):
        Predictor(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_sequence_length": None}, "whole version .* max_sequence_length of type NoneType"),
        ({"class_names": ["a", "b"]}, "a name for each of its 3 classes. Received: 2 class_names"),
    ],
)
def test_other_settings_in_the_kit_file(version, tmp_path, change, message):
    copy = shutil.copytree(version, tmp_path / "1")
    content = json.loads((copy / export.KIT_FILE).read_text(encoding="utf-8"))
    (copy / export.KIT_FILE).write_text(json.dumps(content | change))
    with pytest.raises(ExportError, match=message):
        Predictor(copy)
