"""Reads object checkpoints of TF-Models (official/nlp): `bert_model.ckpt-1.*`, beside them perhaps a configuration.

The arrays of such checkpoints are called by the path of Python attributes that leads to them; their object graph says
the names of the variables, which are the same in TF-Hub's SavedModels. Source: https://github.com/tensorflow/models.
"""

import re

from keras_bert_kit.config import BertConfig
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.google_tf1 import CONFIG, VOCABULARY, holds_object_graph, index_file
from keras_bert_kit.pretrained.heads import usable_heads
from keras_bert_kit.pretrained.names import TF_MODELS, tf_models_name
from keras_bert_kit.pretrained.read_checkpoint import CheckpointFile, data_files, find_checkpoint, slots_among
from keras_bert_kit.pretrained.source import NamedArrays, Source, read_config, read_tokenizer

FILES = f"bert_model.ckpt-1.index and bert_model.ckpt-1.data-…, perhaps {CONFIG} and {VOCABULARY}"

_OWN_POOLER = "of a next-sentence head with a pooler of its own, which none of our models has"


def find(folder):
    """Returns (kind, folder, files of weights), or None if the folder holds no such checkpoint."""
    found = find_checkpoint(folder)
    if not found or not holds_object_graph(found[0]):
        return None
    return "TF-Models checkpoint", folder, [*data_files(found[0]), index_file(found[0])]


def read(folder):
    """Reads a folder that `find` found; returns a `Source`, without tokenizer where there is no vocab.txt.

    Raises:
        CheckpointError: A file is damaged, or holds no BERT.
        ConfigError: bert_config.json describes no BERT.
        VocabularyError: vocab.txt is not one.
    """
    prefix, notes = find_checkpoint(folder)
    arrays = arrays_of(CheckpointFile(prefix))
    if (folder / CONFIG).is_file():
        config, _, notes_on_config = read_config(folder / CONFIG)
    else:
        config, notes_on_config = config_from_shapes(arrays)
    tokenizer = None
    if (folder / VOCABULARY).is_file():
        tokenizer, note = read_tokenizer(folder / VOCABULARY, rows=config.vocab_size)
        notes.append(note)
    return source_of(arrays, config, tokenizer, [*notes_on_config, *notes])


def arrays_of(checkpoint):
    """Returns the arrays of a `CheckpointFile` under today's names of TF-Models' variables."""
    names = checkpoint.variable_names()
    # Variables of a next-sentence head are called as those of other layers: their key alone says what they belong to.
    return NamedArrays(checkpoint, lambda key: key if key.startswith("next_sentence") else tf_models_name(names[key]))


def source_of(arrays, config, tokenizer, notes, settings=()):
    """Makes the `Source` of TF-Models' arrays.

    Args:
        arrays: `NamedArrays`.
        config: `BertConfig`.
        tokenizer: `BertTokenizer`, or None.
        notes: list of str.
        settings: names of arrays that are settings and not weights.
    """
    heads, left_out = usable_heads(TF_MODELS, arrays)
    left_out |= slots_among(arrays)
    # By its key where the head hangs on the root of the checkpoint, by its name where it is inside of a model.
    left_out |= {name: _OWN_POOLER for name in arrays if name.startswith("next_sentence") or "/next_sentence/" in name}
    left_out |= {name: "a setting, no weight" for name in settings if name in arrays}
    return Source(arrays, TF_MODELS, heads, config, tokenizer, notes, left_out, copies={})


def config_from_shapes(arrays, settings=None):
    """Infers the sizes of a model from its tensors.

    Args:
        arrays: `NamedArrays` under TF-Models' names.
        settings: dictionary of fields of `BertConfig` that the source says in words.

    Returns:
        Pair of a `BertConfig` and notes for the report.

    Raises:
        CheckpointError: The tensors of an encoder are not there.
    """
    settings = settings or {}
    try:
        vocab_size, hidden_size = arrays.shape("word_embeddings/embeddings")
        max_position_embeddings, _ = arrays.shape("position_embedding/embeddings")
        type_vocab_size, _ = arrays.shape("type_embeddings/embeddings")
        _, num_heads, _ = arrays.shape("transformer/layer_0/self_attention/query/kernel")
        _, intermediate_size = arrays.shape("transformer/layer_0/intermediate/kernel")
    except (KeyError, ValueError) as error:
        some = ", ".join(sorted(arrays)[:8])
        raise CheckpointError(
            "The source must hold the tensors of a BERT encoder, as TF-Models names them. Missing, or of another rank: "
            f"{error}. Received: {some or 'no tensors'}. Preprocessors, and models other than BERT, have none."
        ) from None
    layers = {found[1] for name in arrays if (found := re.match(r"transformer/layer_(\d+)/", name))}
    defaults = {"hidden_act": "gelu_tanh", "layer_norm_eps": 1e-12}
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        num_hidden_layers=len(layers),
        num_attention_heads=num_heads,
        intermediate_size=intermediate_size,
        max_position_embeddings=max_position_embeddings,
        type_vocab_size=type_vocab_size,
        **defaults | settings,
    )
    said = {field: "keras_metadata.pb" for field in settings}
    return config, [
        "sizes from the shapes of the tensors",
        f"hidden_act={config.hidden_act} ({said.get('hidden_act', 'by rule: the GELU of TF-Models is the tanh form')})",
        f"layer_norm_eps={config.layer_norm_eps:g} ({said.get('layer_norm_eps', 'by rule: TF-Models has no other')})",
    ]
