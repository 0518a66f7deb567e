"""Export: what is written, what it answers, and that nothing is left of an export that failed."""

import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from fake_weights import VOCABULARY
from serving_models import CLASS_NAMES, small_classifier, small_pack
from tensorflow.core.protobuf import saved_model_pb2

from keras_bert_kit.errors import ExportError
from keras_bert_kit.models import BertClassifier, BertQuestionAnswering, BertTokenClassifier
from keras_bert_kit.serving import check, export, export_for_serving, requirements
from keras_bert_kit.serving.questions import example_of, question_for
from keras_bert_kit.serving.signatures import SIGNATURES, Signatures
from keras_bert_kit.text import BertPacker, BertTokenizer

TEXTS = ["We love the news", "", "Über 中 cafe!", "team wins the game " * 20, "a", "market 2.7 %", "[MASK] robot"]


@pytest.fixture(scope="module")
def trained():
    return small_classifier(), small_pack()


@pytest.fixture(scope="module")
def version(trained, tmp_path_factory):
    """One version, checked in a fresh process, below a path with umlauts, ideographs and spaces."""
    path = tmp_path_factory.mktemp("out") / "Modelle für BERT" / "模型 v1"
    return export_for_serving(*trained, path, signatures=SIGNATURES, weights_source="by hand")


@pytest.fixture(scope="module")
def signatures(version):
    return tf.saved_model.load(str(version)).signatures


@pytest.fixture(scope="module")
def serve(signatures):
    return signatures["serving_default"]


@pytest.fixture
def unchecked(monkeypatch):
    """Skips the fresh process, which takes seconds."""
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)


def probabilities_of(model, pack, texts):
    return tf.nn.softmax(model(pack(texts), training=False)).numpy()


def content_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


