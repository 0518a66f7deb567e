"""What a folder of pre-training data says of itself: how it was made, from what, and which shards belong to it.

    plan.json        while the data is being made: settings, vocabulary, sources
    manifest.json    in the place of the plan when all shards are there: the same, and each shard with its checksum

So a folder without manifest is unfinished, and a plan tells a rerun whether the shards it finds are its own.
"""

import hashlib
import json
import os
from pathlib import Path

from keras_bert_kit.data.pretraining_settings import PretrainingSettings
from keras_bert_kit.data.tokenizer_settings import settings_of
from keras_bert_kit.errors import DataError
from keras_bert_kit.files import file_written_beside, require_writable, sha256_of
from keras_bert_kit.text import BertTokenizer

FORMAT_VERSION = 1  # to be raised when the same settings and sources would give other shards
PLAN, MANIFEST, VOCABULARY = "plan.json", "manifest.json", "vocab.txt"


def plan_of(paths, tokenizer, settings):
    """Describes what is going to be made; shards are a function of this and of nothing else.

    Args:
        paths: the text files. Their names and contents count, not the folders they lie in.
        tokenizer: `BertTokenizer`.
        settings: `PretrainingSettings`.

    Returns:
        Dictionary that JSON can hold.
    """
    plan = {
        "format_version": FORMAT_VERSION,
        "settings": settings.to_dict(),
        "tokenizer": settings_of(tokenizer),
        "vocabulary_sha256": hashlib.sha256(vocabulary_bytes(tokenizer)).hexdigest(),
        "sources": [
            {"name": Path(path).name, "bytes": os.path.getsize(path), "sha256": sha256_of(path)} for path in paths
        ],
    }
    return json.loads(json.dumps(plan))


def start_or_go_on(folder, plan):
    """Makes the output folder, or makes sure that what is in it was begun with the same plan.

    Args:
        folder: `pathlib.Path`.
        plan: dictionary of `plan_of`.

    Raises:
        DataError: The folder holds something else, or data of another plan. Nothing was changed.
    """
    require_writable(folder)
    found = [folder / name for name in (MANIFEST, PLAN) if (folder / name).is_file()]
    if not found and folder.is_dir() and any(not path.name.startswith(".tmp-") for path in folder.iterdir()):
        raise DataError(
            "The output folder must be new, empty, or that of a run that was cut short. "
            f"Received: {folder}, which holds other things. Choose another folder, or move this one away."
        )
    if found:
        before = _read_json(found[0])
        if changed := _differences({name: before.get(name) for name in plan}, plan):
            raise DataError(
                "The output folder must be new, or hold data of the same sources and settings. "
                f"Received: {folder}, where {'; '.join(changed)}. Choose another folder, or remove this one."
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / PLAN, plan)


def finish(folder, plan, tokenizer, shards):
    """Writes the vocabulary and the manifest, which makes the folder complete.

    Args:
        folder: `pathlib.Path`.
        plan: dictionary of `plan_of`.
        tokenizer: `BertTokenizer`.
        shards: list of what `make_shard` returns.
    """
    with file_written_beside(folder / VOCABULARY) as beside:
        beside.write_bytes(vocabulary_bytes(tokenizer))
    totals = {name: sum(shard[name] for shard in shards) for name in ("sequences", "rows")}
    totals["max_sequences_per_row"] = max(shard["max_sequences_per_row"] for shard in shards)
    entries = [{name: shard[name] for name in ("name", "sha256", "sequences", "rows")} for shard in shards]
    write_json(folder / MANIFEST, plan | totals | {"shards": entries})
    (folder / PLAN).unlink(missing_ok=True)


def read_manifest(folder):
    """Reads the manifest of a folder of pre-training data.

    Args:
        folder: `pathlib.Path`.

    Returns:
        Triple of the dictionary, the `PretrainingSettings` and the `BertTokenizer`.

    Raises:
        DataError: There is no manifest, or it or the vocabulary is damaged.
    """
    if not folder.is_dir():
        raise DataError(f"Pre-training data must be a folder. Received: {str(folder)!r}, which is none.")
    if not (folder / MANIFEST).is_file():
        begun = "data that was not finished: run the same make-pretraining-data command again, it goes on"
        other = "no data of make-pretraining-data, or its manifest was removed: run the command that made it again"
        raise DataError(
            f"Pre-training data must have a {MANIFEST}. Received: {folder}, "
            f"{begun if (folder / PLAN).is_file() else other}."
        )
    manifest = _read_json(folder / MANIFEST)
    try:
        if manifest["format_version"] != FORMAT_VERSION:
            raise DataError(
                f"{folder / MANIFEST}: the format must be version {FORMAT_VERSION}. "
                f"Received: {manifest['format_version']}. Make the data again with this version of the kit."
            )
        _require_checksum(folder / VOCABULARY, manifest["vocabulary_sha256"])
        tokenizer = BertTokenizer.from_vocab_file(folder / VOCABULARY, **manifest["tokenizer"])
        return manifest, PretrainingSettings.from_dict(manifest["settings"]), tokenizer
    except (KeyError, TypeError) as error:
        raise DataError(f"{folder / MANIFEST} is damaged: {error!r}. Make the data again.") from None


def check_shards(folder, manifest):
    """Compares every shard with its checksum.

    Raises:
        DataError: Some are missing or damaged; the message lists them.
    """
    faults = []
    for shard in manifest["shards"]:
        path = folder / shard["name"]
        if not path.is_file():
            faults.append(f"{shard['name']} is missing")
        elif sha256_of(path) != shard["sha256"]:
            faults.append(f"{shard['name']} is damaged ({path.stat().st_size} bytes with another checksum)")
    if faults:
        more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise DataError(
            f"Every shard must be as it was written. Received: {folder}, where {', '.join(faults[:5])}{more}. "
            "Run the same make-pretraining-data command again: it writes those anew, and keeps the others."
        )


def vocabulary_bytes(tokenizer):
    """The contents of the vocab.txt of a tokenizer."""
    return "".join(f"{token}\n" for token in tokenizer.vocabulary).encode("utf-8")


def write_json(path, content):
    """Writes a JSON file, whole or not at all."""
    with file_written_beside(path) as beside:
        beside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_json(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}. Make the data again, in another folder.") from None
    if not isinstance(content, dict):
        raise DataError(f"{path} is damaged: no JSON object. Make the data again, in another folder.")
    return content


def _require_checksum(path, expected):
    found = sha256_of(path) if path.is_file() else "no such file"
    if found != expected:
        raise DataError(
            f"{path} must be the file that the data was made with, with sha256 {expected}. Received: {found}. "
            "Run the same make-pretraining-data command again: it writes it anew."
        )


def _differences(before, now):
    """What differs between two nested dictionaries, as readable lines."""
    lines = []
    for name in now:
        if before.get(name) == now[name]:
            continue
        if name in ("settings", "tokenizer") and isinstance(before.get(name), dict):
            pairs = {key: (before[name].get(key), now[name].get(key)) for key in before[name] | now[name]}
            lines += [f"{key} was {old!r} and is {new!r}" for key, (old, new) in pairs.items() if old != new]
        elif name == "sources":
            lines.append("the text files were others (in name, order or contents)")
        else:
            lines.append(f"the {name.removesuffix('_sha256').replace('_', ' ')} was another one")
    return lines
