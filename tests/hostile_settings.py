"""Settings, indexes and vocabularies that lie: the small files beside weights. Functions yield a name and a path."""

import json
import shutil

from fake_h5 import write_preset
from fake_weights import VOCABULARY, write_hf_folder, write_json, write_sentence_transformers_folder

BILLION = 10**9


def hostile_settings(folder):
    """JSON of huge, endless, wrong or missing values; vocabularies that are bombs; indexes of files elsewhere."""
    yield from _configurations(folder)
    yield from _vocabularies(folder)
    yield from _indexes(folder)
    yield from _folders(folder)


def model_with(folder, content, name="config.json", write=write_hf_folder):
    """A new folder of a small model with another file in it: bytes, or a dictionary of what is changed in its JSON."""
    place = folder / f"settings{len(list(folder.iterdir()))}"
    write(place)
    if isinstance(content, dict):
        there = json.loads((place / name).read_text(encoding="utf-8")) if (place / name).is_file() else {}
        content = json.dumps(_changed(there, content)).encode()
    (place / name).write_bytes(content)
    return place


def _changed(values, changes):
    return values | {
        key: _changed(values[key], value) if isinstance(value, dict) and isinstance(values.get(key), dict) else value
        for key, value in changes.items()
    }


def _configurations(folder):
    for key, value in (
        ("hidden_size", BILLION),
        ("vocab_size", 2**63),
        ("vocab_size", 10**400),
        ("num_hidden_layers", BILLION),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", 3),
        ("num_attention_heads", 0),
        ("num_attention_heads", 3),
        ("intermediate_size", 2**31),
        ("max_position_embeddings", BILLION),
        ("type_vocab_size", 0),
        ("hidden_size", 16.0),
        ("hidden_size", "16"),
        ("hidden_size", True),
        ("hidden_size", None),
        ("hidden_size", [16]),
        ("hidden_act", ["gelu"]),
        ("hidden_act", {"class_name": "Lambda"}),
        ("hidden_act", "os.system"),
        ("layer_norm_eps", float("nan")),
        ("layer_norm_eps", float("inf")),
        ("layer_norm_eps", -1),
        ("hidden_dropout_prob", "0.1"),
        ("model_type", ["bert"]),
        ("position_embedding_type", "relative_key"),
        ("pruned_heads", {"0": [1]}),
        ("auto_map", {"AutoModel": "modeling.Model"}),
    ):
        yield f"config.json: {key}={value!r:.20}", model_with(folder, {key: value})
    for what, content in (
        ("nothing", b""),
        ("not UTF-8", b'{"hidden_size": "\xff"}'),
        ("UTF-16", '{"hidden_size": 16}'.encode("utf-16")),
        ("a list", b"[1, 2]"),
        ("null", b"null"),
        ("no end", b'{"hidden_size": 16'),
        ("a million lists in lists", b"[" * 1_000_000),
        ("10,000 objects in objects", b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
        ("a number of 10,000 digits", b'{"vocab_size": ' + b"9" * 10_000 + b"}"),
        ("20 MB of numbers", b'{"vocab_size": [' + b"1," * 10_000_000 + b"1]}"),
        ("a million unknown keys", b"{" + b",".join(b'"%d":0' % number for number in range(1_000_000)) + b"}"),
    ):
        yield f"config.json: {what}", model_with(folder, content)
    for name, key, value in (
        ("tokenizer_config.json", "strip_accents", "yes"),
        ("tokenizer_config.json", "do_lower_case", {"a": 1}),
        ("tokenizer_config.json", "tokenize_chinese_chars", False),
    ):
        yield f"{name}: {key}={value!r}", model_with(folder, {key: value}, name)
    for key, value in (
        ("sha256", {"model.safetensors": "0" * 64}),
        ("sha256", {"../model.safetensors": "0" * 64}),
        ("sha256", {"/etc/hostname": "0" * 64}),
        ("sha256", {"other.bin": "0" * 64}),
        ("sha256", ["model.safetensors"]),
        ("tokenizer", {"max_characters_per_word": "many"}),
        ("tokenizer", {"reference": "other"}),
        ("tokenizer", {"code": "import os"}),
        ("tokenizer", "BertTokenizer"),
    ):
        yield f"kit.json: {key}={value!r}", model_with(folder, {key: value}, "kit.json")
    for key, value in (
        ("hidden_dim", BILLION),
        ("num_layers", BILLION),
        ("vocabulary_size", BILLION),
        ("dropout", [0.1]),
        ("hidden_dim", 16.5),
        ("num_heads", None),
    ):
        place = model_with(folder, {"config": {key: value}}, write=write_preset)
        yield f"config.json of a preset: {key}={value}", place
    names = {str(number): f"class {number}" for number in range(9)}
    write_hf_folder(place := folder / "classes", heads=("classifier",))
    config = json.loads((place / "config.json").read_text(encoding="utf-8"))
    write_json(place / "config.json", config | {"id2label": names})
    yield "config.json: more classes than rows", place


def _vocabularies(folder):
    text = "".join(f"{token}\n" for token in VOCABULARY).encode()
    for what, content in (
        ("nothing", b""),
        ("not UTF-8", text + b"\xff\xfe\n"),
        ("no [CLS]", text.replace(b"[CLS]\n", b"")),
        ("more words than rows", text + b"more\n"),
        ("20 million empty lines", text + b"\n" * 20_000_000 + b"end\n"),
        ("two million words", text + b"".join(b"%d\n" % number for number in range(2_000_000))),
        ("half a million words of 40 letters", text + b"".join(b"%040d\n" % number for number in range(500_000))),
        ("a word of 20 MB", text + b"x" * 20_000_000 + b"\nend\n"),
        ("20 MB of zeros", bytes(20_000_000)),
    ):
        yield f"vocab.txt: {what}", model_with(folder, content, "vocab.txt")


def _indexes(folder):
    secret = folder / "secret"
    write_hf_folder(secret)
    for what, file in (
        ("../", "../secret/model.safetensors"),
        ("an absolute path", str(secret / "model.safetensors")),
        ("another separator", "..\\secret\\model.safetensors"),
        ("..", ".."),
        ("a device", "/dev/zero"),
        ("a file that is not there", "model-00001-of-00002.safetensors"),
        ("a number", 7),
        ("nothing", ""),
        ("a name with a zero byte", "model\0.safetensors"),
        ("itself", "model.safetensors.index.json"),
        ("a name of 100,000 letters", "x" * 100_000),
    ):
        index = json.dumps({"weight_map": {"bert.pooler.dense.bias": file}}).encode()
        place = model_with(folder, index, "model.safetensors.index.json")
        (place / "model.safetensors").unlink()
        yield f"index of shards: {what}", place
    for what, path in (("../", "../secret"), ("an absolute path", str(secret)), ("a number", 7), ("a list", ["."])):
        modules = json.dumps([{"idx": 0, "path": path, "type": "sentence_transformers.models.Transformer"}]).encode()
        place = model_with(folder, modules, "modules.json", write=write_sentence_transformers_folder)
        yield f"modules.json: {what}", place
    for what, content in (
        ("two models", [{"path": "", "type": "Transformer"}] * 2),
        ("no list", {"path": ""}),
        ("7", 7),
    ):
        place = model_with(
            folder, json.dumps(content).encode(), "modules.json", write=write_sentence_transformers_folder
        )
        yield f"modules.json: {what}", place


def _folders(folder):
    """Folders in which a file is no file."""
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        write_hf_folder(place := folder / f"no {name}")
        (place / name).unlink()
        (place / name).mkdir()
        yield f"folder: {name} is a folder", place
    write_hf_folder(place := folder / "link")
    (place / "vocab.txt").unlink()
    (place / "vocab.txt").symlink_to("/dev/zero")
    yield "folder: vocab.txt is a link to a device", place
    write_hf_folder(place := folder / "circle")
    (place / "vocab.txt").unlink()
    (place / "vocab.txt").symlink_to("vocab.txt")
    yield "folder: vocab.txt is a link to itself", place
    yield "folder: an empty one", _empty(folder / "empty")
    shutil.copytree(folder / "empty", place := folder / "other")
    (place / "model.txt").write_text("hello", encoding="utf-8")
    yield "folder: nothing that is read", place


def _empty(path):
    path.mkdir()
    return path