ANSWERS = {"label": (tf.string, [None]), "probabilities": (tf.float32, [None, 3]), "logits": (tf.float32, [None, 3])}
OUTPUTS = {
    **dict.fromkeys(["serving_default", "pairs", "token_ids", "examples"], ANSWERS),
    "embed": {"embeddings": (tf.float32, [None, 16])},
    "metadata": {
        **dict.fromkeys(["kit_version", "config", "vocabulary_sha256", "weights_source"], (tf.string, [None])),
        "class_names": (tf.string, [None, 3]),
    },
}
INPUTS = {
    **dict.fromkeys(["serving_default", "embed"], {"text": (tf.string, [None])}),
    "pairs": dict.fromkeys(["text_a", "text_b"], (tf.string, [None])),
    "token_ids": dict.fromkeys(["input_mask", "input_type_ids", "input_word_ids"], (tf.int32, [None, None])),
    "examples": {"examples": (tf.string, [None])},
    "metadata": {"request": (tf.string, [None])},
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(signatures, name):
    def described(specs):
        return {name: (spec.dtype, spec.shape.as_list()) for name, spec in specs.items()}

    assert set(signatures) == set(SIGNATURES)
    assert described(signatures[name].structured_input_signature[1]) == INPUTS[name]
    assert described(signatures[name].structured_outputs) == OUTPUTS[name]


def test_pairs(trained, signatures):
    model, pack = trained
    backwards = TEXTS[::-1]
    answers = signatures["pairs"](text_a=tf.constant(TEXTS), text_b=tf.constant(backwards))
    np.testing.assert_allclose(answers["probabilities"], probabilities_of(model, pack, (TEXTS, backwards)), atol=1e-5)


def test_token_ids(trained, signatures):
    model, pack = trained
    answers = signatures["token_ids"](**pack(TEXTS))
    np.testing.assert_allclose(answers["probabilities"], probabilities_of(model, pack, TEXTS), atol=1e-5)


def test_token_ids_that_a_server_padded(trained, signatures):
    """TF Serving fills each input of a shorter request up with its first element: [CLS], a mask of 1, type 0."""
    pack = BertPacker(trained[1].tokenizer, None, max_sequence_length=16)
    short, long = pack(["We love the news", ""]), pack(["team wins the game " * 20])

    def padded(tensor):
        added = [[0, 0], [0, long["input_mask"].shape[1] + 3 - tensor.shape[1]]]
        return np.pad(tensor, added, constant_values=tensor.numpy().flat[0])

    for inputs in (short, long):
        answers = signatures["token_ids"](**{name: tf.constant(padded(x)) for name, x in inputs.items()})
        expected = signatures["token_ids"](**inputs)
        np.testing.assert_allclose(answers["logits"], expected["logits"], atol=1e-5)


def test_examples(serve, signatures):
    examples = [example_of(text.encode()) for text in TEXTS]
    answers = signatures["examples"](examples=tf.constant(examples))
    np.testing.assert_allclose(answers["logits"], serve(text=tf.constant(TEXTS))["logits"], atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature: text .* is required"):
        signatures["examples"](examples=tf.constant([tf.train.Example().SerializeToString()]))


def test_embeddings_are_means_over_tokens(trained, signatures):
    model, pack = trained
    answers = signatures["embed"](text=tf.constant(TEXTS))["embeddings"].numpy()
    for row, text in enumerate(TEXTS):
        inputs = BertPacker(pack.tokenizer, None, max_sequence_length=16)([text])  # without padding
        hidden = model.encoder(inputs)["sequence_output"].numpy()[0]
        np.testing.assert_allclose(answers[row], hidden.mean(axis=0), atol=1e-5)


def test_embeddings_of_the_first_token(trained, tmp_path, unchecked):
    model, pack = trained
    version = export_for_serving(
        model, pack, tmp_path / "model", signatures=["serving_default", "embed"], embedding="cls"
    )
    answers = tf.saved_model.load(str(version)).signatures["embed"](text=tf.constant(TEXTS))["embeddings"]
    np.testing.assert_allclose(answers, model.encoder(pack(TEXTS))["sequence_output"][:, 0], atol=1e-5)


def test_metadata(trained, signatures):
    answers = {key: value.numpy() for key, value in signatures["metadata"](request=tf.constant(["", "?"])).items()}
    assert answers["class_names"].shape == (2, 3)
    assert [name.decode() for name in answers["class_names"][1]] == list(CLASS_NAMES)
    assert json.loads(answers["config"][0]) == trained[0].encoder.config.to_dict()
    assert answers["weights_source"].tolist() == [b"by hand", b"by hand"]
    lines = "".join(f"{token}\n" for token in VOCABULARY).encode()
    assert answers["vocabulary_sha256"][0].decode() == hashlib.sha256(lines).hexdigest()


def test_answers_are_those_of_the_trained_model(trained, serve):
    answers = serve(text=tf.constant(TEXTS))
    expected = probabilities_of(*trained, TEXTS)
    assert np.ptp(expected, axis=0).max() > 0.1, "weights that answer the same to everything would test nothing"
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)
    np.testing.assert_allclose(tf.nn.softmax(answers["logits"]), answers["probabilities"], atol=1e-6)
    assert [label.decode() for label in answers["label"].numpy()] == [CLASS_NAMES[i] for i in expected.argmax(-1)]


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_a_row_does_not_depend_on_its_batch(serve, batch):
    texts = TEXTS[:batch]
    together = serve(text=tf.constant(texts, tf.string))
    assert together["probabilities"].shape == (batch, 3) and together["label"].shape == (batch,)
    for row, text in enumerate(texts):
        alone = serve(text=tf.constant([text]))
        np.testing.assert_allclose(together["logits"][row], alone["logits"][0], atol=1e-5)


def test_strange_text(trained, serve):
    """Invalid UTF-8, NUL, a million characters, right-to-left, half an emoji: finite answers, and those of training."""
    texts = [b"\xff\xfe news \xc3", b"a\x00news", b"news " * 200_000, "السلام עברית".encode(), b"\xf0\x9f", b"\0"]
    answers = serve(text=tf.constant(texts))["probabilities"].numpy()
    np.testing.assert_allclose(answers, probabilities_of(*trained, texts), atol=1e-5)


def test_pads_to_the_longest_text_of_the_request(monkeypatch, tmp_path, unchecked):
    shapes = []

    class Spy(BertClassifier):
        def call(self, inputs, training=None):
            if not tf.executing_eagerly():
                shapes.append(inputs["input_word_ids"].shape.as_list())
            return super().call(inputs, training)

    model, pack = small_classifier(Spy), small_pack(sequence_length=16)
    export_for_serving(model, pack, tmp_path / "model")
    assert shapes == [[None, None]]
    assert pack.sequence_length == 16


def test_process_with_only_tensorflow(version, serve):
    code = """
import json, sys
import tensorflow as tf
answers = tf.saved_model.load(sys.argv[1]).signatures["serving_default"](text=tf.constant(json.loads(sys.argv[2])))
print(json.dumps(["keras_bert_kit" in sys.modules, answers["probabilities"].numpy().tolist()]))
"""
    texts = TEXTS[:3]
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code, version, json.dumps(texts)], capture_output=True, text=True, check=True
    )
    imported, probabilities = json.loads(ran.stdout)
    assert not imported
    np.testing.assert_allclose(probabilities, serve(text=tf.constant(texts))["probabilities"], atol=1e-5)


