"""TensorFlow checkpoints and SavedModels whose index, data or graph lie. Each function yields a name and a path.

A checkpoint's index is a table of keys and protocol buffers, in the format of LevelDB; `write_index` writes one with
right checksums, so that nothing but the lie is wrong.
"""

import itertools
import shutil
import struct

import numpy as np
import tensorflow as tf
from fake_checkpoints import save_arrays, write_google_folder, write_saved_model, write_tf_models_checkpoint
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

PREFIX = "bert_model.ckpt"
INDEX, DATA = f"{PREFIX}.index", f"{PREFIX}.data-00000-of-00001"
_MAGIC = 0xDB4775248B80FB57


def hostile_checkpoints(folder):
    """TF1 checkpoints: an index that lies about shapes, types, places and slices."""
    write_google_folder(folder / "google", num_hidden_layers=1, slots=False)
    reader = tf.train.load_checkpoint(str(folder / "google" / PREFIX))
    arrays = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    name = "bert/pooler/dense/bias"
    numbers = itertools.count()

    def copy():
        return shutil.copytree(folder / "google", folder / f"tf1-{next(numbers)}")

    def write(header=None, key=None, **changes):
        place = copy()
        entries = entries_of(arrays)
        (place / DATA).write_bytes(b"".join(array.tobytes() for array in arrays.values()))
        entry = entries[name.encode()]
        for field, value in changes.items():
            if field == "shape":
                del entry.shape.dim[:]
                for size in value:
                    entry.shape.dim.add(size=size)
            elif field == "slices":
                for start, length in value:
                    entry.slices.add().extent.add(start=start, length=length)
            else:
                setattr(entry, field, value)
        entries[key or name.encode()] = entries.pop(name.encode())
        write_index(place / INDEX, entries, header)
        return place

    for what, place in (
        ("a shape of 2**62", write(shape=(2**31, 2**31))),
        ("a shape that overflows", write(shape=(2**32, 2**32, 16))),
        ("a negative shape", write(shape=(-16,))),
        ("an unknown shape", write(shape=(-1,))),
        ("another shape of the same size", write(shape=(4, 4))),
        ("300 dimensions", write(shape=(16, *[1] * 300))),
        ("a terabyte", write(shape=(1 << 38,), size=1 << 40)),
        ("text for numbers", write(dtype=types_pb2.DT_STRING)),
        ("a variant for numbers", write(dtype=types_pb2.DT_VARIANT)),
        ("a resource for numbers", write(dtype=types_pb2.DT_RESOURCE)),
        ("integers", write(dtype=types_pb2.DT_INT32)),
        ("a type that nobody knows", write(dtype=9999)),
        ("no type", write(dtype=0)),
        ("quantised numbers", write(dtype=types_pb2.DT_QINT32)),
        ("half precision of the same bytes", write(dtype=types_pb2.DT_HALF)),
        ("a file that is not there", write(shard_id=7)),
        ("a negative file", write(shard_id=-1)),
        ("a negative place", write(offset=-64)),
        ("a place beyond the end", write(offset=1 << 50)),
        ("a place of another tensor", write(offset=4)),
        ("a negative size", write(size=-64)),
        ("a size that is too small", write(size=60)),
        ("a wrong checksum", write(crc32c=1)),
        ("slices that are not there", write(slices=[(0, 8), (8, 8)])),
        ("a slice of 2**60", write(slices=[(0, 1 << 60)])),
        ("overlapping slices", write(slices=[(0, 16), (0, 16)])),
        ("another name", write(key=b"bert/pooler/dense/bia5")),
        ("a name that is not UTF-8", write(key=b"bert/pooler/dense/\xff\xfe")),
        ("a name of a megabyte", write(key=b"x" * 1_000_000)),
        ("another endianness", write(BundleHeaderProto(num_shards=1, endianness=BundleHeaderProto.BIG))),
        ("two billion files", write(BundleHeaderProto(num_shards=2**31 - 1))),
        ("no files", write(BundleHeaderProto(num_shards=-1))),
        ("a version of the future", write(_of_the_future())),
    ):
        yield f"checkpoint: {what}", place
    place = copy()
    write_index(place / INDEX, {b"x": b"\xff" * 100})
    yield "checkpoint: an index with an entry of garbage", place
    place = copy()
    for suffix in (".index", ".data-00000-of-00001"):
        (place / (PREFIX + suffix)).unlink()
    half = {"tensor_names": [name], "shape_and_slices": ["16 0,8"], "tensors": [tf.zeros(8)]}
    tf.raw_ops.SaveV2(prefix=str(place / PREFIX), **half)
    yield "checkpoint: half of a partitioned tensor", place
    place = copy()
    save_arrays(place / PREFIX, {key: array for key, array in arrays.items() if key != name})
    yield "checkpoint: a tensor missing", place
    place = copy()
    save_arrays(place / PREFIX, arrays | {name: np.full(16, np.nan, "float32")})
    yield "checkpoint: NaN", place
    place = copy()
    save_arrays(place / PREFIX, arrays | {name: np.array(["text"] * 16)})
    yield "checkpoint: text", place
    (place := copy()).joinpath("checkpoint").write_text('model_checkpoint_path: "/etc/x"', encoding="utf-8")
    (place / "other.index").write_bytes((place / INDEX).read_bytes())
    yield "checkpoint: two of them, and a file checkpoint that names one elsewhere", place


