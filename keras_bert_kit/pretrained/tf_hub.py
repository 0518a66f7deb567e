"""Reads TF-Hub's TF2 SavedModels of BERT, version 1 to 4: variables, vocabulary and settings; no graph is executed.

The variables come through the checkpoint reader, their names from the object graph beside them; `saved_model.pb` is
parsed as data, for the name of the vocabulary among the assets. What Keras wrote about the layers into
`keras_metadata.pb` is text; of it we take the activation, the epsilon and the dropout rates. What the kit wrote has a
`kit.json` among the assets instead, which says all that and the tokenizer's settings.
"""

import dataclasses
import itertools
import re

from keras_bert_kit.config import BertConfig
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.pretrained.checksums import require_checksums
from keras_bert_kit.pretrained.google_tf1 import holds_object_graph, index_file
from keras_bert_kit.pretrained.kit_file import read_kit_file
from keras_bert_kit.pretrained.read_checkpoint import CheckpointFile, data_files
from keras_bert_kit.pretrained.read_saved_model import MODEL, asset_file, read_meta_graphs
from keras_bert_kit.pretrained.source import object_in, read_tokenizer
from keras_bert_kit.pretrained.tf_models import arrays_of, config_from_shapes, source_of

METADATA = "keras_metadata.pb"
FILES = f"{MODEL}, variables/ and assets/"

_LOWERCASE = "do_lower_case"
_ASSETS = ("vocab_file", "kit_file")
# TF-Models registers its activations under "Text"; its "gelu" is the tanh form.
_ACTIVATIONS = {"Text>gelu": "gelu_tanh", "gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh"}
_NUMBERS = {
    "norm_epsilon": "layer_norm_eps",
    "output_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}


def find(folder):
    """Returns (kind, folder, files of weights), or None if the folder is no SavedModel of TF2.

    Raises:
        CheckpointError: Its variables are missing.
    """
    if not (folder / MODEL).is_file():
        return None
    prefix = folder / "variables" / "variables"
    if not index_file(prefix).is_file():
        raise CheckpointError(f"A SavedModel must hold {FILES}. Missing: variables/variables.index in {folder}.")
    if not holds_object_graph(prefix):
        return None
    return "TF-Hub SavedModel", folder, [*data_files(prefix), index_file(prefix)]


def read(folder):
    """Reads a folder that `find` found; returns a `Source`, without tokenizer where there is no vocabulary.

    Raises:
        CheckpointError: A file is damaged, or holds no BERT.
        VocabularyError: The vocabulary is not one.
    """
    arrays = arrays_of(CheckpointFile(folder / "variables" / "variables"))
    assets = _assets_of(folder)
    kit, options = read_kit_file(assets.get("kit_file"))
    head = {}
    if "kit_file" in assets:
        config, head, notes = _config_of_ours(kit, assets["kit_file"])
    else:
        config, notes = config_from_shapes(arrays, _settings_in(folder / METADATA))
    tokenizer = None
    if vocabulary := assets.get("vocab_file"):
        recorded = object_in(kit, "sha256", assets.get("kit_file"))
        require_checksums(vocabulary.parent, recorded, {vocabulary.name: sha256_of(vocabulary)})
        said = _LOWERCASE in arrays and arrays.shape(_LOWERCASE) == ()
        lowercase = {"lowercase": bool(arrays[_LOWERCASE]) if said else None}
        lowercase |= {"lowercase_from": f"the variable {_LOWERCASE} of the SavedModel"}
        tokenizer, note = read_tokenizer(vocabulary, rows=config.vocab_size, **lowercase | options)
        notes = [*notes, note]
    return dataclasses.replace(source_of(arrays, config, tokenizer, notes, settings=[_LOWERCASE]), **head)


def _config_of_ours(kit, path):
    """What a kit.json says: the config, the masked-LM head's own activation and epsilon, and notes."""
    config = BertConfig.from_dict(object_in(kit, "config", path))
    head, fields = object_in(kit, "masked_lm", path), {}
    if head:
        values = {"hidden_act": head.get("activation"), "layer_norm_eps": head.get("epsilon")}
        checked = BertConfig.from_dict(config.to_dict() | values)
        fields = {"head_activation": checked.hidden_act, "head_epsilon": checked.layer_norm_eps}
    stated = [f"hidden_act={config.hidden_act}", f"layer_norm_eps={config.layer_norm_eps:g}"]
    return config, fields, [f"{setting} ({path.name} says so, written by the kit)" for setting in stated]


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


def _assets_of(folder):
    """The files that the SavedModel has as attributes: {name of the attribute: path}."""
    assets = {}
    for graph in read_meta_graphs(folder):
        nodes = list(itertools.islice(graph.one("object_graph_def").each("nodes"), 1))
        children = nodes[0].each("children") if nodes else ()
        numbers = {name: child.one("node_id") for child in children if (name := child.one("local_name")) in _ASSETS}
        for name, number in numbers.items():
            node = _numbered(graph.one("object_graph_def").each("nodes"), number)
            number = node.one("asset").one("asset_file_def_index") if node else -1
            file = _numbered(graph.each("asset_file_def"), number)
            assets[name] = asset_file(folder, file.one("filename") if file else "")
    return assets


def _numbered(messages, number):
    """The message of that number, or None."""
    return next(itertools.islice(messages, number, None), None) if number >= 0 else None