@pytest.mark.parametrize("name", SIGNATURES)
def test_c_program(trained, version, signatures, c_program, name):
    texts = ["Über 中 wins!", "We love the news"]
    inputs = {key: text.encode() for key, text in zip(INPUTS[name], texts, strict=False)}
    if name == "examples":
        inputs = {"examples": example_of(inputs["examples"])}
    if name == "token_ids":
        inputs = {key: tensor.numpy() for key, tensor in trained[1](texts[:1]).items()}

    nodes = saved_model_pb2.SavedModel.FromString((version / "saved_model.pb").read_bytes()).meta_graphs[0]
    words = []
    for key, value in inputs.items():
        value = b"text=" + value if isinstance(value, bytes) else "ids=" + ",".join(map(str, value[0]))
        words += ["input", nodes.signature_def[name].inputs[key].name.split(":")[0], value]
    for key in OUTPUTS[name]:
        words += ["output", *nodes.signature_def[name].outputs[key].name.split(":")]
    ran = subprocess.run([c_program, version, *words], capture_output=True, encoding="utf-8", check=True)

    rows = {key: [value] if isinstance(value, bytes) else value for key, value in inputs.items()}
    answers = signatures[name](**{key: tf.constant(value) for key, value in rows.items()})
    expected = [element for key in OUTPUTS[name] for element in answers[key].numpy().ravel()]
    for line, element in zip(ran.stdout.splitlines(), expected, strict=True):
        assert (
            line == element.decode() if isinstance(element, bytes) else float(line) == pytest.approx(element, abs=1e-5)
        )


def kit_file_of(version):
    return json.loads((version / export.KIT_FILE).read_text(encoding="utf-8"))


def test_weights_in_float32_stay_variables_and_the_kit_file_says_so(version, capsys):
    kit_file = kit_file_of(version)
    with capsys.disabled():
        print(f"\n{len(kit_file['ops'])} ops in the exported graph: {' '.join(kit_file['ops'])}")
    assert kit_file["weights"] == "variables"
    assert {"VarHandleOp", "ReadVariableOp"} <= set(kit_file["ops"])
    assert kit_file["class_names"] == list(CLASS_NAMES)
    assert kit_file["max_sequence_length"] == 16


