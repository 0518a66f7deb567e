"""Reads TF-Hub's TF1 modules of BERT, which `hub.Module` opened: `saved_model.pb`, `variables/` and `assets/`.

Such a SavedModel holds its graph twice, to be used as it is and with the tag `train`, and no graph of objects. Its
variables have the names of the original BERT. What no tensor says is looked up in the graph, which is read as data: the
number of attention heads in the shape that queries are brought into, the vocabulary behind the signature
`tokenization_info`. Source: https://github.com/tensorflow/hub, native_module.py and saved_model_lib.py.
"""

import itertools
import re

from keras_bert_kit.config import BertConfig
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.google_graph import activation_in, epsilon_in, num_heads_in
from keras_bert_kit.pretrained.google_tf1 import holds_object_graph, index_file
from keras_bert_kit.pretrained.heads import usable_heads
from keras_bert_kit.pretrained.names import GOOGLE, tf1_hub_name
from keras_bert_kit.pretrained.read_checkpoint import CheckpointFile, data_files, slots_among
from keras_bert_kit.pretrained.read_saved_model import MODEL, Graph, asset_file, read_meta_graphs
from keras_bert_kit.pretrained.source import NamedArrays, Source, read_tokenizer

FILES = f"{MODEL}, tfhub_module.pb, variables/ and assets/"


def find(folder):
    """Returns (kind, folder, files of weights), or None if the folder is no SavedModel of TF1."""
    prefix = folder / "variables" / "variables"
    if not (folder / MODEL).is_file() or not index_file(prefix).is_file() or holds_object_graph(prefix):
        return None
    return "TF-Hub module of TF1", folder, [*data_files(prefix), index_file(prefix)]


def read(folder):
    """Reads a folder that `find` found; returns a `Source`, without tokenizer where no signature names a vocabulary.

    Raises:
        CheckpointError: A file is damaged, or holds no BERT.
        VocabularyError: The vocabulary is not one.
    """
    arrays = NamedArrays(CheckpointFile(folder / "variables" / "variables"), tf1_hub_name)
    graph = Graph(_graph_to_use(read_meta_graphs(folder), folder), folder / MODEL)
    config, notes = _config_of(arrays, graph)
    tokenizer = None
    if vocabulary := graph.asset_behind("tokenization_info", "vocab_file"):
        lowercase = graph.constant(graph.output("tokenization_info", "do_lower_case"))
        lowercase = None if lowercase is None else bool(lowercase.all())
        tokenizer, note = read_tokenizer(
            asset_file(folder, vocabulary),
            lowercase,
            "do_lower_case of the signature tokenization_info",
            rows=config.vocab_size,
        )
        notes.append(note)
    heads, left_out = usable_heads(GOOGLE, arrays)
    return Source(arrays, GOOGLE, heads, config, tokenizer, notes, left_out | slots_among(arrays), copies={})


def _graph_to_use(graphs, folder):
    """The graph that is not for training."""
    tags = [list(itertools.islice(graph.one("meta_info_def").each("tags"), 9)) for graph in graphs]
    for graph, of_graph in zip(graphs, tags, strict=True):
        if "train" not in of_graph:
            return graph
    raise CheckpointError(f"{folder / MODEL} must hold a graph without the tag train. Received: tags {tags}.")


def _config_of(arrays, graph):
    """A `BertConfig` from the shapes of the tensors and what the graph says, and notes on the latter."""
    try:
        vocab_size, hidden_size = arrays.shape("bert/embeddings/word_embeddings")
        max_position_embeddings, _ = arrays.shape("bert/embeddings/position_embeddings")
        type_vocab_size, _ = arrays.shape("bert/embeddings/token_type_embeddings")
        _, intermediate_size = arrays.shape("bert/encoder/layer_0/intermediate/dense/kernel")
    except (KeyError, ValueError) as error:
        raise CheckpointError(
            "The source must hold the tensors of a BERT encoder, as the original BERT names them. Missing, or of "
            f"another rank: {error}. Received: {', '.join(sorted(arrays)[:8]) or 'no tensors'}."
        ) from None
    num_heads, note_on_heads = num_heads_in(graph, hidden_size)
    activation, note_on_activation = activation_in(graph)
    epsilon, note_on_epsilon = epsilon_in(graph)
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=len({found[1] for name in arrays if (found := re.match(r"bert/encoder/layer_(\d+)/", name))}),
        num_attention_heads=num_heads,
        intermediate_size=intermediate_size,
        hidden_act=activation,
        max_position_embeddings=max_position_embeddings,
        type_vocab_size=type_vocab_size,
        layer_norm_eps=epsilon,
    )
    return config, ["sizes from the shapes of the tensors", note_on_heads, note_on_activation, note_on_epsilon]
