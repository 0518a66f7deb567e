"""Reads the index of a TensorFlow checkpoint as data, before TensorFlow does.

TensorFlow's reader checks checksums, and ends the whole process where a shape is negative or two slices overlap. So
each entry is looked at here first. An index is a table of LevelDB: blocks of sorted keys and values, found through a
block of handles, found through a footer of 48 bytes; a value is a `BundleEntryProto`, the shape, type and place of one
tensor. Source: tensorflow/core/util/tensor_bundle and tensorflow/core/lib/io/format.cc.
"""

import math
import struct

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto

_FOOTER_BYTES, _MAGIC = 48, 0xDB4775248B80FB57
_LARGEST_INDEX_BYTES = 1 << 25  # of a BERT with a thousand layers and an optimizer: less than 10 MB
_MOST_DIMENSIONS = 8
_NAME_OF_HEADER = b""


def require_sound_index(path, sizes):
    """Refuses an index that says what cannot be.

    Args:
        path: `pathlib.Path` of the index.
        sizes: list of ints, the bytes of each data file.

    Raises:
        ValueError: Something in it is not as in any checkpoint; the message says what.
    """
    if path.stat().st_size > _LARGEST_INDEX_BYTES:
        raise ValueError(f"its index has {path.stat().st_size} bytes, more than {_LARGEST_INDEX_BYTES}")
    try:
        entries = dict(_entries_of_table(path.read_bytes()))
        header = BundleHeaderProto.FromString(entries.pop(_NAME_OF_HEADER))
        if header.num_shards != len(sizes) or header.endianness != BundleHeaderProto.LITTLE:
            raise ValueError(f"its index speaks of {header.num_shards} data files, or of big-endian numbers")
        for key, value in entries.items():
            if b"\0" in key:  # the piece of a tensor that was saved in several; its own entry has no place
                continue
            _require_sound_entry(key.decode("utf-8"), BundleEntryProto.FromString(value), sizes)
    except (DecodeError, IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"its index is damaged: {error}") from None


def _require_sound_entry(name, entry, sizes):
    shape = [dimension.size for dimension in entry.shape.dim]
    if entry.slices:
        raise ValueError(f"{name} is saved in several pieces, which is not read")
    if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0 or entry.shape.unknown_rank:
        raise ValueError(f"{name} has the shape {shape[:_MOST_DIMENSIONS]}")
    if not (0 <= entry.shard_id < len(sizes) and entry.offset >= 0 and entry.size >= 0):
        raise ValueError(f"{name} lies in file {entry.shard_id} at {entry.offset}, {entry.size} bytes")
    if entry.offset + entry.size > sizes[entry.shard_id]:
        raise ValueError(f"{name} ends after the end of the data: it must be as large as its index says")
    dtype = tf.dtypes.as_dtype(entry.dtype) if entry.dtype in _TYPES else None
    if dtype is None or (dtype != tf.string and math.prod(shape) * dtype.size != entry.size):
        raise ValueError(f"{name} has {entry.size} bytes, which is not what {shape} of type {entry.dtype} takes")


def _entries_of_table(content):
    """Pairs of key and value of a LevelDB table."""
    footer = content[-_FOOTER_BYTES:]
    if len(footer) < _FOOTER_BYTES or struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise ValueError("its index is no table, or its end is missing")
    *_, place = _handle(footer, 0)
    for _, handle in _entries_of_block(content, *_handle(footer, place)[:2]):
        yield from _entries_of_block(content, *_handle(handle, 0)[:2])


def _entries_of_block(content, offset, size):
    """Pairs of key and value of one block: each key says how much of the one before it shares."""
    block = content[offset : offset + size]
    if len(block) != size or content[offset + size] != 0:
        raise ValueError("a block of its index is compressed, or missing")
    (restarts,) = struct.unpack("<I", block[-4:])
    end, place, key = size - 4 * (restarts + 1), 0, b""
    while place < end:
        shared, place = _varint(block, place)
        added, place = _varint(block, place)
        length, place = _varint(block, place)
        key = key[:shared] + block[place : place + added]
        place += added + length
        if place > end:
            raise ValueError("an entry of its index ends after its block")
        yield key, block[place - length : place]


def _handle(content, place):
    """Returns the offset and the size of a block, and the place after them."""
    offset, place = _varint(content, place)
    size, place = _varint(content, place)
    return offset, size, place


def _varint(content, place):
    """Returns a number of seven bits a byte, the lowest first, and the place after it."""
    value = shift = 0
    while True:
        byte = content[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value, place


# Types with a size of their own, and text; what else a checkpoint could hold has no place among weights.
_TYPES = {
    dtype.as_datatype_enum
    for dtype in (
        *(tf.float16, tf.bfloat16, tf.float32, tf.float64),
        *(tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool, tf.string),
    )
}
