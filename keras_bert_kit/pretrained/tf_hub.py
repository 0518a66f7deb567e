"""Reads TF-Hub's TF2 SavedModels of BERT, version 1 to 4: variables, vocabulary and settings; no graph is executed.

The variables come through the checkpoint reader, their names from the object graph beside them; `saved_model.pb` is
parsed as data, for the name of the vocabulary among the assets. What Keras wrote about the layers into
`keras_metadata.pb` is text; of it we take the activation, the epsilon and the dropout rates.
"""

import re

from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.google_tf1 import holds_object_graph, index_file
from keras_bert_kit.pretrained.read_checkpoint import CheckpointFile, data_files
from keras_bert_kit.pretrained.source import read_tokenizer
from keras_bert_kit.pretrained.tf_models import arrays_of, config_from_shapes, source_of

MODEL, METADATA = "saved_model.pb", "keras_metadata.pb"
FILES = f"{MODEL}, variables/ and assets/"

_LOWERCASE = "do_lower_case"
# TF-Models registers its activations under "Text"; its "gelu" is the tanh form.
_ACTIVATIONS = {"Text>gelu": "gelu_tanh", "gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh"}
_NUMBERS = {
    "norm_epsilon": "layer_norm_eps",
    "output_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}


def find(folder):
    """Returns (kind, folder, files of weights), or None if the folder is no SavedModel.

    Raises:
        CheckpointError: It is a SavedModel of TF1, or its variables are missing.
    """
    if not (folder / MODEL).is_file():
        return None
    prefix = folder / "variables" / "variables"
    if not index_file(prefix).is_file():
        raise CheckpointError(f"A SavedModel must hold {FILES}. Missing: variables/variables.index in {folder}.")
    if not holds_object_graph(prefix):
        raise CheckpointError(
            f"A SavedModel must be one of TF2, with an object graph. Received: {folder}, a module of TF1 "
            "(TF-Hub's hub.Module format), which is not read yet. Take the TF2 version of the model."
        )
    return "TF-Hub SavedModel", folder, [*data_files(prefix), index_file(prefix)]


def read(folder):
    """Reads a folder that `find` found; returns a `Source`, without tokenizer where there is no vocabulary.

    Raises:
        CheckpointError: A file is damaged, or holds no BERT.
        VocabularyError: The vocabulary is not one.
    """
    checkpoint = CheckpointFile(folder / "variables" / "variables")
    arrays = arrays_of(checkpoint)
    config, notes = config_from_shapes(arrays, _settings_in(folder / METADATA))
    tokenizer = None
    if vocabulary := _vocabulary_of(folder):
        said = _LOWERCASE in arrays and arrays.shape(_LOWERCASE) == ()
        lowercase = bool(arrays[_LOWERCASE]) if said else None
        tokenizer, note = read_tokenizer(vocabulary, lowercase, f"the variable {_LOWERCASE} of the SavedModel")
        notes = [*notes, note]
    return source_of(arrays, config, tokenizer, notes, settings=[_LOWERCASE])


def _settings_in(path):
    """The fields of `BertConfig` that the settings of the layers say."""
    content = path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""
    settings = {}
    for key, field in _NUMBERS.items():
        values = {float(text) for text in re.findall(rf'"{key}": (\d+(?:\.\d+)?(?:e-?\d+)?)[,}}]', content)}
        if len(values) > 1 and field == "layer_norm_eps":
            raise CheckpointError(f"{path}: all layers must have one {key}. Received: {sorted(values)}.")
        if len(values) == 1:
            settings[field] = values.pop()
    names = sorted(set(re.findall(r'"inner_activation": "([^"]*)"', content)))
    if len(names) > 1 or not _ACTIVATIONS.keys() >= set(names):
        raise CheckpointError(
            f"{path}: inner_activation must be one of {', '.join(_ACTIVATIONS)}. Received: {', '.join(names)}."
        )
    return settings | ({"hidden_act": _ACTIVATIONS[names[0]]} if names else {})


def _vocabulary_of(folder):
    """The path of the vocabulary among the assets, or None."""
    model = SavedModel()
    try:
        model.ParseFromString((folder / MODEL).read_bytes())
    except DecodeError as error:
        raise CheckpointError(f"{folder / MODEL} cannot be read: {error}. Fetch it again.") from None
    for graph in model.meta_graphs:
        nodes = graph.object_graph_def.nodes
        for child in nodes[0].children if nodes else ():
            if child.local_name == "vocab_file" and 0 <= child.node_id < len(nodes):
                number, files = nodes[child.node_id].asset.asset_file_def_index, graph.asset_file_def
                name = files[number].filename if 0 <= number < len(files) else ""
                path = folder / "assets" / name
                if path.parent != folder / "assets" or not path.is_file():
                    raise CheckpointError(
                        f"The vocabulary must be a file in {folder / 'assets'}. Received: {name!r}. Fetch it again."
                    )
                return path
    return None
