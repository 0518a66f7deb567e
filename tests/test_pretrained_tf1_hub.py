"""TF1 modules: equal to what their own graph computes in a session; what no tensor says is read out of the graph."""

import dataclasses
import shutil

import numpy as np
import pytest
import tensorflow as tf
from fake_checkpoints import write_google_folder
from fake_tf1_hub import run_tf1_module, write_tf1_module
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
THEIRS = {"input_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "segment_ids": (IDS > 31).astype("int32")}
OURS = dict(zip(("input_word_ids", "input_mask", "input_type_ids"), THEIRS.values(), strict=True))
POSITIONS = np.array([[1, 2], [0, 6]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prefix": "module/", "sequence": 7, "lowercase": False},
        {"hidden_act": "relu", "layer_norm_eps": 1e-5, "num_attention_heads": 2},
        {"hidden_act": "gelu"},
        {"hidden_act": "silu"},
        {"hidden_act": "tanh"},
    ],
)
def test_a_module_equals_its_own_graph(tmp_path, options):
    write_tf1_module(tmp_path, **options)
    bert = load_pretrained(tmp_path)
    expected = run_tf1_module(tmp_path, "mlm", THEIRS | {"mlm_positions": POSITIONS})
    outputs = bert.pretrainer(OURS | {"masked_lm_positions": POSITIONS})
    for key in ("mlm_logits", "sequence_output", "pooled_output"):
        np.testing.assert_allclose(outputs[key], expected[key], atol=1e-5)
    assert bert.report.kind == "TF-Hub module of TF1" and not bert.report.left_out
    assert bert.report.heads == ("pooler", "masked_lm")
    assert bert.tokenizer.lowercase == options.get("lowercase", True)
    assert bert.config.num_attention_heads == options.get("num_attention_heads", 4)
    notes = ("num_attention_heads=", "hidden_act=", "layer_norm_eps=")
    assert [any(note.startswith(start) and "from the graph" in note for note in bert.report.notes) for start in notes]


def test_a_module_without_masked_lm_head(tmp_path):
    write_tf1_module(tmp_path, heads=())
    bert = load_pretrained(tmp_path)
    expected = run_tf1_module(tmp_path, "tokens", THEIRS)
    np.testing.assert_allclose(bert.encoder(OURS)["pooled_output"], expected["pooled_output"], atol=1e-5)
    assert bert.pretrainer is None


def without_nodes(*parts):
    """A change of a graph: nodes whose name holds one of the parts are renamed, so that nothing finds them."""

    def change(graph):
        for node in graph.graph_def.node:
            for part in parts:
                node.name = node.name.replace(part, "unknown")

    return change


def test_where_the_graph_is_silent_the_rule_is_stated(tmp_path):
    silent = without_nodes("self/Reshape", "intermediate/dense/", "batchnorm/add/y")
    write_tf1_module(tmp_path, hidden_size=128, num_attention_heads=2, changes=[silent])
    bert = load_pretrained(tmp_path)
    assert bert.config.num_attention_heads == 2
    assert "num_attention_heads=2 (by rule: Google's heads are 64 wide; the graph says nothing)" in bert.report.notes
    assert "hidden_act=gelu_tanh (by rule: the GELU of the original BERT is the tanh form)" in bert.report.notes
    assert "layer_norm_eps=1e-12 (by rule: the original BERT has no other)" in bert.report.notes


def test_a_number_of_heads_that_no_rule_gives_is_an_error(tmp_path):
    write_tf1_module(tmp_path, changes=[without_nodes("self/Reshape")])
    with pytest.raises(CheckpointError, match="must say how many attention heads.*Received: nothing for a hidden size"):
        load_pretrained(tmp_path)


def constants(pattern, value):
    """A change of a graph: the first constant whose name ends so gets another value."""

    def change(graph):
        node = next(node for node in graph.graph_def.node if node.name.endswith(pattern))
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (constants("layer_0/attention/self/Reshape/shape", np.array([2, 7, 2, 8], "int32")), "Received: .2, 4. for"),
        (constants("attention/output/LayerNorm/batchnorm/add/y", np.float32(1e-3)), "one epsilon.*0.001, 1e-12"),
    ],
)
def test_a_graph_that_contradicts_itself_is_refused(tmp_path, change, message):
    def fixed_batch(graph):  # a batch size that is known makes the shape one constant, as where it was fixed
        for node in graph.graph_def.node:
            if node.op == "Pack" and node.name.endswith("layer_0/attention/self/Reshape/shape"):
                node.op = "Const"
                node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.array([2, 7, 4, 4], "int32")))

    write_tf1_module(tmp_path, sequence=7, changes=[fixed_batch, change])
    with pytest.raises(CheckpointError, match=message):
        load_pretrained(tmp_path)


