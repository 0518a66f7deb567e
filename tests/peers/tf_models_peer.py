"""Runs where TF-Models (official/nlp) is: makes models there, or opens ours. See test_peers_tf_models.py.

tf_models_peer.py make FOLDER       an object checkpoint, and SavedModels by TF-Hub's exporter, with expected.npz
tf_models_peer.py tf1 FOLDER        our TF1 checkpoint through TF-Models' own converter: outputs to theirs.npz
tf_models_peer.py tf-hub FOLDER     our SavedModel through tf.saved_model.load: outputs to theirs.npz
"""

import os
import sys
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # TF-Models is written for Keras 2
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from official.legacy.bert import configs
from official.nlp.tools import export_tfhub_lib
from official.nlp.tools import tf2_bert_encoder_checkpoint_converter as converter

SIZES = dict(
    vocab_size=61,
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=3,
    intermediate_size=40,
    max_position_embeddings=20,
    type_vocab_size=3,
    initializer_range=0.1,
    hidden_act="gelu",
)


def make(folder):
    """Writes one model with random weights in each form that TF-Models has."""
    tf.keras.utils.set_random_seed(3)
    config = configs.BertConfig(**SIZES)
    model, pretrainer = export_tfhub_lib._create_model(bert_config=config, with_mlm=True)
    for variable in pretrainer.trainable_variables:
        if variable.shape.rank == 1:
            variable.assign_add(tf.random.normal(variable.shape) / 10)
    prefix = tf.train.Checkpoint(**pretrainer.checkpoint_items).save(str(folder / "checkpoint" / "bert_model.ckpt"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(config.vocab_size - 5))]
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    for name, with_mlm in (("saved_model", False), ("saved_model_mlm", True)):
        export_tfhub_lib.export_model(
            str(folder / name),
            bert_config=config,
            model_checkpoint_path=prefix,
            with_mlm=with_mlm,
            vocab_file=str(vocabulary),
            do_lower_case=True,
        )
    inputs = inputs_for(config)
    np.savez(folder / "expected.npz", **inputs, **outputs_of(model, inputs))


def inputs_for(config):
    """Ids, masks, types and positions, as NumPy arrays."""
    dice = np.random.default_rng(1)
    mask = np.ones((3, 9), "int32")
    mask[-1, 6:] = 0
    return {
        "input_word_ids": dice.integers(5, config.vocab_size, mask.shape).astype("int32") * mask,
        "input_mask": mask,
        "input_type_ids": dice.integers(0, config.type_vocab_size, mask.shape).astype("int32"),
        "masked_lm_positions": np.array([[0, 1], [8, 2], [3, 5]], "int32"),
    }


def outputs_of(model, inputs):
    """Outputs of a model with TF-Hub's interface, and of its `.mlm` where there is one."""
    inputs = {name: tf.constant(array) for name, array in inputs.items()}
    positions = inputs.pop("masked_lm_positions")
    outputs = {name: model(inputs)[name].numpy() for name in ("sequence_output", "pooled_output", "default")}
    if hasattr(model, "mlm"):
        outputs["mlm_logits"] = model.mlm(inputs | {"masked_lm_positions": positions})["mlm_logits"].numpy()
    return outputs


def open_saved_model(folder):
    """Runs our SavedModel."""
    outputs = outputs_of(tf.saved_model.load(str(folder)), dict(np.load(folder / "inputs.npz")))
    np.savez(folder / "theirs.npz", **outputs)


def open_tf1(folder):
    """Converts our TF1 checkpoint as TF-Models does Google's, and runs what it restores."""
    config = configs.BertConfig.from_json_file(str(folder / "bert_config.json"))
    prefix = str(folder / "converted" / "ckpt")
    converter.convert_checkpoint(config, prefix, str(folder / "bert_model.ckpt"), "model", "pretrainer")
    model, pretrainer = export_tfhub_lib._create_model(bert_config=config, with_mlm=True)
    restored = tf.train.Checkpoint(model=pretrainer).restore(tf.train.latest_checkpoint(str(folder / "converted")))
    restored.assert_existing_objects_matched()
    np.savez(folder / "theirs.npz", **outputs_of(model, dict(np.load(folder / "inputs.npz"))))


if __name__ == "__main__":
    {"make": make, "tf1": open_tf1, "tf-hub": open_saved_model}[sys.argv[1]](Path(sys.argv[2]))
