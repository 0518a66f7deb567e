"""`load_pretrained`: read, rename, assign; and a report of what was done."""

import math
from pathlib import Path

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.pretrained.assign import assign, variables_of
from keras_bert_kit.pretrained.build import Pretrained, models_for
from keras_bert_kit.pretrained.find import located
from keras_bert_kit.pretrained.hugging_face import KIT_FILE
from keras_bert_kit.pretrained.names import rows_for
from keras_bert_kit.pretrained.report import LoadReport
from keras_bert_kit.pretrained.source import object_in, read_json

_SPARE_NUMBERS = 1 << 24  # 64 MB of float32: how much larger than its file a model may be before it is looked into


def load_pretrained(source, *, allow_missing=(), sha256=None, dtype=None):
    """Loads pretrained weights, a tokenizer and the heads that are there, or says why not.

    Args:
        source: path of a folder, or of a .tar.gz or .zip of one; what kind it is, is found by content:
            * Hugging Face (config.json, vocab.txt and model.safetensors, in one file or in shards, pytorch_model.bin
              or tf_model.h5), for example one written by `save_pretrained`, or a sentence-transformers folder with a
              BERT in it;
            * the original BERT (bert_config.json, vocab.txt, bert_model.ckpt.*);
            * TF-Hub, a TF2 SavedModel of a BERT encoder, with or without `.mlm`;
            * TF-Models, an object checkpoint, perhaps with bert_config.json and vocab.txt;
            * keras-hub, a preset (config.json, tokenizer.json, model.weights.h5), perhaps with a task.
        allow_missing: `("pooler",)` to start from a new, random pooler where the source has none. Default: then the
            encoder has no pooler.
        sha256: str, the checksum that the archive or the file of weights must have; where the weights lie in several
            files, a dictionary from file name to checksum. Default: not compared.
        dtype: str or dtype policy of the models, for example `"mixed_bfloat16"`. Default: Keras' global policy.

    Returns:
        `Pretrained`.

    Raises:
        CheckpointError: Files are missing or damaged, or tensors do not fit; all faults in one message.
        ConfigError: config.json describes no BERT.
        VocabularyError: vocab.txt is not one.

    Example:

    >>> bert = load_pretrained("all-MiniLM-L6-v2")
    >>> print(bert.report)
    """
    if unknown := set(allow_missing) - {"pooler"}:
        raise ValueError(f"allow_missing may hold 'pooler' only. Received: {sorted(unknown)}.")
    path = Path(source)
    if path.is_file() and isinstance(sha256, str):  # an archive: it is compared as it is, before it is opened
        _require_sums(path.parent, {path.name: sha256}, {path.name: sha256_of(path)})
        sha256 = None
    with located(path) as found:
        return _load(source, found, allow_missing, sha256, dtype)


def _load(source, found, allow_missing, sha256, dtype):
    checksums = _checked_sums(found, sha256)  # before anything in the files is believed
    read = found.format.read(found.path)
    _require_room(read, found.path)
    notes = [*found.notes, *read.notes, *_notes_on_vocabulary(read, found.path)]

    # Everything is made, then filled in one step that changes all variables or none.
    new_pooler = "pooler" in allow_missing and "pooler" not in read.heads
    encoder, models = models_for(read, new_pooler, dtype)
    variables = variables_of(encoder, *models.values())
    if new_pooler:
        variables = {path: v for path, v in variables.items() if not path.startswith("encoder/pooler/")}
    rows = rows_for(read.table, ["encoder", *read.heads], read.config.num_hidden_layers)
    assign(
        read.arrays,
        rows,
        variables,
        left_out=read.left_out,
        copies=read.copies,
        source=found.path,
        num_heads=read.config.num_attention_heads,
    )

    report = LoadReport(
        source=str(source),
        kind=found.kind,
        config=read.config.to_dict(),
        parameters=sum(variable.value.shape.num_elements() for variable in variables.values()),
        heads=tuple(read.heads),
        notes=(*notes, *_notes_on_pooler(read, new_pooler)),
        assigned=tuple(read.arrays.name_in_file(row.theirs) for row in rows),
        left_out={read.arrays.name_in_file(name): reason for name, reason in read.left_out.items()},
        sha256=checksums,
    )
    return Pretrained(encoder, read.tokenizer, read.config, report, **models)


def _require_room(read, path):
    """Refuses a configuration that is far larger than the weights, before a model of that size is made."""
    sizes = read.config
    width, inner = sizes.hidden_size, sizes.intermediate_size
    tables = (sizes.vocab_size + sizes.max_position_embeddings + sizes.type_vocab_size) * width
    expected = tables + sizes.num_hidden_layers * (4 * width * width + 2 * width * inner)
    there = sum(math.prod(read.arrays.shape(name)) for name in read.arrays)
    if expected > there + _SPARE_NUMBERS:
        raise CheckpointError(
            f"The configuration and the weights must be of one size. Received: {path}, a configuration of about "
            f"{expected} numbers, {there} numbers in the tensors. The files do not belong together."
        )


def _checked_sums(found, expected):
    """Checksums of the weights; compared with `expected`, and with those in kit.json if the kit wrote the folder."""
    checksums = {path.name: sha256_of(path) for path in found.weights}
    recorded = {}
    if (found.path / KIT_FILE).is_file():
        recorded = object_in(read_json(found.path / KIT_FILE), "sha256", found.path / KIT_FILE)
    if isinstance(expected, str):
        if len(found.weights) > 1:
            raise ValueError(
                "sha256 must be a dictionary from file name to checksum where the weights lie in several files. "
                f"Received: one checksum for {', '.join(path.name for path in found.weights)}."
            )
        expected = {found.weights[0].name: expected}
    recorded |= expected or {}
    if elsewhere := [name for name in recorded if Path(name).name != name]:
        raise CheckpointError(f"Checksums must be of files in {found.path}. Received: {', '.join(elsewhere)}.")
    checksums |= {name: sha256_of(found.path / name) for name in recorded if (found.path / name).is_file()}
    _require_sums(found.path, recorded, checksums)
    return checksums


def _require_sums(folder, recorded, checksums):
    for name, digest in recorded.items():
        if checksums.get(name) != digest:
            raise CheckpointError(
                f"{folder / name} must be the file that was recorded, with sha256 {digest}. "
                f"Received: {checksums.get(name, 'no such file')}. It was changed or damaged since; fetch it again."
            )


def _notes_on_vocabulary(read, path):
    if read.tokenizer is None:
        return ["no vocabulary in the source: there is no tokenizer"]
    words, rows = read.tokenizer.vocab_size, read.config.vocab_size
    if words > rows:
        raise CheckpointError(
            f"The vocabulary must not hold more words than the word table has rows. "
            f"Received: {words} words, vocab_size={rows} in {path}. The files do not belong together."
        )
    return [f"the vocabulary holds {words} words, the word table {rows} rows (padded)"] if words < rows else []


def _notes_on_pooler(read, new_pooler):
    if "pooler" in read.heads:
        return []
    return ["no pooler in the source: " + ("a new, random one" if new_pooler else "the encoder has none")]
