"""TensorFlow checkpoints and SavedModels: their own numbers, slots left out, faults named, no graph executed."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from fake_checkpoints import (
    save_arrays,
    write_google_folder,
    write_saved_model,
    write_tf_models_checkpoint,
)
from reference import Reference

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}
POSITIONS = np.array([[1, 2], [0, 6]])


def require_equal_pretrainer(bert, tensors, config, keys=("mlm_logits", "nsp_logits", "pooled_output")):
    expected = Reference(tensors, config)(*INPUTS.values(), masked_lm_positions=POSITIONS)
    outputs = bert.pretrainer(INPUTS | {"masked_lm_positions": POSITIONS})
    for key in keys:
        np.testing.assert_allclose(outputs[key], expected[key], atol=1e-5)


def test_a_checkpoint_of_the_original_bert_equals_numpy(tmp_path):
    written = write_google_folder(tmp_path)
    bert = load_pretrained(tmp_path)
    require_equal_pretrainer(bert, *written)
    assert bert.report.kind == "TF1 checkpoint of the original BERT"
    assert "hidden_act=gelu_tanh (bert_config.json says 'gelu' and is Google's)" in bert.report.notes
    assert bert.report.left_out.keys() >= {"global_step", "bert/pooler/dense/bias/adam_v"}
    assert "adam_v" not in str(bert.report.assigned) and "more: of the optimizer" in str(bert.report)


def test_a_fine_tuned_checkpoint_of_the_original_bert_has_a_classifier(tmp_path):
    tensors, config = write_google_folder(tmp_path, heads=("classifier",), prefix="model.ckpt-343")
    bert = load_pretrained(tmp_path)
    expected = Reference(tensors, config)(*INPUTS.values())["logits"]
    np.testing.assert_allclose(bert.classifier(INPUTS), expected, atol=1e-5)
    assert bert.classifier.class_names == ("LABEL_0", "LABEL_1", "LABEL_2") and bert.pretrainer is None


def test_the_path_in_the_checkpoint_file_is_not_followed(tmp_path):
    write_google_folder(tmp_path / "elsewhere")
    write_google_folder(tmp_path / "here", slots=False)
    for recorded in (tmp_path / "elsewhere", "/another/machine"):
        text = f'model_checkpoint_path: "{recorded}/bert_model.ckpt"\n'
        (tmp_path / "here/checkpoint").write_text(text, encoding="utf-8")
        report = load_pretrained(tmp_path / "here").report
        assert not report.left_out
        assert f"the file checkpoint records {recorded}/bert_model.ckpt; that path was not used" in str(report)


def test_of_several_checkpoints_the_recorded_one_is_read(tmp_path):
    write_google_folder(tmp_path, prefix="model.ckpt-1")
    tensors, config = write_google_folder(tmp_path, prefix="model.ckpt-2", slots=False)
    with pytest.raises(CheckpointError, match="must hold one checkpoint.*Received: model.ckpt-1, model.ckpt-2 in"):
        load_pretrained(tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-2"\n', encoding="utf-8")
    bert = load_pretrained(tmp_path)
    assert "model.ckpt-2, the latest by the file checkpoint, of 2 checkpoints" in bert.report.notes
    require_equal_pretrainer(bert, tensors, config)


@pytest.mark.parametrize("name", ["bert_config.json", "vocab.txt"])
def test_a_file_missing_beside_a_checkpoint_is_named(tmp_path, name):
    write_google_folder(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(CheckpointError, match=f"must hold bert_config.json.*Missing: {name}. Found: "):
        load_pretrained(tmp_path)


def test_damaged_checkpoints_are_refused(tmp_path):
    write_google_folder(tmp_path)
    data, index = tmp_path / "bert_model.ckpt.data-00000-of-00001", tmp_path / "bert_model.ckpt.index"
    whole = data.read_bytes(), index.read_bytes()
    flipped = bytearray(whole[0])
    flipped[100] ^= 1
    for content, message in ((whole[0][:-9], "as large as its index says"), (bytes(flipped), "complete and undamaged")):
        data.write_bytes(content)
        with pytest.raises(CheckpointError, match=message):
            load_pretrained(tmp_path)
    data.write_bytes(whole[0])
    for content in (whole[1][:-9], b"", b"\xff" * 300):
        index.write_bytes(content)
        with pytest.raises(CheckpointError, match="complete and undamaged. Received: .*bert_model.ckpt: "):
            load_pretrained(tmp_path)
    index.write_bytes(whole[1])
    data.unlink()
    with pytest.raises(CheckpointError, match="needs all its files bert_model.ckpt.data-…. Received: none"):
        load_pretrained(tmp_path)


def test_a_configuration_far_larger_than_the_weights_is_refused_before_a_model_is_made(tmp_path):
    write_google_folder(tmp_path)
    config = json.loads((tmp_path / "bert_config.json").read_text(encoding="utf-8"))
    (tmp_path / "bert_config.json").write_text(json.dumps(config | {"vocab_size": 10**12}), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"word_embeddings: expected shape \(1000000000000, 16\)"):
        load_pretrained(tmp_path)


def test_a_checkpoint_of_tf_models_equals_numpy(tmp_path):
    tensors, config = write_tf_models_checkpoint(tmp_path)
    bert = load_pretrained(tmp_path)
    require_equal_pretrainer(bert, tensors, config, ("mlm_logits", "pooled_output"))
    assert bert.report.kind == "TF-Models checkpoint" and bert.tokenizer is None
    assert bert.config.num_attention_heads == 4 and bert.config.intermediate_size == 24
    assert "no vocabulary in the source: there is no tokenizer" in bert.report.notes
    assert list(bert.report.left_out) == ["save_counter/.ATTRIBUTES/VARIABLE_VALUE"]


def test_configuration_and_vocabulary_beside_a_checkpoint_of_tf_models_are_used(tmp_path):
    write_google_folder(tmp_path / "google", hidden_dropout_prob=0.2)
    write_tf_models_checkpoint(tmp_path / "models")
    for name in ("bert_config.json", "vocab.txt"):
        shutil.copy(tmp_path / "google" / name, tmp_path / "models" / name)
    bert = load_pretrained(tmp_path / "models")
    assert bert.config.hidden_dropout_prob == 0.2 and bert.tokenizer.lowercase


def test_the_older_names_of_tf_models(tmp_path):
    def older(name):
        if "cls/" in name:
            return name.removeprefix("bert/")
        name = name.replace("transformer/", "encoder/").replace(
            "self_attention/attention_output", "self_attention_output"
        )
        name = name.replace("position_embedding/embeddings", "embedding_postprocessor/position_embeddings")
        name = name.replace("type_embeddings/embeddings", "embedding_postprocessor/type_embeddings")
        return "bert_model/" + name.replace("embeddings/layer_norm", "embedding_postprocessor/layer_norm")

    tensors, config = write_tf_models_checkpoint(tmp_path, name_of=older)
    require_equal_pretrainer(load_pretrained(tmp_path), tensors, config, ("mlm_logits", "pooled_output"))


def test_a_next_sentence_head_with_its_own_pooler_and_a_slot_are_left_out(tmp_path):
    head = tf.Module()
    head.logits = tf.Variable(tf.ones((16, 2)), name="predictions/transform/logits/kernel")
    whole = tf.Module()  # as in a checkpoint of the whole BertPretrainerV2
    whole.dense = tf.Variable(tf.ones((16, 16)), name="bert/next_sentence/pooler_dense/kernel")
    optimizer = tf.Module()
    optimizer.iterations = tf.Variable(3, dtype=tf.int64, name="iter")
    write_tf_models_checkpoint(tmp_path, extra={"next_sentence": head, "heads": whole, "optimizer": optimizer})
    left_out = load_pretrained(tmp_path).report.left_out
    assert "pooler of its own" in left_out["next_sentence/logits/.ATTRIBUTES/VARIABLE_VALUE"]
    assert "pooler of its own" in left_out["heads/dense/.ATTRIBUTES/VARIABLE_VALUE"]
    assert "of the optimizer" in left_out["optimizer/iterations/.ATTRIBUTES/VARIABLE_VALUE"]


def test_an_object_checkpoint_of_something_else_is_refused(tmp_path):
    tf.train.Checkpoint(weight=tf.Variable([1.0])).save(str(tmp_path / "ckpt"))
    with pytest.raises(
        CheckpointError, match="must hold the tensors of a BERT encoder.*Received: save_counter, weight"
    ):
        load_pretrained(tmp_path)


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_saved_model_equals_numpy_and_its_graph_is_not_run(tmp_path, lowercase):
    tensors, config = write_saved_model(tmp_path, lowercase=lowercase)
    bert = load_pretrained(tmp_path)
    require_equal_pretrainer(bert, tensors, config, ("mlm_logits", "pooled_output"))
    assert bert.report.kind == "TF-Hub SavedModel" and bert.report.heads == ("pooler", "masked_lm")
    assert bert.tokenizer.lowercase == lowercase and bert.tokenizer.vocab_size == config["vocab_size"]


def test_the_vocabulary_of_a_saved_model_must_lie_in_its_assets(tmp_path):
    write_saved_model(tmp_path)
    (tmp_path / "assets/words.txt").rename(tmp_path / "words.txt")
    with pytest.raises(CheckpointError, match="vocabulary, must be a file in .*assets. Received: 'words.txt'"):
        load_pretrained(tmp_path)
    model = (tmp_path / "saved_model.pb").read_bytes()
    (tmp_path / "saved_model.pb").write_bytes(model.replace(b"words.txt", b"../w.txt/"))
    with pytest.raises(CheckpointError, match="Received: '../w.txt/'"):
        load_pretrained(tmp_path)


def test_a_saved_model_without_vocabulary_has_no_tokenizer(tmp_path):
    write_saved_model(tmp_path, vocabulary=False)
    assert load_pretrained(tmp_path).tokenizer is None


@pytest.mark.parametrize(
    ("name", "goldens", "heads"),
    [
        ("encoder_v1", "goldens_encoder_v1", ("pooler",)),
        ("encoder_v3", "goldens_encoder", ("pooler",)),
        ("encoder_v4_with_mlm", "goldens_encoder", ("pooler", "masked_lm")),
        ("tf_models_checkpoint", "goldens_encoder", ("pooler", "masked_lm")),
    ],
)
def test_the_outputs_of_tf_models_own_code(shared, name, goldens, heads):
    golden, bert = np.load(shared / f"fixtures/hub/{goldens}.npz"), load_pretrained(shared / "fixtures/hub" / name)
    inputs = {key: golden[key] for key in INPUTS}
    outputs = bert.encoder(inputs)
    for key in {"pooled_output", "sequence_output", "encoder_outputs"} & set(golden):
        np.testing.assert_allclose(outputs[key], golden[key], atol=1e-5)
    assert bert.report.heads == heads and (bert.tokenizer is None) == (name == "tf_models_checkpoint")
    if bert.pretrainer:
        outputs = bert.pretrainer(inputs | {"masked_lm_positions": golden["masked_lm_positions"]})
        np.testing.assert_allclose(outputs["mlm_logits"], golden["mlm_logits"], atol=1e-5)


def test_what_a_saved_model_says_of_itself(shared, tmp_path):
    folder = shutil.copytree(shared / "fixtures/hub/encoder_v4_with_mlm", tmp_path / "m")
    bert = load_pretrained(folder)
    assert "lowercase=True (the variable do_lower_case of the SavedModel)" in bert.report.notes
    assert "hidden_act=gelu_tanh (keras_metadata.pb)" in bert.report.notes
    assert bert.tokenizer.vocab_size == 5000
    metadata = (folder / "keras_metadata.pb").read_bytes()
    (folder / "keras_metadata.pb").write_bytes(metadata.replace(b"Text>gelu", b"Text>mish"))
    with pytest.raises(CheckpointError, match="inner_activation must be one of .*Received: Text>mish"):
        load_pretrained(folder)
    (folder / "keras_metadata.pb").write_bytes(metadata.replace(b'"norm_epsilon": 1e-12', b'"norm_epsilon": 1e-10', 1))
    with pytest.raises(CheckpointError, match="all layers must have one norm_epsilon. Received: .1e-12, 1e-10."):
        load_pretrained(folder)
    (folder / "keras_metadata.pb").write_bytes(metadata.replace(b'"norm_epsilon": 1e-12', b'"norm_epsilon": 1e-10'))
    assert load_pretrained(folder).config.layer_norm_eps == 1e-10
    (folder / "keras_metadata.pb").unlink()
    notes = load_pretrained(folder).report.notes
    assert "hidden_act=gelu_tanh (by rule: the GELU of TF-Models is the tanh form)" in notes
    (folder / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(CheckpointError, match="saved_model.pb cannot be read"):
        load_pretrained(folder)


def test_saved_models_that_are_no_encoder_are_refused(shared, tmp_path):
    with pytest.raises(CheckpointError, match="must be given weights.*Give it to load_preprocessor"):
        load_pretrained(shared / "fixtures/hub/preprocess_v3")
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(CheckpointError, match="Missing: variables/variables.index"):
        load_pretrained(tmp_path)
    save_arrays(tmp_path / "variables/variables", {"module/bert/pooler/dense/bias": np.ones(3, "float32")})
    with pytest.raises(CheckpointError, match="must hold a graph without the tag train. Received: tags"):
        load_pretrained(tmp_path)


def test_the_tiny_checkpoint_of_the_original_code(shared):
    bert = load_pretrained(shared / "fixtures/tf1_checkpoint")
    reader = tf.train.load_checkpoint(str(shared / "fixtures/tf1_checkpoint/bert_model.ckpt"))
    names = [name for name in reader.get_variable_to_shape_map() if not name.endswith(("adam_m", "adam_v", "_step"))]
    assert sorted(bert.report.assigned) == sorted(names) and len(bert.report.left_out) == 2 * len(names) + 1
    kernel = bert.encoder.get_layer("block_1").attention.qkv.kernel
    theirs = [
        reader.get_tensor(f"bert/encoder/layer_1/attention/self/{part}/kernel") for part in ("query", "key", "value")
    ]
    np.testing.assert_array_equal(kernel, np.concatenate(theirs, axis=-1))
    assert bert.report.heads == ("pooler", "masked_lm", "next_sentence") and bert.tokenizer.vocab_size == 15
