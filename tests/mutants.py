"""Damaged files: small valid models of every format, each changed at random in one way, the same in every run.

`sources` writes the models, `mutants` the damaged copies. What was changed is in a mutant's name.
"""

import json
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fake_checkpoints import (
    google_array,
    google_name,
    save_arrays,
    write_google_folder,
    write_saved_model,
    write_tf_models_checkpoint,
)
from fake_h5 import write_preset, write_tf_h5
from fake_tf1_hub import write_tf1_module
from fake_torch import write_torch
from fake_weights import write_hf_folder, write_sentence_transformers_folder
from safetensors.numpy import save_file

from keras_bert_kit.pretrained import load_pretrained, save_pretrained

SAFE, TORCH, H5 = "model.safetensors", "pytorch_model.bin", "tf_model.h5"
SAFETENSORS, GOOGLE, KIT = "safetensors", "original BERT", "ours, with kit.json"
PACKED = {"tar.gz of a folder": "gztar", "zip of a folder": "zip", "tar of a folder": "tar"}


class Mutant(NamedTuple):
    """A damaged copy of a source.

    Attributes:
        source: str, the format of the undamaged model.
        change: str, what was done.
        path: `pathlib.Path` of the folder or archive.
        checked: bool, whether a checksum that is part of the format covers every byte that was changed.
    """

    source: str
    change: str
    path: Path
    checked: bool


def sources(folder):
    """Writes a small valid model of each format.

    Returns:
        Pair of dictionaries from the name of a format: to the path of the folder or archive; and, where tensors can be
        written by name, to what was written.
    """
    paths, tensors = {}, {}

    def place(name):
        paths[name] = folder / name
        return paths[name]

    for name, write in WRITERS.items():
        tensors[name], _ = write_hf_folder(place(name), heads=("classifier",), num_hidden_layers=1)
        (paths[name] / SAFE).unlink()
        write(paths[name], tensors[name])
    tensors[GOOGLE], _ = write_google_folder(place(GOOGLE), num_hidden_layers=1)
    write_sentence_transformers_folder(place("sentence-transformers"), num_hidden_layers=1)
    write_tf_models_checkpoint(place("TF-Models checkpoint"))
    write_saved_model(place("TF-Hub SavedModel"))
    write_tf1_module(place("TF-Hub module of TF1"))
    write_preset(place("keras-hub preset"))
    bert = load_pretrained(paths[SAFETENSORS])
    save_pretrained(bert.classifier, place(KIT), tokenizer=bert.tokenizer)
    bert = load_pretrained(paths["TF-Hub module of TF1"])
    save_pretrained(bert.pretrainer, place("ours, tf1"), tokenizer=bert.tokenizer, format="tf1")
    save_pretrained(bert.pretrainer, place("ours, tf-hub"), tokenizer=bert.tokenizer, format="tf-hub")
    for name, format in PACKED.items():
        archive = shutil.make_archive(str(folder / "packed"), format, paths[SAFETENSORS])
        paths[name] = Path(archive).rename(folder / name)
    return paths, tensors


