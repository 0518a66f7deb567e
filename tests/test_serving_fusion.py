"""TensorFlow's optimizer finds all that it can fuse in an exported model, as read off the graph that runs.

A fusion that is lost changes no number, only the time; nobody would notice.
"""

from collections import Counter

import keras
import pytest
import tensorflow as tf
from layer_checks import randomize_weights

from keras_bert_kit import BertClassifier, BertConfig, BertEncoder, BertPacker, BertTokenizer, export_for_serving

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "news", "sport"]


def graph_that_runs(folder, dtype, activation, layers):
    """Nodes, after all optimization, of an exported classifier with weights as constants; without the constants."""
    keras.utils.set_random_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_act=activation,
    )
    model = BertClassifier(BertEncoder(config, dtype=dtype), 2)
    randomize_weights(model)  # a bias of zeros would be optimized away, and with it the pattern
    pack = BertPacker(BertTokenizer(WORDS), None, max_sequence_length=64)
    version = export_for_serving(model, pack, folder / f"{layers}_layers", freeze=True)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signature = tf.compat.v1.saved_model.load(session, ["serve"], str(version)).signature_def["serving_default"]
        options, found = tf.compat.v1.RunOptions(output_partition_graphs=True), tf.compat.v1.RunMetadata()
        feed = {signature.inputs["text"].name: ["news sport sport", "sport"]}
        session.run(signature.outputs["logits"].name, feed, options=options, run_metadata=found)
    return [node for graph in found.partition_graphs for node in graph.node if node.op != "Const"]


def kinds_of(nodes):
    """How many nodes there are of each kind; fused matrix products with what is fused into them."""
    fused = [b"+".join(node.attr["fused_ops"].list.s).decode() for node in nodes]
    return Counter(f"{node.op}[{with_}]" if with_ else node.op for node, with_ in zip(nodes, fused, strict=True))


@pytest.mark.filterwarnings("ignore:.*tf.compat.v1.saved_model.load")
@pytest.mark.parametrize(
    ("dtype", "activation", "gelu"),
    [
        ("float32", "gelu_tanh", "GeluApproximate"),
        ("mixed_bfloat16", "gelu_erf", "GeluExact"),
        pytest.param("float32", "gelu_erf", "GeluExact", marks=pytest.mark.slow),
        pytest.param("mixed_bfloat16", "gelu_tanh", "GeluApproximate", marks=pytest.mark.slow),
    ],
)
def test_a_layer_is_at_most_30_nodes_with_every_fusion(tmp_path, dtype, activation, gelu):
    two, three = (graph_that_runs(tmp_path, dtype, activation, layers) for layers in (2, 3))
    if not any(node.op.startswith("_Mkl") for node in two):
        pytest.skip("TensorFlow runs without oneDNN here (not x86, or TF_ENABLE_ONEDNN_OPTS=0)")
    layer = kinds_of(three) - kinds_of(two)
    assert len(three) - len(two) <= 30, layer
    assert layer["_MklLayerNorm"] == 2
    assert layer["_MklNativeFusedMatMul[BiasAdd]"] == 1  # query, key and value
    assert layer["_MklNativeFusedMatMul[BiasAdd+Add]"] == 2  # with the residual
    assert layer[f"_MklNativeFusedMatMul[BiasAdd+{gelu}]"] == 1
    assert layer["_MklFusedBatchMatMulV2[Mul+Add]"] == 1  # scores, scaled and masked
    assert layer["_MklSoftmax"] == layer["_MklBatchMatMulV2"] == 1
    everything = kinds_of(two)
    assert everything["_MklLayerNorm"] == 5  # that of the embeddings too
    assert not any(everything[op] for op in ("MatMul", "_MklMatMul", "BiasAdd", "Erf", "Tanh", "AddN")), everything
    assert everything["_MklNativeFusedMatMul[BiasAdd+Tanh]"] == 1  # the pooler
