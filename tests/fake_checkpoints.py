"""Small checkpoints of TensorFlow with the real names and random weights, made from those of `fake_weights`.

Both writers return what `reference.Reference` takes: the tensors under Hugging Face's names, and the config.
"""

import json
import re

import numpy as np
import tensorflow as tf
from fake_weights import CONFIG, VOCABULARY, random_tensors, tensor_shapes

HEADS = ("mlm", "nsp")


def fake_bert(heads=HEADS, **config):
    """Tensors under Hugging Face's names, and a config with the GELU of Google's code."""
    config = {**CONFIG, "vocab_size": len(VOCABULARY), "hidden_act": "gelu_new", **config}
    return random_tensors(tensor_shapes(config, heads, "", True, 3), seed=1), config


def write_google_folder(path, *, heads=HEADS, prefix="bert_model.ckpt", slots=True, **config):
    """Writes bert_config.json, vocab.txt and a TF1 checkpoint, as google-research/bert has them."""
    tensors, config = fake_bert(heads, **config)
    arrays = {google_name(name): google_array(name, array) for name, array in tensors.items()}
    if slots:
        arrays |= {f"{name}/{slot}": array * 0 for name, array in list(arrays.items()) for slot in ("adam_m", "adam_v")}
        arrays["global_step"] = np.array(7, "int64")
    path.mkdir(parents=True, exist_ok=True)
    save_arrays(path / prefix, arrays)
    keys = [key for key in CONFIG if key not in ("model_type", "layer_norm_eps", "position_embedding_type")]
    written = {key: config[key] for key in [*keys, "vocab_size"] if key != "pad_token_id"} | {"hidden_act": "gelu"}
    (path / "bert_config.json").write_text(json.dumps(written), encoding="utf-8")
    (path / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8")
    return tensors, config


def save_arrays(prefix, arrays):
    """Writes arrays by name as a TF1 checkpoint."""
    values = [tf.constant(array) for array in arrays.values()]
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=list(arrays), shape_and_slices=[""] * len(arrays), tensors=values
    )


def google_name(name):
    """Google's name of a tensor, from Hugging Face's."""
    name = name.replace("qa_outputs.", "cls.squad.output_").replace("squad.output_weight", "squad.output_weights")
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    name = re.sub(r"_embeddings\.weight$", "_embeddings", name)
    name = name.replace("predictions.bias", "predictions.output_bias").replace("encoder.layer.", "encoder.layer_")
    name = re.sub(r"(?:^classifier|(seq_relationship))\.", r"\1.output_", name).removeprefix(".")
    name = name.replace("output_weight", "output_weights") if name.endswith("output_weight") else name
    name = re.sub(r"\.weight$", ".kernel", name).replace(".", "/")
    return name if name.startswith(("cls/", "output_")) else f"bert/{name}"


def google_array(name, array):
    """Google's array: dense kernels are (inputs, outputs), those of the last layers (outputs, inputs)."""
    last = name.startswith(("classifier", "qa_outputs", "cls.seq_relationship"))
    dense = name.endswith(".weight") and array.ndim == 2 and "embeddings" not in name
    return array.T.copy() if dense and not last else array


def write_tf_models_checkpoint(path, *, name_of=lambda name: name, extra=None):
    """Writes an object checkpoint whose variables have TF-Models' names, under attributes that say nothing."""
    arrays, tensors, config = tf_models_arrays()
    root = tf.Module()
    root.part = tf.Module()
    root.part.variables_in_order = [tf.Variable(array, name=name_of(name)) for name, array in arrays.items()]
    path.mkdir(parents=True, exist_ok=True)
    tf.train.Checkpoint(model=root, **(extra or {})).save(str(path / "ckpt"))
    return tensors, config


def write_saved_model(path, *, lowercase=True, vocabulary=True):
    """Writes a SavedModel with the attributes that TF-Hub's BERT has; its only graph divides by zero."""
    arrays, tensors, config = tf_models_arrays()
    root = tf.Module()
    root.in_order = [tf.Variable(array, name=name) for name, array in arrays.items() if "cls/" not in name]
    root.mlm = tf.Module()
    root.mlm.in_order = [tf.Variable(array, name=name) for name, array in arrays.items() if "cls/" in name]
    root.do_lower_case = tf.Variable(lowercase, trainable=False)
    path.mkdir(parents=True, exist_ok=True)
    if vocabulary:
        (path / "words.txt").write_text("".join(f"{token}\n" for token in VOCABULARY), encoding="utf-8")
        root.vocab_file = tf.saved_model.Asset(str(path / "words.txt"))
    root.graph = tf.function(lambda x: 1 // tf.zeros_like(x), [tf.TensorSpec((None, None), tf.int32)])
    tf.saved_model.save(root, str(path))
    (path / "words.txt").unlink(missing_ok=True)
    return tensors, config


def tf_models_arrays():
    """{TF-Models' name: array} of a fake BERT with a masked-LM head, and what the writers return."""
    tensors, config = fake_bert(("mlm",))
    arrays = {}
    for name, array in tensors.items():
        name, array, heads = google_name(name), google_array(name, array), config["num_attention_heads"]
        for old, new in (
            ("cls/predictions/output_bias", "bert/cls/predictions/output_bias/bias"),
            ("bert/embeddings/word_embeddings", "word_embeddings/embeddings"),
            ("bert/embeddings/token_type_embeddings", "type_embeddings/embeddings"),
            ("bert/embeddings/position_embeddings", "position_embedding/embeddings"),
            ("bert/embeddings/LayerNorm", "embeddings/layer_norm"),
            ("bert/encoder/", "transformer/"),
            ("/attention/self/", "/self_attention/"),
            ("/attention/output/dense", "/self_attention/attention_output"),
            ("/attention/output/LayerNorm", "/self_attention_layer_norm"),
            ("/intermediate/dense", "/intermediate"),
            ("/output/dense", "/output"),
            ("/output/LayerNorm", "/output_layer_norm"),
            ("bert/pooler/dense", "pooler_transform"),
        ):
            name = name.replace(old, new)
        if re.search("self_attention/(query|key|value)", name):
            array = array.reshape(*array.shape[:-1], heads, -1)
        if name.endswith("attention_output/kernel"):
            array = array.reshape(heads, -1, array.shape[-1])
        arrays[name] = array
    return arrays, tensors, config
