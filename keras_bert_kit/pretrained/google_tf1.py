"""Reads checkpoints of the original BERT: `bert_config.json`, `vocab.txt` and `bert_model.ckpt.*`.

Source: https://github.com/google-research/bert.
"""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.google_graph import notes_on_meta_file
from keras_bert_kit.pretrained.heads import num_classes_of, usable_heads
from keras_bert_kit.pretrained.kit_file import KIT_FILE, class_names_in, read_kit_file
from keras_bert_kit.pretrained.names import GOOGLE
from keras_bert_kit.pretrained.read_checkpoint import (
    OBJECT_GRAPH,
    CheckpointFile,
    data_files,
    find_checkpoint,
    slots_among,
)
from keras_bert_kit.pretrained.source import NamedArrays, Source, rate_in, read_config, read_tokenizer

CONFIG, VOCABULARY = "bert_config.json", "vocab.txt"
FILES = f"{CONFIG}, {VOCABULARY}, bert_model.ckpt.index and bert_model.ckpt.data-…"


def find(folder):
    """Returns (kind, folder, files of weights), or None if the folder holds no such checkpoint.

    Raises:
        CheckpointError: Other files are missing; the message lists them.
    """
    found = find_checkpoint(folder)
    if not found or holds_object_graph(found[0]):
        return None
    missing = [name for name in (CONFIG, VOCABULARY) if not (folder / name).is_file()]
    if missing:
        inside = sorted(path.name for path in folder.iterdir())
        raise CheckpointError(
            f"The folder {str(folder)!r} must hold {FILES}. Missing: {', '.join(missing)}. "
            f"Found: {', '.join(inside[:12])}. Copy the missing files there."
        )
    return "TF1 checkpoint of the original BERT", folder, [*data_files(found[0]), index_file(found[0])]


def read(folder):
    """Reads a folder that `find` found; returns a `Source`.

    Raises:
        CheckpointError: A file is damaged.
        ConfigError: bert_config.json describes no BERT.
        VocabularyError: vocab.txt is not one.
    """
    prefix, notes = find_checkpoint(folder)
    config, _, notes_on_config = read_config(folder / CONFIG)
    notes += notes_on_meta_file(prefix.with_name(prefix.name + ".meta"), config.hidden_act)
    kit, options = read_kit_file(folder / KIT_FILE)  # where the kit wrote the folder
    tokenizer, note = read_tokenizer(folder / VOCABULARY, rows=config.vocab_size, **options)
    arrays = NamedArrays(CheckpointFile(prefix), str)
    heads, left_out = usable_heads(GOOGLE, arrays)
    left_out |= slots_among(arrays)
    class_names = []
    if "classifier" in heads:
        num_classes = num_classes_of(GOOGLE, "classifier", arrays)
        class_names, note_on_names = class_names_in(kit, num_classes, folder / KIT_FILE)
        notes.append(note_on_names)
    return Source(
        arrays=arrays,
        table=GOOGLE,
        heads=heads,
        config=config,
        tokenizer=tokenizer,
        notes=[*notes_on_config, note, *notes],
        left_out=left_out,
        copies={},
        class_names=class_names,
        dropout_rate=rate_in(kit, "dropout_rate", folder / KIT_FILE),
    )


def holds_object_graph(prefix):
    """Says whether a checkpoint is one of TF2, with a graph of objects: its index then has an entry of that name."""
    return OBJECT_GRAPH.encode() in index_file(prefix).read_bytes()


def index_file(prefix):
    """Returns the path of a checkpoint's index."""
    return prefix.with_name(prefix.name + ".index")
