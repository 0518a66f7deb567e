"""Reads Hugging Face folders: `config.json`, `vocab.txt` and a file of weights, as `save_pretrained` there writes them.

A sentence-transformers folder holds the same, in the subfolder that its `modules.json` names. Our own folders are of
this format too.
"""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.heads import num_classes_of
from keras_bert_kit.pretrained.hugging_face_heads import class_names_of, heads_of
from keras_bert_kit.pretrained.kit_file import KIT_FILE, read_kit_file
from keras_bert_kit.pretrained.names import (
    HUGGING_FACE,
    HUGGING_FACE_COPIES,
    HUGGING_FACE_LEFT_OUT,
    HUGGING_FACE_TF,
    hugging_face_tf_name,
    todays_name,
)
from keras_bert_kit.pretrained.read_h5 import H5File
from keras_bert_kit.pretrained.read_pickle import PickleFile
from keras_bert_kit.pretrained.read_safetensors import SafetensorsFile
from keras_bert_kit.pretrained.read_shards import Shards, files_of
from keras_bert_kit.pretrained.source import (
    NamedArrays,
    Source,
    flag_in,
    rate_in,
    read_config,
    read_json,
    read_tokenizer,
)

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.txt"
INDEX, H5 = ".index.json", "tf_model.h5"
# In the order in which Transformers prefers them. One of them is read as a whole, never a mixture of two.
READERS = {
    WEIGHTS: SafetensorsFile,
    WEIGHTS + INDEX: lambda path: Shards(path, SafetensorsFile),
    "pytorch_model.bin": PickleFile,
    "pytorch_model.bin" + INDEX: lambda path: Shards(path, PickleFile),
    H5: H5File,
}
FILES = f"{CONFIG}, {VOCABULARY} and one of {', '.join(READERS)}"


def find(folder):
    """Returns the kind of folder and where its files are, or None if this is no folder of Hugging Face's.

    Args:
        folder: `pathlib.Path` of a folder.

    Returns:
        None, or triple of the kind, the path for `read`, and the list of files that hold the weights.

    Raises:
        CheckpointError: The folder is one, and files are missing; the message lists them.
    """
    kind = "Hugging Face folder"
    if (folder / "modules.json").is_file():
        kind = "sentence-transformers folder"
        modules = read_json(folder / "modules.json")
        modules = [module for module in modules if isinstance(module, dict)] if isinstance(modules, list) else []
        paths = [module.get("path") for module in modules if str(module.get("type")).endswith("Transformer")]
        # A folder in this one, or this one: its name is empty.
        if len(paths) != 1 or not isinstance(paths[0], str) or set(paths[0]) & set("/\\:\0") or paths[0] == "..":
            raise CheckpointError(f"{folder / 'modules.json'} must name one Transformer. Received: {paths}.")
        folder = folder / paths[0]
    weights = _files_of_weights(folder)
    if not (weights and (folder / CONFIG).is_file()) and kind == "Hugging Face folder":
        return None
    if not weights or any(not (folder / name).is_file() for name in (CONFIG, VOCABULARY)):
        raise incomplete(folder)
    path = folder / weights[0]
    return kind, folder, [path, *files_of(path)] if path.name.endswith(INDEX) else [path]


def incomplete(folder):
    """Returns the error for a folder in which files are missing; it lists them, and those that are there."""
    missing = [name for name in (CONFIG, VOCABULARY) if not (folder / name).is_file()]
    missing += [] if _files_of_weights(folder) else [WEIGHTS]
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return CheckpointError(
        f"The folder {str(folder)!r} must hold {CONFIG}, {WEIGHTS} and {VOCABULARY}. Missing: {', '.join(missing)}. "
        f"Found: {', '.join(found[:12]) or 'nothing'}. Copy the missing files there."
    )


def read(folder):
    """Reads a folder that `find` found.

    Args:
        folder: `pathlib.Path`.

    Returns:
        `Source`.

    Raises:
        CheckpointError: A file is damaged, or holds a setting that we do not have.
        ConfigError: config.json describes no BERT.
        VocabularyError: vocab.txt is not one.
    """
    config, values, notes = read_config(folder / CONFIG)
    tokenizer, note = _tokenizer_of(folder, config.vocab_size)
    weights, *others = _files_of_weights(folder)
    table, rename = (HUGGING_FACE_TF, hugging_face_tf_name) if weights == H5 else (HUGGING_FACE, todays_name)
    arrays = NamedArrays(READERS[weights](folder / weights), rename)
    heads, left_out, notes_on_heads = heads_of(table, arrays, values)
    left_out |= {name: reason for name, reason in HUGGING_FACE_LEFT_OUT.items() if name in arrays}
    again = {name: todays_name(name.split("//")[1]) for name in arrays if "//bert." in name}
    left_out |= dict.fromkeys(again, "the embeddings once more, for the masked-LM head")
    notes, class_names = [*notes, note, *notes_on_heads], []
    if others:
        notes.append(f"weights from {weights} alone; {', '.join(others)}, which are there too, were not read")
    for head in {"classifier", "token_classifier"} & set(heads):
        class_names, note = class_names_of(values, num_classes_of(table, head, arrays))
        notes.append(note)
    return Source(
        arrays=arrays,
        table=table,
        heads=heads,
        config=config,
        tokenizer=tokenizer,
        notes=notes,
        left_out=left_out,
        copies=HUGGING_FACE_COPIES | again,
        class_names=class_names,
        dropout_rate=rate_in(values, "classifier_dropout", folder / CONFIG),
    )


def _files_of_weights(folder):
    """The files of `READERS` that are there; the first is the one to read."""
    return [name for name in READERS if (folder / name).is_file()]


def _tokenizer_of(folder, rows):
    path = folder / "tokenizer_config.json"
    settings = read_json(path) if path.is_file() else {}
    if flag_in(settings, "tokenize_chinese_chars", path) is False:
        raise CheckpointError(f"{path}: tokenize_chinese_chars=false is not supported. Received: false.")
    options = {
        "lowercase": flag_in(settings, "do_lower_case", path),
        "lowercase_from": "do_lower_case in tokenizer_config.json",
        "strip_accents": flag_in(settings, "strip_accents", path),
    }
    _, options_of_ours = read_kit_file(folder / KIT_FILE)  # where the kit wrote the folder
    return read_tokenizer(folder / VOCABULARY, rows=rows, **options | options_of_ours)