def test_weights_of_a_large_model_stay_variables(monkeypatch, tmp_path):
    monkeypatch.setattr(export, "LARGEST_CONSTANTS_BYTES", 0)
    version = export_for_serving(small_classifier(dtype="mixed_bfloat16"), small_pack(), tmp_path / "model")
    assert kit_file_of(version)["weights"] == "variables"


def test_half_precision_with_weights_as_constants(tmp_path):
    version = export_for_serving(small_classifier(dtype="mixed_bfloat16"), small_pack(), tmp_path / "model")
    assert kit_file_of(version)["weights"] == "constants"
    assert not {"VarHandleOp", "ReadVariableOp"} & set(kit_file_of(version)["ops"])
    answers = tf.saved_model.load(str(version)).signatures["serving_default"](text=tf.constant(TEXTS))
    assert answers["probabilities"].dtype == tf.float32


def test_tokenizer_settings_are_exported(tmp_path, unchecked):
    """FC13: lower-casing without stripping of accents."""
    model, pack = small_classifier(), small_pack(lowercase=True, strip_accents=False)
    version = export_for_serving(model, pack, tmp_path / "model")
    serve = tf.saved_model.load(str(version)).signatures["serving_default"]
    answers = serve(text=tf.constant(["Über", "Uber"]))["probabilities"].numpy()
    assert np.abs(answers[0] - answers[1]).max() > 1e-3
    np.testing.assert_allclose(answers, probabilities_of(model, pack, ["Über", "Uber"]), atol=1e-5)


def test_moved_and_without_its_sources(tmp_path, unchecked):
    """The version holds everything: the vocabulary file may go and the folder may move (users.md, row 23)."""
    vocabulary = tmp_path / "source" / "vocab.txt"
    vocabulary.parent.mkdir()
    vocabulary.write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8")
    model, pack = small_classifier(), BertPacker(BertTokenizer.from_vocab_file(vocabulary), 16, max_sequence_length=32)
    version = export_for_serving(model, pack, tmp_path / "model")
    expected = probabilities_of(model, pack, TEXTS)
    shutil.rmtree(vocabulary.parent)
    moved = version.rename(tmp_path / "elsewhere")
    answers = tf.saved_model.load(str(moved)).signatures["serving_default"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-5)


def test_next_version(trained, tmp_path, unchecked):
    for name in ("2", "7", ".tmp-9-dead", "latest", "12b", "²"):
        (tmp_path / name).mkdir()
    assert export_for_serving(*trained, tmp_path) == tmp_path / "8"
    assert export_for_serving(*trained, str(tmp_path)) == tmp_path / "9"
    assert (tmp_path / "8" / "saved_model.pb").is_file()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda outputs: outputs["probabilities"][2].reverse(), r"within 0.0001. Received: a difference of 0\.\d+"),
        (lambda outputs: outputs["probabilities"].pop(), "a difference of inf"),
        (lambda outputs: outputs["probabilities"][0].__setitem__(0, float("nan")), "a difference of nan"),
        (lambda outputs: outputs["label"].__setitem__(0, "?"), r"as label of serving_default, in a fresh process"),
    ],
    ids=["other", "too few", "nan", "label"],
)
def test_a_failed_check_leaves_nothing(trained, tmp_path, monkeypatch, spoil, message):
    def spoiled(folder, questions):
        (question,) = questions
        probabilities = question.expected["probabilities"]
        labels = [CLASS_NAMES[row] for row in probabilities.argmax(-1)]
        outputs = {"probabilities": probabilities.tolist(), "label": labels}
        spoil(outputs)
        return {"answers": {"session": [outputs]}}

    monkeypatch.setattr(check, "fresh_answers", spoiled)
    (tmp_path / "served" / "3").mkdir(parents=True)
    (tmp_path / "served" / "3" / "saved_model.pb").write_text("as it was")
    before = content_of(tmp_path)
    for folder in ("served", "not/there/yet"):
        with pytest.raises(ExportError, match=message):
            export_for_serving(*trained, tmp_path / folder, signatures=["serving_default"])
        assert content_of(tmp_path) == before