def test_the_vocabulary_is_the_asset_behind_the_signature(tmp_path):
    def renamed(graph):
        (packed,) = graph.collection_def["saved_model_assets"].any_list.value
        packed.value = packed.value.replace(b"vocab.txt", b"../ab.txt")

    write_tf1_module(tmp_path / "outside", changes=[renamed])
    (tmp_path / "outside/ab.txt").write_text("[PAD]", encoding="utf-8")
    with pytest.raises(CheckpointError, match="must be a file in .*assets. Received: '../ab.txt'"):
        load_pretrained(tmp_path / "outside")
    write_tf1_module(tmp_path / "none", changes=[lambda graph: graph.signature_def.pop("tokenization_info")])
    bert = load_pretrained(tmp_path / "none")
    assert bert.tokenizer is None and "no vocabulary in the source: there is no tokenizer" in bert.report.notes


def test_a_constant_that_describes_terabytes_is_not_made(tmp_path):
    def enormous(graph):
        for node in graph.graph_def.node:
            if node.op == "Const":
                shape = node.attr["value"].tensor.tensor_shape
                del shape.dim[:]
                shape.dim.add().size = 10**12

    write_tf1_module(tmp_path, hidden_size=64, num_attention_heads=1, changes=[enormous])
    assert "by rule" in " ".join(load_pretrained(tmp_path).report.notes)


def test_damaged_and_other_modules_are_refused(tmp_path):
    write_tf1_module(tmp_path)
    path = tmp_path / "saved_model.pb"
    whole = path.read_bytes()
    model = SavedModel.FromString(whole)
    del model.meta_graphs[0]
    path.write_bytes(model.SerializeToString())
    with pytest.raises(CheckpointError, match="a graph without the tag train. Received: tags ..'train'"):
        load_pretrained(tmp_path)
    path.write_bytes(whole[:100])
    with pytest.raises(CheckpointError, match="saved_model.pb cannot be read"):
        load_pretrained(tmp_path)
    path.write_bytes(whole)
    prefix = str(tmp_path / "variables/variables")
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["w"], shape_and_slices=[""], tensors=[tf.constant([1.0])])
    with pytest.raises(CheckpointError, match="the tensors of a BERT encoder, as the original BERT.*Received: w"):
        load_pretrained(tmp_path)


def test_a_meta_file_beside_a_checkpoint_need_not_be_readable(tmp_path):
    write_google_folder(tmp_path)
    notes = load_pretrained(tmp_path).report.notes
    for content in (b"", b"\xff" * 99, b"\x12\x02\x0a\x00"):
        (tmp_path / "bert_model.ckpt.meta").write_bytes(content)
        assert load_pretrained(tmp_path).report.notes == notes


def test_the_graph_that_the_original_code_made_says_the_same(shared, tmp_path):
    # A .meta file holds the graph of google-research/bert. This one is of an early version, whose GELU was the erf
    # form; bert_config.json, read alone, means today's code and its tanh form.
    folder = shared / "fixtures/tf1_checkpoint"
    model = SavedModel()
    graph = model.meta_graphs.add()
    graph.ParseFromString((folder / "bert_model.ckpt.meta").read_bytes())
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    for part in ("index", "data-00000-of-00001"):
        shutil.copy(folder / f"bert_model.ckpt.{part}", tmp_path / f"variables/variables.{part}")
    module, checkpoint = load_pretrained(tmp_path), load_pretrained(folder)
    assert module.config == dataclasses.replace(checkpoint.config, hidden_act="gelu_erf")
    assert module.report.heads == checkpoint.report.heads
    note = "the graph in bert_model.ckpt.meta has gelu_erf, as Google's code had before February 2019"
    assert f"{note}; gelu_tanh was loaded" in checkpoint.report.notes
    stated = [note.split("=")[0] for note in module.report.notes if note.endswith("(from the graph, read as data)")]
    assert stated == ["num_attention_heads", "hidden_act", "layer_norm_eps"]
