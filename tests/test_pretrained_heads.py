"""Every head: found by its tensors, loaded equal to the source, written back bit-equal; what is absent is said so."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from fake_checkpoints import write_google_folder
from fake_h5 import write_tf_h5
from fake_torch import write_torch
from fake_weights import write_hf_folder
from reference import Reference
from safetensors.numpy import load_file, save_file

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained, save_pretrained

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}
# Head -> heads of `fake_weights`, whether Transformers has a pooler for it, and the name of its TFBert class in files.
HEADS = {
    "token_classifier": ("token_classifier", False, "token_classification"),
    "question_answering": ("question_answering", False, "question_answering"),
    "multiple_choice": ("multiple_choice", True, "multiple_choice"),
    "next_sentence": ("nsp", True, "next_sentence_prediction"),
    "classifier": ("classifier", True, "sequence_classification"),
}
LAYERS = {"question_answering": "qa_outputs", "next_sentence": "cls.seq_relationship"}


def write_head(folder, head, **options):
    """A Hugging Face folder with one head, as Transformers writes it today; returns (tensors, config)."""
    fake, pooler, _ = HEADS[head]
    return write_hf_folder(folder, heads=(fake,), **{"pooler": pooler} | options)


def expected_outputs(tensors, config, head):
    """What a model with that head gives for INPUTS, from NumPy."""
    reference = Reference(tensors, config)
    outputs = reference(*INPUTS.values())
    on_tokens = head in ("token_classifier", "question_answering")
    logits = reference.dense(
        outputs["sequence_output" if on_tokens else "pooled_output"], LAYERS.get(head, "classifier")
    )
    if head == "question_answering":
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
    return logits.reshape(1, -1) if head == "multiple_choice" else logits


def inputs_of(head, inputs=INPUTS):
    """The two texts as a batch; for multiple choice as two choices of one example."""
    return {key: tensor[None] for key, tensor in inputs.items()} if head == "multiple_choice" else inputs


def require_close(outputs, expected, atol=1e-5):
    for one, wanted in zip(keras.tree.flatten(outputs), keras.tree.flatten(expected), strict=True):
        np.testing.assert_allclose(one, wanted, atol=atol)


def require_head(folder, head, tensors, config):
    """The folder gives a model with that head alone, with the outputs of NumPy; returns what was loaded."""
    bert = load_pretrained(folder)
    require_close(getattr(bert, head)(inputs_of(head)), expected_outputs(tensors, config, head))
    there = [name for name in (*HEADS, "pretrainer") if getattr(bert, name) is not None]
    assert there == [head] and not bert.report.left_out
    assert getattr(bert, head).encoder is bert.encoder
    return bert


@pytest.mark.parametrize("head", HEADS)
def test_safetensors_pickles_and_h5_equal_numpy(tmp_path, head):
    tensors, config = write_head(tmp_path, head)
    pooler = ("pooler",) if HEADS[head][1] else ()
    assert require_head(tmp_path, head, tensors, config).report.heads == (*pooler, head)
    (tmp_path / "model.safetensors").unlink()
    write_torch(tmp_path / "pytorch_model.bin", tensors)
    require_head(tmp_path, head, tensors, config)
    (tmp_path / "pytorch_model.bin").unlink()
    write_tf_h5(tmp_path / "tf_model.h5", tensors, HEADS[head][2])
    require_head(tmp_path, head, tensors, config)


@pytest.mark.parametrize("head", ["token_classifier", "question_answering"])
def test_older_files_carry_a_pooler_that_such_heads_do_not_use(tmp_path, head):
    bert = require_head(tmp_path, head, *write_head(tmp_path, head, pooler=True))
    assert bert.encoder.add_pooler and bert.report.heads == ("pooler", head)


@pytest.mark.parametrize("head", HEADS)
def test_every_head_comes_back_bit_equal_with_its_class_in_transformers(tmp_path, head):
    tensors, config = write_head(tmp_path / "in", head)
    bert = load_pretrained(tmp_path / "in")
    save_pretrained(getattr(bert, head), tmp_path / "out", tokenizer=bert.tokenizer)
    written = load_file(tmp_path / "out/model.safetensors")
    assert written.keys() == tensors.keys()
    for name, array in tensors.items():
        np.testing.assert_array_equal(written[name], array)
    saved = json.loads((tmp_path / "out/config.json").read_text(encoding="utf-8"))
    assert saved["architectures"] == config["architectures"]
    again = load_pretrained(tmp_path / "out")
    require_close(getattr(again, head)(inputs_of(head)), getattr(bert, head)(inputs_of(head)), atol=0)


def test_names_of_token_classes_and_dropout_are_kept(tmp_path):
    names = ["O", "B-PER", "I-PER", "B-ÖRT"]
    write_head(tmp_path / "in", "token_classifier", class_names=names, classifier_dropout=0.4)
    bert = load_pretrained(tmp_path / "in")
    assert bert.token_classifier.class_names == tuple(names) and bert.token_classifier.dropout_rate == 0.4
    assert "4 class names from id2label: O, B-PER, I-PER, B-ÖRT" in bert.report.notes
    save_pretrained(bert.token_classifier, tmp_path / "out", tokenizer=bert.tokenizer)
    again = load_pretrained(tmp_path / "out").token_classifier
    assert again.class_names == tuple(names) and again.dropout_rate == 0.4


@pytest.mark.parametrize(
    ("written", "config", "found"),
    [
        ("token_classifier", {"architectures": None}, "token_classifier"),
        ("classifier", {"architectures": None}, "classifier"),
        ("multiple_choice", {"architectures": None}, "multiple_choice"),
        ("multiple_choice", {"architectures": ["MyModel"]}, "multiple_choice"),
        ("multiple_choice", {"architectures": ["TFBertForMultipleChoice"]}, "multiple_choice"),
        ("classifier", {"architectures": ["BertForTokenClassification"]}, "token_classifier"),
    ],
)
def test_which_head_is_called_classifier(tmp_path, written, config, found):
    write_head(tmp_path, written, **config)
    bert = load_pretrained(tmp_path)
    assert bert.report.heads[-1] == found and getattr(bert, found) is not None
    assert f"the tensors called classifier are the head {found} (architectures in config.json" in str(bert.report)


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["BertForSequenceClassification"]},
        {"architectures": None, "problem_type": "regression"},
        {"architectures": None, "id2label": {"0": "LABEL_0"}},
        {"architectures": None, "num_labels": 1},
    ],
)
def test_regression_is_no_head_of_ours_and_the_report_says_so(tmp_path, config):
    _, values = write_head(tmp_path, "multiple_choice")
    (tmp_path / "config.json").write_text(json.dumps(values | config), encoding="utf-8")
    bert = load_pretrained(tmp_path)
    assert bert.report.heads == ("pooler",) and bert.classifier is None and bert.multiple_choice is None
    assert set(bert.report.left_out) == {"classifier.weight", "classifier.bias"}
    assert "regression" in bert.report.left_out["classifier.weight"]


@pytest.mark.parametrize("head", ["classifier", "multiple_choice", "next_sentence"])
def test_a_head_whose_pooler_is_missing_is_an_error(tmp_path, head):
    write_head(tmp_path, head, pooler=False)
    with pytest.raises(CheckpointError, match=r"pooler.dense.weight: missing, expected with shape \(16, 16\)"):
        load_pretrained(tmp_path)
    assert getattr(load_pretrained(tmp_path, allow_missing=["pooler"]), head) is not None


@pytest.mark.parametrize("head", HEADS)
def test_half_a_head_and_a_head_of_another_shape_are_errors(tmp_path, head):
    write_head(tmp_path, head)
    tensors, layer = load_file(tmp_path / "model.safetensors"), LAYERS.get(head, "classifier")
    weight = tensors.pop(f"{layer}.weight")
    for changed, message in (
        (tensors | {f"{layer}.weight": weight[:, :-1].copy()}, f"{layer}.weight: expected shape"),
        (tensors | {f"{layer}.weight": np.full_like(weight, np.nan)}, f"{layer}.weight: .*not finite"),
        (tensors, f"{layer}.bias: not known, would be unused"),
    ):
        save_file(changed, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(CheckpointError, match=message):
            load_pretrained(tmp_path)


def test_run_squads_head_in_a_checkpoint_of_the_original_bert(tmp_path):
    require_head(
        tmp_path, "question_answering", *write_google_folder(tmp_path, heads=("question_answering",), slots=False)
    )


def test_next_sentence_alone_in_a_checkpoint_of_the_original_bert(tmp_path):
    require_head(tmp_path, "next_sentence", *write_google_folder(tmp_path, heads=("nsp",), slots=False))


def test_heads_asked_for(tmp_path):
    write_hf_folder(tmp_path / "both")
    bert = load_pretrained(tmp_path / "both", heads=["next_sentence"])
    assert bert.pretrainer is None and bert.report.heads == ("pooler", "next_sentence")
    whole = load_pretrained(tmp_path / "both")
    assert whole.next_sentence is None and whole.pretrainer.next_sentence
    logits = whole.pretrainer(INPUTS | {"masked_lm_positions": np.zeros((2, 1), "int32")})["nsp_logits"]
    require_close(bert.next_sentence(INPUTS), logits, atol=1e-6)
    with pytest.raises(CheckpointError, match="without question_answering. There are: pooler, masked_lm, next_sent"):
        load_pretrained(tmp_path / "both", heads=["question_answering"])


# Files that PyTorch wrote, with its outputs


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("token_classification", "token_classifier"),
        ("question_answering", "question_answering"),
        ("multiple_choice", "multiple_choice"),
        ("sequence_classification", "classifier"),
    ],
)
def test_pytorchs_outputs(shared, name, head):
    folder = shared / "fixtures/hf" / name
    golden, bert = np.load(folder / "goldens.npz"), load_pretrained(folder)
    keys = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
    flat = {ours: golden[theirs] for ours, theirs in keys.items()}
    inputs, model = inputs_of(head, flat), getattr(bert, head)
    expected = {key: golden[key] for key in ("logits", "start_logits", "end_logits") if key in golden}
    expected = expected.get("logits", expected)
    symbolic = {key: keras.Input((None,) * (x.ndim - 1), dtype="int32", name=key) for key, x in inputs.items()}
    functional = keras.Model(symbolic, model(symbolic))
    for way in (model, tf.function(model), tf.function(model, jit_compile=True), functional):
        require_close(way(inputs), expected)
    outputs = bert.encoder(flat, return_hidden_states=True, return_attention_scores=True)
    for theirs, ours in (("hidden_states", "hidden_states"), ("attentions", "attention_scores")):
        if theirs in golden:
            np.testing.assert_allclose(outputs[ours], golden[theirs], atol=1e-5)


@pytest.mark.parametrize("name", ["pretraining_gelu", "pretraining_gelu_new"])
def test_pytorchs_loss_of_pretraining_by_keras_evaluate(shared, name):
    folder = shared / "fixtures/hf" / name
    golden, model = np.load(folder / "goldens.npz"), load_pretrained(folder).pretrainer
    keys = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
    inputs = {ours: golden[theirs] for ours, theirs in keys.items()}
    inputs["masked_lm_positions"] = np.tile(np.arange(16), (3, 1))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
    model.compile(loss={"mlm_logits": loss, "nsp_logits": loss})
    labels = {"mlm_logits": golden["labels"], "nsp_logits": golden["next_sentence_label"]}
    result = model.evaluate(inputs, labels, verbose=0, return_dict=True)
    np.testing.assert_allclose(result["loss"], golden["loss"], atol=1e-5)
