"""Protobuf messages are looked into: the same values as protobuf's own, damage is named, bombs stay small."""

import tracemalloc
from pathlib import Path

import pytest
import tensorflow as tf
from fake_tf1_hub import write_tf1_module
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.pretrained.read_message import Message

PATH = Path("folder/saved_model.pb")


def saved_model():
    """A SavedModel with a graph, a signature, tags and an asset."""
    model = SavedModel(saved_model_schema_version=1)
    graph = model.meta_graphs.add()
    with tf.Graph().as_default() as of_graph:
        tf.constant([1, 2], name="pair") + tf.constant(3)
        graph.graph_def.CopyFrom(of_graph.as_graph_def())
    graph.meta_info_def.tags.extend(["serve", "gpu"])
    graph.signature_def["tokens"].inputs["ids"].name = "ids:0"
    graph.signature_def["tokens"].inputs["ids"].tensor_shape.dim.add().size = -1
    graph.asset_file_def.add().filename = "Wörter.txt"
    return model


def test_fields_are_those_that_protobuf_finds():
    model = saved_model()
    message = Message(SavedModel, model.SerializeToString(), PATH)
    (expected,), (graph,) = model.meta_graphs, message.each("meta_graphs")
    assert message.one("saved_model_schema_version") == 1
    nodes = list(graph.one("graph_def").each("node"))
    assert [node.one("name") for node in nodes] == [node.name for node in expected.graph_def.node]
    assert [list(node.each("input")) for node in nodes] == [list(node.input) for node in expected.graph_def.node]
    assert nodes[0].entry("attr", "value").one("tensor").whole() == expected.graph_def.node[0].attr["value"].tensor
    assert list(graph.one("meta_info_def").each("tags")) == ["serve", "gpu"]
    ids = graph.entry("signature_def", "tokens").entry("inputs", "ids")
    assert ids.one("name") == "ids:0" and next(ids.one("tensor_shape").each("dim")).one("size") == -1
    assert [asset.one("filename") for asset in graph.each("asset_file_def")] == ["Wörter.txt"]


def test_what_is_not_there_is_empty():
    (graph,) = Message(SavedModel, saved_model().SerializeToString(), PATH).each("meta_graphs")
    nothing = graph.entry("signature_def", "other")
    assert nothing.one("method_name") == "" and list(nothing.each("inputs")) == []
    assert graph.one("saver_def").one("max_to_keep") == 0


@pytest.mark.parametrize(
    "content",
    [
        b"\x12\x05abc",  # longer than the file
        b"\x12" + b"\xff" * 11,  # a length that does not end
        b"\x13\x00",  # a group, which nothing here uses
        b"\x10\x01",  # a number where a message must be
    ],
)
def test_damage_is_named(content):
    with pytest.raises(CheckpointError, match="folder/saved_model.pb cannot be read: .*Fetch it again"):
        list(Message(SavedModel, content, PATH).each("meta_graphs"))


def test_only_small_messages_are_parsed_as_a_whole():
    with pytest.raises(CheckpointError, match="cannot be read: a SavedModel of 70000 bytes"):
        Message(SavedModel, bytes(70_000), PATH).whole()
    with pytest.raises(CheckpointError, match="cannot be read"):
        Message(SavedModel, b"\x12\x05abc", PATH).whole()


def length(number):
    return bytes([number & 127 | 128, number >> 7 & 127 | 128, number >> 14])


def test_a_million_empty_messages_are_refused_in_little_memory(tmp_path):
    write_tf1_module(tmp_path)
    nodes = b"\x0a\x00" * 1_000_000
    graph = b"\x12" + length(len(nodes)) + nodes
    (tmp_path / "saved_model.pb").write_bytes(b"\x12" + length(len(graph)) + graph)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match="must have at most 65536 nodes. Received: more"):
            load_pretrained(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    (tmp_path / "saved_model.pb").write_bytes(b"\x12\x00" * 1_000_000)
    with pytest.raises(CheckpointError, match="must hold at most 8 graphs. Received: more"):
        load_pretrained(tmp_path)
