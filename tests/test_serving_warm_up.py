"""Requests that a server answers itself before clients may: read by TF Serving's own classes, run on the graph."""

import pytest
import tensorflow as tf
from serving_models import small_classifier, small_pack

from keras_bert_kit.serving import check, export_for_serving
from keras_bert_kit.serving.signatures import SIGNATURES
from keras_bert_kit.serving.warm_up import BATCH_SIZES, WARM_UP_FILE, prediction_log
from keras_bert_kit.text import BertPacker


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # tested in test_serving_export.py
        path = tmp_path_factory.mktemp("out") / "neues 模型"
        return export_for_serving(small_classifier(), small_pack(), path, signatures=SIGNATURES)


def requests_in(version):
    """(signature, inputs) of each record, read by the classes of tensorflow-serving-api."""
    prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    for record in tf.data.TFRecordDataset(str(version / WARM_UP_FILE)).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record)
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        assert request.model_spec.name == "neues 模型"
        yield request.model_spec.signature_name, {name: tf.make_ndarray(x) for name, x in request.inputs.items()}


def test_records_are_answered_and_have_all_shapes(version):
    loaded = tf.saved_model.load(str(version))
    shapes = {}
    for name, inputs in requests_in(version):
        outputs = loaded.signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
        batch_sizes = {len(value) for value in (*inputs.values(), *outputs.values())}
        assert len(batch_sizes) == 1
        shapes.setdefault(name, []).append(batch_sizes.pop())
        if name == "token_ids":
            assert inputs["input_word_ids"].shape[1] == 16
    assert set(shapes) == set(SIGNATURES)
    assert all(sorted(set(sizes)) == list(BATCH_SIZES) for sizes in shapes.values())
    assert sum(map(len, shapes.values())) <= 1000, "TF Serving reads no more"


def test_lengths_reach_the_longest_text(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)
    model, pack = small_classifier(), small_pack(sequence_length=32)
    names = ["serving_default", "pairs", "token_ids"]
    version = export_for_serving(model, pack, tmp_path / "neues 模型", signatures=names)
    lengths, to_longest = {}, BertPacker(pack.tokenizer, None)
    for name, inputs in requests_in(version):
        texts = [value.tolist() for value in inputs.values()]
        packed = inputs if name == "token_ids" else to_longest(tuple(texts) if len(texts) > 1 else texts[0])
        lengths.setdefault(name, set()).add(packed["input_word_ids"].shape[1])
    assert lengths == dict.fromkeys(names, {16, 32})


def test_long_fields():
    """A length above 127 takes more than one byte."""
    prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    text = "ü" * 70_000
    log = prediction_log_pb2.PredictionLog.FromString(prediction_log("m" * 300, "embed", {"text": [text.encode()]}))
    request = log.predict_log.request
    assert request.model_spec.name == "m" * 300
    assert tf.make_ndarray(request.inputs["text"])[0].decode() == text
