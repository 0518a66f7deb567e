"""Reads `saved_model.pb` as data: its graphs are looked at and never executed."""

import itertools
import math
import re

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import AssetFileDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.read_message import Message

MODEL = "saved_model.pb"

_ASSETS = "saved_model_assets"  # where TF1 keeps the list of assets
_MOST_GRAPHS, _MOST_NODES = 8, 1 << 16  # that of a BERT of 24 layers has a tenth of them
_SMALL = 16  # numbers in the largest constant that is looked at


def read_meta_graphs(folder):
    """Returns a list of `Message`, each a `MetaGraphDef` in the SavedModel of a folder.

    Raises:
        CheckpointError: The file is damaged.
    """
    path = folder / MODEL
    model = Message(SavedModel, path.read_bytes(), path)
    graphs = list(itertools.islice(model.each("meta_graphs"), _MOST_GRAPHS + 1))
    if len(graphs) > _MOST_GRAPHS:
        raise CheckpointError(f"{path} must hold at most {_MOST_GRAPHS} graphs. Received: more.")
    return graphs


def asset_file(folder, name):
    """Returns the path of an asset of a SavedModel, which must lie among its assets and nowhere else.

    Args:
        folder: `pathlib.Path` of the SavedModel.
        name: str, the name that the SavedModel has for it.

    Raises:
        CheckpointError: There is no such file.
    """
    path = folder / "assets" / name
    if path.parent != folder / "assets" or not path.is_file():
        raise CheckpointError(
            f"An asset, such as the vocabulary, must be a file in {folder / 'assets'}. Received: {name!r}. "
            "Fetch it again."
        )
    return path


class Graph:
    """What is looked up in a graph of TF1.

    Args:
        graph: `Message` of a `MetaGraphDef`.
        path: `pathlib.Path` of its file, for messages.

    Raises:
        CheckpointError: It has far more nodes than a BERT.
    """

    def __init__(self, graph, path):
        self._graph, self._path = graph, path
        nodes = list(itertools.islice(graph.one("graph_def").each("node"), _MOST_NODES + 1))
        if len(nodes) > _MOST_NODES:
            raise CheckpointError(f"A graph in {path} must have at most {_MOST_NODES} nodes. Received: more.")
        self._nodes = {node.one("name"): node for node in nodes}

    def nodes_like(self, pattern):
        """Yields the nodes whose name, or what follows a / in it, matches a regular expression as a whole.

        Args:
            pattern: str.

        Returns:
            Generator of triples of the name, the operation and the list of the names of the first inputs.
        """
        matches = re.compile(f"(?:.*/)?{pattern}").fullmatch
        for name, node in self._nodes.items():
            if matches(name):
                yield name, node.one("op"), list(itertools.islice(node.each("input"), _SMALL))

    def output(self, signature, key):
        """The name of a tensor that a signature returns, or an empty string."""
        return self._graph.entry("signature_def", signature).entry("outputs", key).one("name")

    def constant(self, name):
        """The value of a tensor if it is a small constant of numbers, else None."""
        node = self._nodes.get(name.split(":")[0])
        if node is None or node.one("op") != "Const":
            return None
        tensor = node.entry("attr", "value").one("tensor").whole()
        if math.prod(dimension.size for dimension in tensor.tensor_shape.dim) not in range(1, _SMALL + 1):
            return None
        try:
            value = tf.make_ndarray(tensor)
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"{self._path} cannot be read: the constant {name}: {error}.") from None
        return value if value.dtype.kind in "biuf" else None

    def vector(self, name):
        """The numbers of a vector as far as they are constants: a list of numbers and None."""
        node = self._nodes.get(name.split(":")[0])
        if node is not None and node.one("op") == "Pack":
            values = [self.constant(part) for part in itertools.islice(node.each("input"), _SMALL)]
            return [value.item() if value is not None and value.size == 1 else None for value in values]
        value = self.constant(name)
        return [] if value is None else np.ravel(value).tolist()

    def asset_behind(self, signature, key):
        """The name of the file whose path a signature returns, or None."""
        tensor = self.output(signature, key)
        packed = self._graph.entry("collection_def", _ASSETS).one("any_list").each("value")
        listed = (Message(AssetFileDef, one.one("value"), self._path) for one in packed)
        for asset in itertools.chain(self._graph.each("asset_file_def"), listed):
            if tensor and asset.one("tensor_info").one("name") == tensor:
                return asset.one("filename")
        return None