def mutants(folder, paths, tensors, count):
    """Writes damaged copies of the sources, `count` of each in bytes and files, and a third of that in tensors.

    Yields:
        `Mutant`.
    """
    for source, path in paths.items():
        for number in range(count):
            dice, place = random.Random(f"{source} {number}"), folder / f"{source} {number}"
            if path.is_file():
                shutil.copy(path, place)
                yield Mutant(source, _change_bytes(place, dice), place, checked="tar of" not in source)
            else:
                shutil.copytree(path, place)
                change, names = _change_folder(place, dice)
                yield Mutant(source, change, place, checked=all(_is_checked(source, name) for name in names))
    for source, write in (WRITERS | {GOOGLE: _write_google}).items():
        for number in range(count // 3):
            dice, changed = random.Random(f"{source} tensors {number}"), dict(tensors[source])
            place = shutil.copytree(paths[source], folder / f"{source} tensors {number}")
            change = _change_tensors(changed, dice)
            write(place, changed)
            yield Mutant(source, change, place, checked=False)


def _is_checked(source, name):
    """Whether a checksum covers a file: those of kit.json, or those that a checkpoint of TensorFlow holds itself."""
    return (source == KIT and name != "kit.json") or ".index" in name or ".data-" in name


def _change_folder(folder, dice):
    """Damages one file of a folder, or what it is called; returns what was done, and the names of the files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = dice.choice(files)
    name = file.relative_to(folder).as_posix()
    kind = dice.choice(["bytes"] * 7 + ["renamed", "removed", "exchanged"])
    if kind == "bytes":
        return f"{_change_bytes(file, dice)} in {name}", [name]
    if kind == "renamed":
        file.rename(file.with_name(_misspelt(file.name, dice)))
    elif kind == "removed":
        file.unlink()
    else:
        other = dice.choice([path for path in files if path != file])
        contents = file.read_bytes(), other.read_bytes()
        other.write_bytes(contents[0])
        file.write_bytes(contents[1])
        other = other.relative_to(folder).as_posix()
        return f"exchanged {name} and {other}", [name, other]
    return f"{kind} {name}", [name]


def _change_bytes(file, dice):
    """Damages the bytes of a file; returns what was done."""
    content = bytearray(file.read_bytes())
    kind = dice.choice(["truncated", "flipped", "flipped", "zeroed", "swapped", "cut out", "doubled", "appended"])
    length = min(dice.choice([1, 8, 64, 512, 4096]), max(len(content) // 3, 1))
    # Half of the places lie near the start or the end, where formats keep what is where.
    edge = dice.random() < 0.5 and len(content) > 4096
    last = max(len(content) - length, 0)
    place = dice.choice([dice.randint(0, min(last, 2048)), dice.randint(max(last - 2048, 0), last)])
    place = place if edge else dice.randint(0, last)
    if kind == "truncated":
        del content[place:]
    elif kind == "flipped" and content:
        for _ in range(dice.choice([1, 1, 3])):
            content[min(dice.randint(place, place + length), len(content) - 1)] ^= 1 << dice.randrange(8)
    elif kind == "zeroed":
        content[place : place + length] = bytes(len(content[place : place + length]))
    elif kind == "swapped":
        other = dice.randint(0, last)
        first, second = content[place : place + length], content[other : other + length]
        content[other : other + length] = first
        content[place : place + length] = second
    elif kind == "cut out":
        del content[place : place + length]
    elif kind == "doubled":
        content[place:place] = content[place : place + length]
    else:
        content += bytes(dice.randrange(256) for _ in range(length))
    file.write_bytes(bytes(content))
    return f"{length} bytes {kind} at {place}"


def _change_tensors(tensors, dice):
    """Changes tensors by name in place; returns what was done."""
    kind = dice.choice(["renamed", "missing", "more", "transposed", "cut", "integers", "NaN", "swapped", "empty"])
    name = dice.choice(sorted(tensors))
    array = tensors[name]
    if kind in ("renamed", "more"):
        tensors[_misspelt(name, dice)] = array.copy()
    if kind in ("renamed", "missing"):
        del tensors[name]
    elif kind == "transposed":
        tensors[name] = array.T.copy() if array.shape != array.shape[::-1] else array[None]
    elif kind == "cut":
        tensors[name] = array[:-1].copy()
    elif kind == "integers":
        tensors[name] = array.astype("int64")
    elif kind == "NaN":
        tensors[name] = np.where(np.arange(array.size).reshape(array.shape) == 0, np.float32("nan"), array)
    elif kind == "swapped":
        other = dice.choice(sorted(tensors.keys() - {name}))
        tensors[name], tensors[other] = tensors[other], array
        return f"tensors swapped: {name}, {other}"
    elif kind == "empty":
        tensors[name] = array[:0].copy()
    return f"tensor {kind}: {name}"


def _misspelt(name, dice):
    place = dice.randrange(len(name))
    return name[:place] + dice.choice("abcxyz") + name[place + dice.randrange(2) :]


def _write_shards(folder, tensors):
    files = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    places = {name: files[number % 2] for number, name in enumerate(tensors)}
    for file in files:
        save_file({name: array for name, array in tensors.items() if places[name] == file}, folder / file)
    (folder / f"{SAFE}.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")


def _write_google(folder, tensors):
    arrays = {google_name(name): google_array(name, array) for name, array in tensors.items()}
    save_arrays(folder / "bert_model.ckpt", arrays)


# What writes weights into a folder of Hugging Face's, by the name of the format.
WRITERS = {
    SAFETENSORS: lambda folder, tensors: save_file(tensors, folder / SAFE),
    "shards": _write_shards,
    TORCH: lambda folder, tensors: write_torch(folder / TORCH, tensors),
    f"{TORCH}, the old format": lambda folder, tensors: write_torch(folder / TORCH, tensors, old_format=True),
    H5: lambda folder, tensors: write_tf_h5(folder / H5, tensors),
}