@pytest.fixture(scope="module")
def asked(trained, version):
    """Questions to every signature, and what a fresh process answered."""
    strings = json.loads((version / export.KIT_FILE).read_text(encoding="utf-8"))
    metadata = {name: strings[name] for name in OUTPUTS["metadata"]}
    questions = [question_for(Signatures(*trained, [], metadata), name) for name in SIGNATURES]
    return questions, check.fresh_answers(version, questions)


@pytest.mark.parametrize("loader", ["answers_in_session", "answers_in_python"])
@pytest.mark.parametrize(
    ("name", "output"),
    [(name, output) for name in SIGNATURES for output in OUTPUTS[name] if output != "logits"],
)
def test_every_output_is_checked(asked, version, monkeypatch, loader, name, output):
    questions, answers = copy.deepcopy(asked)
    monkeypatch.setattr(check, "fresh_answers", lambda *args: answers)
    assert check.require_same_answers(version, questions, CLASS_NAMES) < 1e-5
    rows = answers["answers"][loader][SIGNATURES.index(name)][output]
    rows[1] = rows[1] + "?" if isinstance(rows[1], str) else rows[1][::-1]
    with pytest.raises(ExportError, match=rf"{output} of {name}, in a fresh process \({loader}\)"):
        check.require_same_answers(version, questions, CLASS_NAMES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"signatures": "serving_default"}, "signatures must be of .*Received: 'serving_default'"),
        ({"signatures": ["embed"]}, "and serving_default among them"),
        ({"signatures": ["serving_default", "predict"]}, r"Received: \['serving_default', 'predict'\]"),
        ({"long_text": "cut", "embedding": "max", "max_windows": 0}, "'cut'; embedding .*'max'; .*max_windows=0"),
        ({"signatures": None}, "serving_default among them. Received: None"),
        ({"signatures": ["serving_default", ["embed"]]}, r"Received: \['serving_default', \['embed'\]\]"),
        ({"weights_source": None}, "weights_source must be a str that UTF-8 can encode, without NUL. Received: None"),
        ({"weights_source": Path("x")}, "weights_source must be a str"),
        ({"weights_source": "x\0"}, "weights_source must be a str"),
        ({"max_windows": 2**32}, "max_windows must be an int from 1 to 2147483647. Received: max_windows=4294967296"),
    ],
)
def test_settings_out_of_range(trained, tmp_path, settings, message):
    with pytest.raises(ExportError, match=message):
        export_for_serving(*trained, tmp_path / "model", **settings)
    assert content_of(tmp_path) == []


def test_pairs_need_two_types(tmp_path):
    model = small_classifier(type_vocab_size=1)
    with pytest.raises(ExportError, match="a type for each segment. Received: a model with type_vocab_size=1"):
        export_for_serving(model, small_pack(), tmp_path / "model", signatures=["serving_default", "pairs"])
    assert content_of(tmp_path) == []


def test_functions_that_run_eagerly(trained, tmp_path):
    tf.config.run_functions_eagerly(True)
    try:
        with pytest.raises(ExportError, match=r"makes graphs. Received: tf.config.run_functions_eagerly\(True\)"):
            export_for_serving(*trained, tmp_path / "model")
    finally:
        tf.config.run_functions_eagerly(False)


def test_two_exports_at_once(trained, tmp_path, monkeypatch):
    """The one that comes second keeps what the first one published."""

    def other_export(*args, **kwargs):
        (tmp_path / "news" / "1").mkdir()
        (tmp_path / "news" / "1" / "saved_model.pb").write_text("of the other")

    monkeypatch.setattr(check, "require_same_answers", other_export)
    with pytest.raises(ExportError, match="news/1, which another export published meanwhile. Leave it .* run this ex"):
        export_for_serving(*trained, tmp_path / "news", signatures=["serving_default"])
    assert content_of(tmp_path / "news") == ["1", "1/saved_model.pb"]


