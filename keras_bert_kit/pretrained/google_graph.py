"""What the graph of the original BERT says, read as data, and no tensor does: attention heads, activation, epsilon.

Each function returns a pair of what it found, or what holds by rule where the graph is silent, and a note for the
report that says which of both. Source: https://github.com/google-research/bert, modeling.py.
"""

from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.read_message import Message
from keras_bert_kit.pretrained.read_saved_model import Graph

_HEAD_SIZE = 64  # of all of Google's releases
_ACTIVATIONS = {"Erf": "gelu_erf", "Erfc": "gelu_erf", "Relu": "relu", "Sigmoid": "silu", "Tanh": "tanh"}


def num_heads_in(graph, hidden_size):
    """Finds the number of attention heads: in the shape (batch, sequence, heads, head size) of queries and keys.

    Args:
        graph: `Graph`.
        hidden_size: int.

    Raises:
        CheckpointError: The graph says nothing, or several things, and no rule gives a number.
    """
    found = set()
    for _, op, inputs in graph.nodes_like(r"bert/encoder/layer_0/attention/self/Reshape(_\d+)?"):
        shape = graph.vector(inputs[1]) if op == "Reshape" and len(inputs) == 2 else []
        if len(shape) == 4 and None not in shape[2:] and shape[2] * shape[3] == hidden_size:
            found.add(int(shape[2]))
    if len(found) == 1:
        (heads,) = found
        return heads, f"num_attention_heads={heads} (from the graph, read as data)"
    if found or hidden_size % _HEAD_SIZE:
        raise CheckpointError(
            "The graph must say how many attention heads there are: no tensor does. Received: "
            f"{sorted(found) or 'nothing'} for a hidden size of {hidden_size}. Take another version of the model."
        )
    heads = hidden_size // _HEAD_SIZE
    return heads, f"num_attention_heads={heads} (by rule: Google's heads are {_HEAD_SIZE} wide; the graph says nothing)"


def activation_in(graph):
    """Finds the activation: in the operations after the first dense layer of a block.

    Until February 2019 the GELU of google-research/bert was the erf form, since then it is the tanh form.

    Args:
        graph: `Graph`.

    Raises:
        CheckpointError: There are several.
    """
    if activation := _activation_in(graph):
        return activation, f"hidden_act={activation} (from the graph, read as data)"
    return "gelu_tanh", "hidden_act=gelu_tanh (by rule: the GELU of the original BERT is the tanh form)"


def _activation_in(graph):
    ops = {op for _, op, _ in graph.nodes_like(r"bert/encoder/layer_0/intermediate/dense/.*")}
    found = {_ACTIVATIONS[op] for op in ops & _ACTIVATIONS.keys()}
    if found == {"tanh"} and "Pow" in ops:
        found = {"gelu_tanh"}
    if len(found) > 1:
        raise CheckpointError(f"The graph must have one activation in a layer. Received: {', '.join(sorted(found))}.")
    return found.pop() if found else None


def epsilon_in(graph):
    """Finds what is added to the variance in LayerNorm.

    Args:
        graph: `Graph`.

    Raises:
        CheckpointError: Layers differ.
    """
    values = [graph.constant(name) for name, _, _ in graph.nodes_like(r"bert/.*LayerNorm/batchnorm/add/y")]
    found = {f"{value.item():.6g}" for value in values if value is not None and value.size == 1}
    if len(found) > 1:
        raise CheckpointError(f"All layers must have one epsilon of LayerNorm. Received: {', '.join(sorted(found))}.")
    if found:
        return float(*found), f"layer_norm_eps={float(*found):g} (from the graph, read as data)"
    return 1e-12, "layer_norm_eps=1e-12 (by rule: the original BERT has no other)"


def notes_on_meta_file(path, activation):
    """Says so, for the report, if the graph beside a checkpoint has another activation than the one that is loaded.

    Args:
        path: `pathlib.Path` of the file `<prefix>.meta`, which need not be there, nor be readable.
        activation: str, the `hidden_act` that is loaded.

    Returns:
        List of no or one note.
    """
    if not path.is_file():
        return []
    try:
        found = _activation_in(Graph(Message(MetaGraphDef, path.read_bytes(), path), path))
    except CheckpointError:
        return []  # nothing else is taken from this file
    if found in (None, activation):
        return []
    return [f"the graph in {path.name} has {found}, as Google's code had before February 2019; {activation} was loaded"]
