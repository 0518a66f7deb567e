"""Runs the old lines of docs/migration.md where their libraries are. See test_peers_migration.py.

old_lines_peer.py tf-models FOLDER    a checkpoint, and SavedModels as on TF-Hub, for the vocab.txt of the folder
old_lines_peer.py keras-hub FOLDER    presets with a classifier and a masked-LM head, for the same
old_lines_peer.py run FOLDER          runs old.py there; the numbers and words of its variables to old.npz
"""

import hashlib
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

SIZES = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, type_vocab_size=2)
HANDLES = "https://tfhub.dev/tensorflow/bert_en_uncased_"


def make_tf_models(folder):
    """Writes random weights with a masked-LM head: a checkpoint, an encoder, and a preprocessor."""
    import tensorflow as tf
    from official.legacy.bert import configs
    from official.nlp.tools import export_tfhub_lib

    tf.keras.utils.set_random_seed(3)
    vocabulary = folder / "vocab.txt"
    num_words = len(vocabulary.read_text(encoding="utf-8").splitlines())
    values = SIZES | dict(vocab_size=num_words, max_position_embeddings=128, hidden_act="gelu", initializer_range=0.2)
    config = configs.BertConfig(**values)
    _, pretrainer = export_tfhub_lib._create_model(bert_config=config, with_mlm=True)
    made = folder / "uncased_tf2"
    prefix = tf.train.Checkpoint(**pretrainer.checkpoint_items).save(str(made / "bert_model.ckpt"))
    (made / "bert_config.json").write_text(json.dumps(values), encoding="utf-8")
    (made / "vocab.txt").write_text(vocabulary.read_text(encoding="utf-8"), encoding="utf-8")
    text = dict(vocab_file=str(vocabulary), do_lower_case=True)
    encoder, preprocessor = (folder_of(folder, name) for name in ("L-12_H-768_A-12/4", "preprocess/3"))
    export_tfhub_lib.export_model(str(encoder), bert_config=config, model_checkpoint_path=prefix, with_mlm=True, **text)
    export_tfhub_lib.export_preprocessing(
        str(preprocessor), **text, tokenize_with_offsets=False, default_seq_length=128, experimental_disable_assert=True
    )


def folder_of(folder, name):
    """Where tensorflow-hub looks for a handle before it asks the network."""
    return folder / "tf-hub" / hashlib.sha1((HANDLES + name).encode()).hexdigest()


def make_keras_hub(folder):
    """Writes presets with random weights."""
    import keras
    import keras_hub

    keras.utils.set_random_seed(3)
    tokens = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = keras_hub.models.BertTokenizer(tokens, lowercase=True)
    backbone = keras_hub.models.BertBackbone(len(tokens), 2, 4, 16, 24, max_sequence_length=128)
    for weight in backbone.weights:
        weight.assign(weight + keras.random.normal(weight.shape) / 5)
    pack = keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=128)
    classifier = keras_hub.models.BertTextClassifier(backbone, num_classes=4, preprocessor=pack)
    classifier.save_to_preset(str(folder / "news_preset"))
    pack = keras_hub.models.BertMaskedLMPreprocessor(tokenizer, sequence_length=128)
    masked_lm = keras_hub.models.BertMaskedLM(backbone, preprocessor=pack)
    masked_lm.save_to_preset(str(folder / "masked_preset"))


def run_old_lines(folder):
    """Runs the lines in the folder, as a user would, without a network."""
    os.environ["TFHUB_CACHE_DIR"] = str(folder / "tf-hub")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.chdir(folder)
    code = Path("old.py").read_text(encoding="utf-8")
    if "import bert\n" in code:
        give_tf_keras_its_old_name()
    names = {}
    exec(compile(code, "old.py", "exec"), names)
    np.savez("old.npz", **arrays_of(names))


def give_tf_keras_its_old_name():
    """bert-for-tf2 takes some classes from tensorflow.python.keras, which was tf.keras when it was written."""
    import tensorflow as tf

    sys.modules["tensorflow.python.keras"] = sys.modules["tensorflow.python"].keras = tf.keras


def arrays_of(value, name=""):
    """Arrays of the numbers and words in a value and in what it holds: {names on the way, joined by dots: array}."""
    if isinstance(value, dict):
        parts = {key: each for key, each in value.items() if isinstance(key, str) and not key.startswith("_")}
    elif isinstance(value, (list, tuple)) and not all(isinstance(each, (int, float, str)) for each in value):
        parts = {str(number): each for number, each in enumerate(value)}
    else:
        value = value.numpy() if hasattr(value, "numpy") else value
        known = isinstance(value, (int, float, str, list, tuple, np.ndarray, np.generic))
        return {name: np.asarray(value)} if known and np.asarray(value).dtype.kind in "biufU" else {}
    found = {}
    for key, each in parts.items():
        found |= arrays_of(each, f"{name}.{key}" if name else key)
    return found


if __name__ == "__main__":
    command, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    {"tf-models": make_tf_models, "keras-hub": make_keras_hub, "run": run_old_lines}[command](folder)
