"""Writes a model as a TF1 checkpoint of the original BERT, which google-research/bert and `load_pretrained` read."""

import json

import tensorflow as tf

from keras_bert_kit.files import folder_written_beside, sha256_of
from keras_bert_kit.pretrained.google_tf1 import CONFIG, VOCABULARY
from keras_bert_kit.pretrained.kit_file import KIT_FILE, write_kit_file
from keras_bert_kit.pretrained.names import GOOGLE
from keras_bert_kit.pretrained.tensors import encoder_of, tensors_of
from keras_bert_kit.text import write_vocabulary

CHECKPOINT = "bert_model.ckpt"

# Google's code means the tanh form by "gelu". Names that it does not know, such as "gelu_erf", it refuses, and so it
# computes nothing wrong. Epsilon has no key there: the code has one, and would not notice another.
_ACTIVATIONS = {"gelu_tanh": "gelu"}
_EPSILON = 1e-12


def write_tf1(model, path, tokenizer):
    """Writes `bert_config.json`, `vocab.txt`, `bert_model.ckpt.*`, and `kit.json` with what those have no key for.

    Args:
        model: `BertEncoder`, or a model on one with heads that the table `GOOGLE` has.
        path: `pathlib.Path` of the folder; it must not exist, or be empty. It is whole or absent, never in between.
        tokenizer: the `BertTokenizer` that the model was trained with.

    Raises:
        ValueError: An epsilon that Google's code does not have, so that it would compute another model.
    """
    config = config_of(encoder_of(model).config)
    with folder_written_beside(path) as folder:
        write_arrays(folder / CHECKPOINT, tensors_of(model, GOOGLE))
        (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        write_vocabulary(tokenizer.vocabulary, folder / VOCABULARY)
        more = {"sha256": {file.name: sha256_of(file) for file in sorted(folder.iterdir())}}
        if class_names := getattr(model, "class_names", None):
            more |= {"class_names": list(class_names), "dropout_rate": model.dropout_rate}
        write_kit_file(folder / KIT_FILE, tokenizer, **more)


def write_arrays(prefix, arrays):
    """Writes arrays by name as a checkpoint `<prefix>.index`, `<prefix>.data-00000-of-00001`, as `tf.train.Saver` does.

    Args:
        prefix: `pathlib.Path`.
        arrays: dictionary of NumPy arrays.
    """
    names = sorted(arrays)
    tensors = [tf.convert_to_tensor(arrays[name]) for name in names]
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)


def config_of(config):
    """Returns the dictionary of Google's bert_config.json for a `BertConfig`."""
    if config.layer_norm_eps != _EPSILON:
        raise ValueError(
            f"format='tf1' needs layer_norm_eps={_EPSILON:g}: Google's code has no other, and would compute something "
            f"else from these weights without an error. Received: layer_norm_eps={config.layer_norm_eps:g}. "
            "Save with format='hf' or 'tf-hub'."
        )
    values = config.to_dict() | {"hidden_act": _ACTIVATIONS.get(config.hidden_act, config.hidden_act)}
    return {key: value for key, value in values.items() if key != "layer_norm_eps"}
