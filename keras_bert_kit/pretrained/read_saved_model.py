"""Reads `saved_model.pb` as data: its graphs are looked at and never executed."""

import math
import re

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.meta_graph_pb2 import AssetFileDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_bert_kit.errors import CheckpointError

MODEL = "saved_model.pb"

_ASSETS = "saved_model_assets"  # where TF1 keeps the list of assets
_SMALL = 16  # numbers in the largest constant that is looked at


def read_meta_graphs(folder):
    """Returns the list of `MetaGraphDef` in the SavedModel of a folder.

    Raises:
        CheckpointError: The file is damaged.
    """
    model = SavedModel()
    try:
        model.ParseFromString((folder / MODEL).read_bytes())
    except DecodeError as error:
        raise CheckpointError(f"{folder / MODEL} cannot be read: {error}. Fetch it again.") from None
    return model.meta_graphs


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
    """What is looked up in the graph of a SavedModel.

    Args:
        graph: `MetaGraphDef`.
    """

    def __init__(self, graph):
        self._graph = graph
        self._nodes = {node.name: node for node in graph.graph_def.node}

    def nodes_like(self, pattern):
        """The nodes whose name, or what follows a / in it, matches a regular expression as a whole."""
        matches = re.compile(f"(?:.*/)?{pattern}").fullmatch
        return [node for name, node in self._nodes.items() if matches(name)]

    def output(self, signature, key):
        """The name of a tensor that a signature returns, or an empty string."""
        signatures = self._graph.signature_def
        outputs = signatures[signature].outputs if signature in signatures else {}
        return outputs[key].name if key in outputs else ""

    def constant(self, name):
        """The value of a tensor if it is a small constant of numbers, else None."""
        node = self._nodes.get(name.split(":")[0])
        if node is None or node.op != "Const":
            return None
        tensor = node.attr["value"].tensor
        if math.prod(dimension.size for dimension in tensor.tensor_shape.dim) not in range(1, _SMALL + 1):
            return None
        try:
            value = tf.make_ndarray(tensor)
        except (TypeError, ValueError) as error:
            raise CheckpointError(f"The constant {node.name} of the graph must be readable: {error}.") from None
        return value if np.issubdtype(value.dtype, np.number) or value.dtype == bool else None

    def vector(self, name):
        """The numbers of a vector as far as they are constants: a list of numbers and None."""
        node = self._nodes.get(name.split(":")[0])
        if node is not None and node.op == "Pack":
            values = [self.constant(part) for part in node.input]
            return [None if value is None else value.item() for value in values if value is None or value.size == 1]
        value = self.constant(name)
        return [] if value is None else value.reshape(-1).tolist()

    def asset_behind(self, signature, key):
        """The name of the file whose path a signature returns, or None."""
        tensor, assets = self.output(signature, key), list(self._graph.asset_file_def)
        collections = self._graph.collection_def
        for packed in collections[_ASSETS].any_list.value if _ASSETS in collections else ():
            asset = AssetFileDef()
            try:
                packed.Unpack(asset)
            except DecodeError as error:
                raise CheckpointError(f"The list of assets in {MODEL} cannot be read: {error}.") from None
            assets.append(asset)
        names = [asset.filename for asset in assets if tensor and asset.tensor_info.name == tensor]
        return names[0] if names else None