def test_constants_have_a_limit(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(requirements, "LARGEST_GRAPH_BYTES", 1000)
    with pytest.raises(ExportError, match="weights above 1,000 bytes cannot be constants"):
        export_for_serving(*trained, tmp_path / "model", freeze=True)


def test_a_process_that_fails(tmp_path):
    with pytest.raises(ExportError, match="(?s)process that has only TensorFlow. Received: .*saved_model.pb"):
        check.fresh_answers(tmp_path, [])


class CallsPython(BertClassifier):
    def call(self, inputs, training=None):
        logits = super().call(inputs, training)
        return tf.ensure_shape(tf.py_function(lambda x: x, [logits], tf.float32), logits.shape)


def test_other_ops_are_refused(tmp_path):
    with pytest.raises(ExportError, match="Received: EagerPyFunc. Write that part"):
        export_for_serving(small_classifier(CallsPython), small_pack(), tmp_path / "model")
    assert content_of(tmp_path) == []


def named(*class_names):
    model = small_classifier()
    model.class_names = class_names
    return model


def broken_weights():
    model = small_classifier()
    model.dense.bias.assign([np.nan, 0.0, 0.0])
    return model


@pytest.mark.parametrize(
    ("model", "pack", "message"),
    [
        (lambda: small_classifier().encoder, small_pack, "BertClassifier, with strings for class_names. Received: a B"),
        (
            lambda: BertTokenClassifier(small_classifier().encoder, 2),
            small_pack,
            "a BertTokenClassifier.*save_pretrained",
        ),
        (
            lambda: BertQuestionAnswering(small_classifier().encoder),
            small_pack,
            "Received: a BertQuestionAnswering with",
        ),
        (small_classifier, lambda: small_pack().tokenizer, "BertPacker of the training. Received: a BertTokenizer"),
        (small_classifier, lambda: small_pack(vocabulary=[*VOCABULARY, "x"]), f"{len(VOCABULARY)} rows. Use the vocab"),
        (lambda: small_classifier(max_position_embeddings=12), small_pack, "Received: 16 tokens, 12 rows"),
        (lambda: named("a", "b\0", "c"), small_pack, r"class name must be .* without NUL. Received: 'b\\x00'"),
        (lambda: named("a", "\ud800", "c"), small_pack, r"UTF-8 can encode, .* Received: '\\ud800'"),
        (broken_weights, small_pack, r"one finite probability .* \d+ NaN"),
    ],
    ids=["no classifier", "of tokens", "of answers", "no packer", "vocabulary", "positions", "NUL", "surrogate", "nan"],
)
def test_what_does_not_fit_is_refused(tmp_path, model, pack, message):
    with pytest.raises(ExportError, match=message):
        export_for_serving(model(), pack(), tmp_path / "model")
    assert content_of(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("file", "a file is at"),
        ("file/model", "a file is at"),
        ("a version", "not of a version"),
        ("gs://bucket/model", "must be a local one"),
        ("models [new]", "which TensorFlow takes for patterns"),
        ("models\\new", "which TensorFlow takes for patterns"),
    ],
)
def test_places_that_cannot_be_written(trained, tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("a version").mkdir()
    Path("a version/saved_model.pb").write_text("")
    before = content_of(tmp_path)
    with pytest.raises(ExportError, match=message):
        export_for_serving(*trained, path)
    assert content_of(tmp_path) == before


def test_no_permission(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ExportError, match="no permission to write to"):
        export_for_serving(*trained, tmp_path / "model")


def test_disk_full(trained, tmp_path, monkeypatch):
    def save(module, folder, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tf.saved_model, "save", save)
    with pytest.raises(ExportError, match="No space left on device. Nothing was changed"):
        export_for_serving(*trained, tmp_path / "new" / "model")
    assert content_of(tmp_path) == []
