"""`kit.json`: what other people's formats have no key for, beside or inside of the files that the kit writes."""

import json

import keras
import tensorflow as tf

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.heads import numbered_classes
from keras_bert_kit.pretrained.source import flag_in, object_in, read_json
from keras_bert_kit.version import __version__

KIT_FILE = "kit.json"
_TOKENIZER = ("lowercase", "strip_accents", "reference", "max_characters_per_word", "special_tokens_in_text")


def write_kit_file(path, tokenizer, **values):
    """Writes a kit.json.

    Args:
        path: `pathlib.Path` of the file.
        tokenizer: the `BertTokenizer` whose settings are kept.
        **values: anything else that JSON can say.
    """
    settings = {name: getattr(tokenizer, name) for name in _TOKENIZER}
    versions = {"keras_bert_kit": __version__, "tensorflow": tf.__version__, "keras": keras.__version__}
    text = json.dumps(versions | {"tokenizer": settings} | values, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_kit_file(path):
    """Reads what `write_kit_file` wrote.

    Args:
        path: `pathlib.Path`, or None.

    Returns:
        Pair of the dictionary in the file and the keyword arguments of `read_tokenizer`; both empty without a file.

    Raises:
        CheckpointError: The file is no JSON object, or says something of the tokenizer that is not known.
    """
    if path is None or not path.is_file():
        return {}, {}
    values = read_json(path)
    settings = object_in(values, "tokenizer", path)
    if unknown := settings.keys() - set(_TOKENIZER):
        raise CheckpointError(f"{path}: unknown settings of the tokenizer. Received: {', '.join(sorted(unknown))}.")
    for name in ("lowercase", "strip_accents", "special_tokens_in_text"):
        flag_in(settings, name, path)
    return values, settings | ({"lowercase_from": f"lowercase in {path.name}"} if "lowercase" in settings else {})


def class_names_in(values, num_classes, path):
    """Finds the names of the classes in a format that has no place for them.

    Args:
        values: dictionary of kit.json, or an empty one.
        num_classes: int, classes of the head.
        path: `pathlib.Path` of the kit.json, for messages.

    Returns:
        Pair of a list of names and a note for the report.

    Raises:
        CheckpointError: kit.json has other than `num_classes` different names.
    """
    names = values.get("class_names")
    if names is None:
        return numbered_classes(num_classes), f"{num_classes} classes called LABEL_0, …: no file names them"
    strings = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not strings or len(names) != num_classes or len(set(names)) != num_classes:
        raise CheckpointError(f"{path}: class_names must be {num_classes} different names. Received: {names!r:.200}.")
    return names, f"{num_classes} class names from {path.name}: {', '.join(names[:10])}"
