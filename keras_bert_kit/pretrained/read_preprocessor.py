"""Reads TF-Hub's preprocessing SavedModels (`bert_en_uncased_preprocess`): vocabulary, lower-casing, default length.

Such a SavedModel takes texts and has no weights. Its graph, which is looked at and not executed, consists of ops of
tensorflow-text: `CaseFoldUTF8` is there if it lower-cases, and how long its outputs are stands in its signature.
"""

import itertools
from typing import NamedTuple

from tensorflow.core.framework.types_pb2 import DT_INT32

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.google_tf1 import holds_object_graph, index_file
from keras_bert_kit.pretrained.read_checkpoint import CheckpointFile
from keras_bert_kit.pretrained.read_saved_model import MODEL, asset_file, read_meta_graphs
from keras_bert_kit.pretrained.source import read_tokenizer
from keras_bert_kit.text import BertTokenizer

FILES = f"{MODEL} and assets/, for load_preprocessor"

_DEFAULT_LENGTH = 128
# What the graph of tensorflow-text's BertTokenizer is made of.
_WORDS, _PIECES = "RegexSplitWithOffsets", "WordpieceTokenizeWithOffsets"
_FOLDS, _LOWERS, _NORMALIZES = "CaseFoldUTF8", "StringLower", "NormalizeUTF8"


class Preprocessor(NamedTuple):
    """What a preprocessing SavedModel does with texts.

    Attributes:
        tokenizer: `BertTokenizer`.
        sequence_length: int, the length of its outputs.
    """

    tokenizer: BertTokenizer
    sequence_length: int


def find(folder):
    """Returns (kind, folder, files of weights), or None if the folder is no SavedModel of TF2 without weights."""
    prefix = folder / "variables" / "variables"
    if not (folder / MODEL).is_file() or not index_file(prefix).is_file() or not holds_object_graph(prefix):
        return None
    checkpoint = CheckpointFile(prefix)
    if any(checkpoint.shape(name) for name in checkpoint):
        return None
    return "TF-Hub preprocessing SavedModel", folder, [folder / MODEL]


def read(folder):
    """Refuses to read weights from a folder that `find` found."""
    raise CheckpointError(
        f"load_pretrained must be given weights. Received: {folder}, a SavedModel without any, which turns texts into "
        "ids. Give it to load_preprocessor, which makes a tokenizer and a packer of it."
    )


def read_preprocessor(folder, reference):
    """Reads what a folder that `find` found does with texts.

    Args:
        folder: `pathlib.Path`.
        reference: str, the rules that the tokenizer shall follow, see `BertTokenizer`.

    Returns:
        `Preprocessor`.

    Raises:
        CheckpointError: A file is damaged or missing; or the SavedModel is none of a BERT, or, for the reference
            "tf_hub", does other things with texts than those of TF-Hub.
        VocabularyError: The vocabulary is not one.
    """
    graphs = read_meta_graphs(folder)
    ops = {node.one("op") for graph in graphs for node in _nodes(graph)}
    names = {file.one("filename") for graph in graphs for file in graph.each("asset_file_def")}
    if not any("wordpiece" in op.lower() or "FastBert" in op for op in ops) or len(names) != 1:
        raise CheckpointError(
            f"The preprocessing of a BERT must cut words into pieces of one vocabulary. Received: {folder}, with "
            f"{len(names)} assets ({', '.join(sorted(names)[:4])}). Give the preprocessor of a BERT."
        )
    if reference == "tf_hub":
        _require_known_steps(graphs, ops, folder)
    known = {_WORDS, _PIECES} <= ops
    tokenizer, _ = read_tokenizer(
        asset_file(folder, names.pop()),
        bool({_FOLDS, _LOWERS} & ops) if known else None,
        strip_accents=False if known and _LOWERS in ops else None,
        reference=reference,
    )
    return Preprocessor(tokenizer, _sequence_length(graphs))


def _require_known_steps(graphs, ops, folder):
    """Refuses graphs whose ids `reference="tf_hub"` would not give."""
    limits, keeps_unused = set(), False
    for node in (node for graph in graphs for node in _nodes(graph)):
        if node.one("op") == _PIECES:
            limits.add(node.entry("attr", "max_bytes_per_word").one("i"))
        if node.one("op") == "Const":
            texts = node.entry("attr", "value").one("tensor").each("string_val")
            keeps_unused = keeps_unused or any(b"unused" in text for text in texts)
    odd = [op for op in (_WORDS, _PIECES) if op not in ops] + [op for op in (_LOWERS,) if op in ops]
    odd += [_NORMALIZES] if _NORMALIZES in ops and _FOLDS not in ops else []
    if odd or limits != {100} or keeps_unused:
        raise CheckpointError(
            "tf_hub_normalisation is what TF-Hub's bert_..._preprocess do: words of at most 100 bytes, no [unused1] in "
            f"texts, accents stripped when lower-cased. Received: {folder}, which is different "
            f"({', '.join(odd) or limits}). Leave tf_hub_normalisation out, or run that SavedModel itself."
        )


def _nodes(graph):
    """All nodes of a graph and of its functions."""
    yield from graph.one("graph_def").each("node")
    for function in graph.one("graph_def").one("library").each("function"):
        yield from function.each("node_def")


def _sequence_length(graphs):
    """The second dimension of what a signature returns."""
    for graph in graphs:
        for signature in graph.each("signature_def"):
            for output in signature.one("value").each("outputs"):
                shape = output.one("value").one("tensor_shape")
                sizes = [dimension.one("size") for dimension in itertools.islice(shape.each("dim"), 3)]
                if output.one("value").one("dtype") == DT_INT32 and len(sizes) == 2 and 3 <= sizes[1] <= 1 << 16:
                    return sizes[1]
    return _DEFAULT_LENGTH
