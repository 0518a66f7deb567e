"""Reads Hugging Face folders: `config.json`, `vocab.txt` and a file of weights, as `save_pretrained` there writes them.

A sentence-transformers folder holds the same, in the subfolder that its `modules.json` names. Our own folders are of
this format too.
"""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.hugging_face_heads import class_names_of, heads_of
from keras_bert_kit.pretrained.names import HUGGING_FACE, HUGGING_FACE_COPIES, HUGGING_FACE_LEFT_OUT, todays_name
from keras_bert_kit.pretrained.read_safetensors import SafetensorsFile
from keras_bert_kit.pretrained.source import NamedArrays, Source, read_config, read_json, read_tokenizer

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.txt"
KIT_FILE = "kit.json"  # what our own writer adds
FILES = f"{CONFIG}, {VOCABULARY} and {WEIGHTS}"


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
        modules = [module for module in modules if isinstance(module, dict)]
        paths = [str(module.get("path")) for module in modules if str(module.get("type")).endswith("Transformer")]
        if len(paths) != 1 or ".." in paths[0]:
            raise CheckpointError(f"{folder / 'modules.json'} must name one Transformer. Received: {paths}.")
        folder = folder / paths[0]
    if not all((folder / name).is_file() for name in (CONFIG, WEIGHTS)) and kind == "Hugging Face folder":
        return None
    if any(not (folder / name).is_file() for name in (CONFIG, WEIGHTS, VOCABULARY)):
        raise incomplete(folder)
    return kind, folder, [folder / WEIGHTS]


def incomplete(folder):
    """Returns the error for a folder in which files are missing; it lists them, and those that are there."""
    missing = [name for name in (CONFIG, WEIGHTS, VOCABULARY) if not (folder / name).is_file()]
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
    tokenizer, note = _tokenizer_of(folder)
    arrays = NamedArrays(SafetensorsFile(folder / WEIGHTS), todays_name)
    heads, left_out = heads_of(arrays.keys(), values)
    left_out |= {name: reason for name, reason in HUGGING_FACE_LEFT_OUT.items() if name in arrays}
    notes, class_names = [*notes, note], []
    if "classifier" in heads:
        class_names, note = class_names_of(values, arrays.shape("classifier.weight")[0])
        notes.append(note)
    return Source(
        arrays=arrays,
        table=HUGGING_FACE,
        heads=heads,
        config=config,
        tokenizer=tokenizer,
        notes=notes,
        left_out=left_out,
        copies=HUGGING_FACE_COPIES,
        class_names=class_names,
        dropout_rate=values.get("classifier_dropout"),
    )


def _tokenizer_of(folder):
    path = folder / "tokenizer_config.json"
    settings = read_json(path) if path.is_file() else {}
    if settings.get("tokenize_chinese_chars") is False:
        raise CheckpointError(f"{path}: tokenize_chinese_chars=false is not supported. Received: false.")
    lowercase = settings.get("do_lower_case")
    return read_tokenizer(
        folder / VOCABULARY,
        lowercase=None if lowercase is None else bool(lowercase),
        lowercase_from="do_lower_case in tokenizer_config.json",
        strip_accents=settings.get("strip_accents"),
    )
