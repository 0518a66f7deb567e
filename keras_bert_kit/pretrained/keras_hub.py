"""Reads preset folders of keras-hub (formerly keras-nlp): `config.json`, `tokenizer.json` and `model.weights.h5`.

A task, such as BertTextClassifier, has `task.json` and `task.weights.h5` beside them. The names of classes are data
here: no class of keras-hub is looked up, and no layer of its is made. Source: https://github.com/keras-team/keras-hub.
"""

from collections.abc import Mapping

from keras_bert_kit.config import BertConfig
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.heads import num_classes_of, numbered_classes, usable_heads
from keras_bert_kit.pretrained.names import KERAS_HUB, keras_hub_name
from keras_bert_kit.pretrained.read_h5 import H5File
from keras_bert_kit.pretrained.source import (
    NamedArrays,
    Source,
    flag_in,
    object_in,
    rate_in,
    read_json,
    read_tokenizer,
)

CONFIG, WEIGHTS, TOKENIZER, VOCABULARY = (
    "config.json",
    "model.weights.h5",
    "tokenizer.json",
    "assets/tokenizer/vocabulary.txt",
)
TASK, TASK_WEIGHTS = "task.json", "task.weights.h5"
FILES = f"{CONFIG}, {WEIGHTS}, {TOKENIZER} and {VOCABULARY}"

# What keras-hub calls the fields of `BertConfig`.
FIELDS = {
    "vocabulary_size": "vocab_size",
    "hidden_dim": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
# Not in any of its files: what keras-hub's code has.
HIDDEN_ACT, EPSILON = "gelu_tanh", 1e-12
_HEAD_ACTIVATION, _HEAD_EPSILON = "gelu_erf", 1e-5


def find(folder):
    """Returns (kind, folder, files of weights), or None if the folder is no preset of keras-hub.

    Raises:
        CheckpointError: It is one of another model, or files are missing; the message lists them.
    """
    if not (folder / WEIGHTS).is_file() or not (folder / CONFIG).is_file():
        return None
    name = read_json(folder / CONFIG).get("class_name")
    if name != "BertBackbone":
        raise CheckpointError(
            f"A keras-hub preset must hold a BertBackbone. Received: {name!r} in {folder / CONFIG}. "
            "Open .keras files with keras.saving.load_model."
        )
    both = (TOKENIZER, VOCABULARY)  # or neither: a backbone that was saved alone
    with_tokenizer = any((folder / name).is_file() for name in both)
    needed = (*(both if with_tokenizer else ()), *((TASK_WEIGHTS,) if (folder / TASK).is_file() else ()))
    if missing := [name for name in needed if not (folder / name).is_file()]:
        raise CheckpointError(f"The folder {str(folder)!r} must hold {FILES}. Missing: {', '.join(missing)}.")
    weights = [folder / name for name in (WEIGHTS, TASK_WEIGHTS) if (folder / name).is_file()]
    return "keras-hub preset", folder, weights


def read(folder):
    """Reads a folder that `find` found; returns a `Source`.

    Raises:
        CheckpointError: A file is damaged.
        ConfigError: config.json describes no BERT.
        VocabularyError: The vocabulary is not one.
    """
    config, notes = _config_of(_settings_in(folder / CONFIG))
    tokenizer, notes_on_tokenizer = _tokenizer_of(folder, config)
    arrays = NamedArrays(_Files(folder), keras_hub_name)
    heads, left_out = usable_heads(KERAS_HUB, arrays)
    left_out |= {name: "of the optimizer, no weight" for name in arrays if name.startswith("task:optimizer/")}
    notes, class_names, dropout_rate = [*notes, *notes_on_tokenizer], [], None
    if "classifier" in heads:
        class_names = numbered_classes(num_classes_of(KERAS_HUB, "classifier", arrays))
        task = _settings_in(folder / TASK) if (folder / TASK).is_file() else {}
        activation, dropout_rate = task.get("activation", "linear"), rate_in(task, "dropout", folder / TASK)
        notes.append(f"{len(class_names)} classes called LABEL_0, …: presets do not name them")
        if activation != "linear":
            notes.append(f"the classifier gives logits, before the activation {activation} that {TASK} names")
    if "masked_lm" in heads:
        head = f"{_HEAD_ACTIVATION}, epsilon {_HEAD_EPSILON:g}"
        notes.append(f"masked-LM head: {head} (by rule: MaskedLMHead of keras-hub)")
    return Source(
        arrays=arrays,
        table=KERAS_HUB,
        heads=heads,
        config=config,
        tokenizer=tokenizer,
        notes=notes,
        left_out=left_out,
        copies={},
        class_names=class_names,
        dropout_rate=dropout_rate,
        head_activation=_HEAD_ACTIVATION,
        head_epsilon=_HEAD_EPSILON,
    )


def _tokenizer_of(folder, config):
    """The tokenizer, or None where the preset has none, and notes."""
    if not (folder / TOKENIZER).is_file():
        return None, []
    settings = _settings_in(folder / TOKENIZER)
    tokenizer, note = read_tokenizer(
        folder / VOCABULARY,
        flag_in(settings, "lowercase", folder / TOKENIZER),
        f"lowercase in {TOKENIZER}",
        flag_in(settings, "strip_accents", folder / TOKENIZER),
        rows=config.vocab_size,
    )
    return tokenizer, [note]


def _settings_in(path):
    """The arguments of the constructor that a file of Keras says."""
    return object_in(read_json(path), "config", path)


def _config_of(values):
    """A `BertConfig` from the constructor's arguments of a BertBackbone, and notes on what they do not say."""
    fields = {ours: values[theirs] for theirs, ours in FIELDS.items() if theirs in values}
    if missing := FIELDS.keys() - values.keys():
        raise CheckpointError(f"{CONFIG} must say {', '.join(sorted(missing))}. Received: {', '.join(values)}.")
    dropout = values.get("dropout", 0.1)
    config = BertConfig(
        **fields,
        hidden_act=HIDDEN_ACT,
        layer_norm_eps=EPSILON,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return config, [
        f"hidden_act={HIDDEN_ACT} (by rule: the BertBackbone of keras-hub has the tanh form)",
        f"layer_norm_eps={EPSILON:g} (by rule: the BertBackbone of keras-hub has no other)",
    ]


class _Files(Mapping):
    """The arrays of the backbone, and those of the task with `task:` before their names."""

    def __init__(self, folder):
        self.path = folder
        self._files = {"": H5File(folder / WEIGHTS)}
        if (folder / TASK_WEIGHTS).is_file():
            self._files["task:"] = H5File(folder / TASK_WEIGHTS)
        self._places = {prefix + name: (file, name) for prefix, file in self._files.items() for name in file}

    def __getitem__(self, name):
        file, inside = self._places[name]
        return file[inside]

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        file, inside = self._places[name]
        return file.shape(inside)

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        file, inside = self._places[name]
        return file.dtype(inside)