def hostile_graphs(folder):
    """SavedModels and object checkpoints: garbage for a graph, and paths that lead out of it."""
    write_saved_model(folder / "model")
    numbers = itertools.count()
    whole = SavedModel.FromString((folder / "model/saved_model.pb").read_bytes())
    vocabulary = next(
        child.node_id
        for child in whole.meta_graphs[0].object_graph_def.nodes[0].children
        if child.local_name == "vocab_file"
    )

    def write(change):
        place = shutil.copytree(folder / "model", folder / f"graph{next(numbers)}")
        model = SavedModel()
        model.CopyFrom(whole)
        (place / "saved_model.pb").write_bytes(change(model) or model.SerializeToString())
        return place

    def asset(name):
        return lambda model: setattr(model.meta_graphs[0].asset_file_def[0], "filename", name)

    def number(value):
        nodes = lambda model: model.meta_graphs[0].object_graph_def.nodes  # noqa: E731
        return lambda model: setattr(nodes(model)[vocabulary].asset, "asset_file_def_index", value)

    for what, change in (
        ("garbage", lambda model: b"\xff" * 1000),
        ("a message of 2**31 bytes", lambda model: b"\x12\xff\xff\xff\xff\x07abc"),
        ("100,000 messages in messages", lambda model: b"\x12" + b"\x80\x80\x40\x12" * 100_000),
        ("a vocabulary in ../", asset("../words.txt")),
        ("a vocabulary in ../../", asset("../../model/assets/words.txt")),
        ("a vocabulary at an absolute path", asset("/etc/hostname")),
        ("a vocabulary without a name", asset("")),
        ("a vocabulary that is a folder", asset(".")),
        ("a vocabulary that is not there", asset("other.txt")),
        ("a vocabulary of the number 99", number(99)),
        ("a vocabulary of a negative number", number(-1)),
    ):
        yield f"SavedModel: {what}", write(change)
    place = write(lambda model: None)
    (place / "variables/variables.index").write_bytes(b"")
    yield "SavedModel: an empty index", place
    place = write(lambda model: None)
    (place / "keras_metadata.pb").write_text(
        '{"inner_activation": "os.system", "norm_epsilon": 1e-12}', encoding="utf-8"
    )
    yield "SavedModel: an activation that is a function", place
    place = write(lambda model: None)
    (place / "keras_metadata.pb").write_text('{"norm_epsilon": 1e999, "a": 1}', encoding="utf-8")
    yield "SavedModel: an epsilon of infinity", place
    write_tf_models_checkpoint(folder / "objects")
    reader = tf.train.load_checkpoint(str(folder / "objects/ckpt-1"))
    arrays = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    graph = TrackableObjectGraph.FromString(arrays.pop("_CHECKPOINTABLE_OBJECT_GRAPH"))
    for node in graph.nodes:
        for attribute in node.attributes:
            attribute.full_name = "word_embeddings/embeddings"
    for what, content in (("garbage", b"\xff" * 50), ("one name for all", graph.SerializeToString())):
        place = folder / f"objects {what}"
        place.mkdir()
        save_arrays(place / "ckpt-1", arrays | {"_CHECKPOINTABLE_OBJECT_GRAPH": np.array(content, dtype=object)})
        yield f"object checkpoint: a graph of {what}", place


def entries_of(arrays):
    """{name: entry} of arrays that lie one after the other in one file."""
    entries, offset = {}, 0
    for name, array in arrays.items():
        entry = BundleEntryProto(dtype=types_pb2.DT_FLOAT, offset=offset, size=array.nbytes)
        entry.crc32c = masked_crc(array.tobytes())
        for size in array.shape:
            entry.shape.dim.add(size=size)
        entries[name.encode()] = entry
        offset += array.nbytes
    return entries


def write_index(path, entries, header=None):
    """Writes the index of a checkpoint: {key: entry}, sorted, in one block of LevelDB's table format."""
    header = header or BundleHeaderProto(num_shards=1)
    header.version.producer = header.version.producer or 1
    content = b""
    for key, value in sorted({b"": header, **entries}.items()):
        value = value if isinstance(value, bytes) else value.SerializeToString()
        content += _varint(0) + _varint(len(key)) + _varint(len(value)) + key + value
    table, handles = b"", []
    for block in (content, b"", None):
        if block is None:  # the index of the one block of data: its last key, and where it lies
            block = _varint(0) + _varint(1) + _varint(len(handles[0])) + b"\xff" + handles[0]
        block += struct.pack("<II", 0, 1)  # one restart point
        handles.append(_varint(len(table)) + _varint(len(block)))
        table += block + b"\0" + struct.pack("<I", masked_crc(block + b"\0"))
    path.write_bytes(table + (handles[1] + handles[2]).ljust(40, b"\0") + struct.pack("<Q", _MAGIC))


def masked_crc(content):
    """LevelDB's checksum: CRC-32C, rotated and shifted."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _table():
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 * (crc & 1))
        yield crc


_TABLE = tuple(_table())


def _varint(value):
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _of_the_future():
    header = BundleHeaderProto(num_shards=1)
    header.version.producer, header.version.min_consumer = 99, 99
    return header
