"""Files of weights that lie or attack: safetensors and pickles. Each function yields pairs of a name and a path.

What they give is the path of a folder that is whole but for that one file.
"""

import itertools
import json
import os
import pickle
import shutil
import struct

import numpy as np
from fake_torch import Raw, pickled, write_pickle, write_torch
from fake_weights import write_hf_folder

SAFE, TORCH = "model.safetensors", "pytorch_model.bin"


def model_and_copies(folder, name):
    """Makes a small model; returns its folder, and an iterator of copies without weights, for the caller to write."""
    whole = folder / "whole"
    write_hf_folder(whole, heads=("classifier",), num_hidden_layers=1)

    def copies():
        for number in itertools.count():
            copy = shutil.copytree(whole, folder / f"{name}{number}")
            (copy / SAFE).unlink()
            yield copy

    return whole, copies()


# safetensors: eight bytes with the length of the header, the header in JSON, the numbers


def hostile_safetensors(folder):
    """Headers that lie about sizes, shapes, places and types of tensors, or are no headers at all."""
    model, copies = model_and_copies(folder, "safe")
    whole = (model / SAFE).read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header, body = json.loads(whole[8 : 8 + length]), whole[8 + length :]

    def write(text, content=body, said=None):
        text = json.dumps(text) if isinstance(text, dict) else text
        text = text.encode() if isinstance(text, str) else text
        place = next(copies)
        (place / SAFE).write_bytes(struct.pack("<Q", len(text) if said is None else said) + text + content)
        return place

    for name, said in (("a byte more", length + 1), ("100 MB", 10**8), ("2**63 bytes", 2**63), ("2**64-1", 2**64 - 1)):
        yield f"safetensors: a header said to have {name}", write(header, said=said)
    place = write(b"", b"", said=10**8)
    with open(place / SAFE, "r+b") as file:
        file.truncate(10**8 + 8)
    yield "safetensors: a header of 100 MB of zeros", place
    yield "safetensors: a header of 50 MB, one string", write(header | {"__metadata__": {"format": "x" * 50_000_000}})
    empty = {f"t{number}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for number in range(40_000)}
    yield "safetensors: 40,000 empty tensors", write(empty | header)
    yield "safetensors: a header without end", write("[" * 1_000_000)
    yield "safetensors: a header not in UTF-8", write(json.dumps(header).encode().replace(b"bert.", b"ber\xff.", 1))
    yield "safetensors: a header that is a list", write("[1, 2]")
    yield "safetensors: no header", write(b"", b"", said=0)
    yield "safetensors: an empty file", write(b"")
    (place := next(copies)).joinpath(SAFE).write_bytes(b"")
    yield "safetensors: no byte", place
    name = "bert.encoder.layer.0.output.dense.weight"  # (16, 24)
    text = json.dumps(header)
    twice = text[:-1] + f', "{name}": {json.dumps(header[name])}' + "}"
    yield "safetensors: a tensor twice", write(twice)
    start, end = header[name]["data_offsets"]
    for what, changed in (
        ("overlap", {"data_offsets": [start - 64, end - 64]}),
        ("a hole", {"data_offsets": [start, end - 4], "shape": [383]}),
        ("an end before its start", {"data_offsets": [end, start]}),
        ("an end after the end of the file", {"data_offsets": [start, end + 2**40]}),
        ("places beyond 64 bits", {"data_offsets": [2**64 - 4, 2**64 + 1532]}),
        ("negative places", {"data_offsets": [-1536, 0]}),
        ("a negative shape", {"shape": [-16, -24]}),
        ("a shape that overflows to its size", {"shape": [2**32, 2**32, 384]}),
        ("a shape with zero", {"shape": [0, 24]}),
        ("a shape of fractions", {"shape": [16.0, 24.0]}),
        ("another shape of the same size", {"shape": [24, 16]}),
        ("a shape of 10,000 dimensions", {"shape": [16, 24] + [1] * 10_000}),
        ("integers", {"dtype": "I32"}),
        ("numbers of 8 bits", {"dtype": "F8_E4M3", "shape": [16, 96]}),
        ("numbers of 64 bits", {"dtype": "F64"}),
        ("truth values", {"dtype": "BOOL", "shape": [16, 96]}),
        ("a type that nobody knows", {"dtype": "F33"}),
        ("no type", {"dtype": None}),
    ):
        yield f"safetensors: {what}", write(header | {name: header[name] | changed})
    yield "safetensors: bytes after the last tensor", write(header, body + bytes(1000))
    yield "safetensors: the last bytes missing", write(header, body[:-1])
    bad = np.full(4, np.nan, "<f4").tobytes()
    yield "safetensors: NaN", write(header, body[:start] + bad + body[start + 16 :])
    yield "safetensors: infinity", write(header, body[:start] + np.float32(np.inf).tobytes() + body[start + 4 :])


# pickles


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def hostile_pickles(folder):
    """Pickles that call, name, allocate, nest or point where no tensor does."""
    mark = folder / "executed"
    _, copies = model_and_copies(folder, "pickle")
    calls = {
        "os.system": Calls(os.system, f"touch {mark}"),
        "eval": Calls(eval, f"open({str(mark)!r}, 'w')"),
        "exec": Calls(exec, f"open({str(mark)!r}, 'w')"),
        "getattr": Calls(getattr, {}, "clear"),
        "os.mkdir": Calls(os.mkdir, str(mark)),
        "__import__": Calls(__import__, "antigravity"),
        "bytearray": Calls(bytearray, 1 << 33),
    }
    for name, call in calls.items():
        for protocol in (0, 2, 5):
            content = pickle.dumps({"a": [call]}, protocol=protocol)
            yield f"pickle: {name}, protocol {protocol}", _zipped(next(copies), content)
        (place := next(copies)).joinpath(TORCH).write_bytes(content)
        yield f"pickle: {name}, no zip file", place
    for name, content in _programs():
        yield f"pickle: {name}", _zipped(next(copies), content)
    values = np.zeros(10, "float32")
    for name, options in (
        ("a tensor larger than its storage", {"size": (11,)}),
        ("a tensor that strides over the end", {"size": (2, 5), "stride": (6, 1)}),
        ("a huge tensor of one number", {"size": (10**9,), "stride": (0,)}),
        ("a negative place", {"offset": -1}),
        ("a negative size", {"size": (-1,)}),
        ("sizes and strides of different lengths", {"size": (2, 5)}),
        ("a storage that is not there", {"stride": (1,), "size": (10,)}),
    ):
        place = next(copies)
        write_torch(place / TORCH, {"a": Raw("0", values, **options)})
        yield f"pickle: {name}", place
    write_torch((place := next(copies)) / TORCH, {"a": values}, compress=True)
    yield "pickle: compressed", place
    yield "pickle: a tensor's storage is a file elsewhere", _zipped(next(copies), pickled({"a": Raw("../x", values)}))


def _programs():
    """Pairs of a name and the instructions of a pickle."""
    yield "names os.system", b"cos\nsystem\n(S'true'\ntR."
    yield "INST", b"(S'true'\nios\nsystem\n."
    yield "OBJ", b"(cos\nsystem\nS'true'\no."
    yield "NEWOBJ", b"\x80\x02ccollections\nOrderedDict\n)\x81."
    yield "NEWOBJ_EX", b"\x80\x04ccollections\nOrderedDict\n)}\x92."
    yield "EXT1", b"\x80\x02\x82\x01."
    yield "a dotted name", b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.__init__\x93."
    yield "unpickles in the unpickler", b"ctorch.storage\n_load_from_bytes\n(Ncos\nsystem\ntR."
    yield "PERSID", b"P../x\n."
    yield "a persistent name that is a number", b"\x80\x02K\x05Q."
    yield "a persistent name of another kind", b"\x80\x02(X\6\0\0\0moduleNX\1\0\0\x000tQ."
    yield "a memo of two billion", b"\x80\x02}r\xff\xff\xff\x7f."
    yield "a memo that is not there", b"\x80\x02h\x07."
    yield "a list in itself", b"\x80\x02]q\0h\0a."
    yield "a dictionary in itself", b"\x80\x02}q\0X\1\0\0\0ah\0s."
    yield "text of 2 GB", b"\x80\x02X\xff\xff\xff\x7fabc."
    yield "text of 2**62 bytes", b"\x80\x04\x8d" + (2**62).to_bytes(8, "little") + b"abc."
    yield "bytes of 2**62", b"\x80\x04\x8e" + (2**62).to_bytes(8, "little") + b"abc."
    yield "BYTEARRAY8 of 2**40 bytes", b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b"abc."
    yield "a frame of 2**60 bytes", b"\x80\x04\x95" + (2**60).to_bytes(8, "little") + b"}."
    yield "a number of 2 GB", b"\x80\x02\x8b\xff\xff\xff\x7f."
    yield "a number of a million digits", b"I" + b"9" * 1_000_000 + b"\n."
    yield "a buffer of its own band", b"\x80\x05\x97\x98."
    yield "a set", b"\x80\x04\x8f."
    yield "nothing", b""
    yield "no end", b"\x80\x02}"
    yield "a stack that is empty", b"\x80\x020."
    yield "a number", b"\x80\x02K\x05."
    yield "names that are numbers", b"\x80\x02}K\1K\2s."
    yield "values that are numbers", pickle.dumps({"epoch": 3}, protocol=2)
    yield "100,000 lists in lists", b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."
    # Tuples that hold the one before twice: 2**40 places, which take an age to hash or to print.
    doubled = b"\x80\x02K\1q\0" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(40))
    yield "a name that doubles 40 times", b"\x80\x02}" + doubled[2:] + b"K\1s."
    yield "a persistent name that doubles 40 times", doubled + b"Q."
    yield (
        "a tensor whose size doubles 40 times",
        (
            b"\x80\x02}X\1\0\0\0actorch._utils\n_rebuild_tensor_v2\n"
            b"((X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\x000X\3\0\0\0cpuK\ntQK\0" + doubled[2:] + b"h\x28NNtRs."
        ),
    )
    yield "a name of a million tuples in tuples", b"\x80\x02})" + b"\x85" * 1_000_000 + b"K\1s."
    yield "a dictionary that OrderedDict makes of pairs", b"\x80\x02ccollections\nOrderedDict\n]]K\1aK\2a\x85a\x85R."
    yield "a state for OrderedDict", b"\x80\x02ccollections\nOrderedDict\n)R}X\5\0\0\0itemsK\1sb."


def _zipped(place, content):
    write_pickle(place / TORCH, content)
    return place
