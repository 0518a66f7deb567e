"""Serialized `tf.train.Example`s of many records at once.

The class of that name takes three times as long, most of it for making Python integers one by one. The format is that
of protocol buffers (https://protobuf.dev/programming-guides/encoding): an integer takes a byte for each 7 bits, lowest
first, the upper bit of a byte saying that another follows; what has a length is a tag, the length, and its bytes.

    Example > features > feature {name, Feature > int64_list > value: 101 2026 3899 102}
"""

import numpy as np

# Tag of a field that has a length: its number in the message, and wire type 2.
_FIELD_1, _FIELD_2, _FIELD_3 = ((number << 3 | 2).to_bytes(1, "little") for number in (1, 2, 3))


def serialize_examples(features) -> list[bytes]:
    """Serializes records of integers.

    Args:
        features: dict of name to (values, splits): int array of the values of all records, 0 or more, one record after
            the other, and int array (records + 1,) of where each begins in it.

    Returns:
        list of bytes, what `tf.train.Example` would write; features are in the order of their names.
    """
    encoded = []
    for name, (values, splits) in sorted(features.items()):
        data, starts = _varints(np.asarray(values))
        encoded.append((_Frames(name), data, starts[splits].tolist()))
    records = []
    for record in range(len(encoded[0][2]) - 1):
        parts = []
        for frames, data, starts in encoded:
            start, end = starts[record], starts[record + 1]
            parts += frames[end - start], data[start:end]
        records.append(_with_length(_FIELD_1, b"".join(parts)))
    return records


class _Frames(dict):
    """What is before the values of a feature, by the number of their bytes."""

    def __init__(self, name: str):
        super().__init__()
        self.key = _with_length(_FIELD_1, name.encode())

    def __missing__(self, num_bytes: int) -> bytes:
        int64_list = _with_length(_FIELD_1, bytes(num_bytes)) if num_bytes else b""
        feature = _with_length(_FIELD_3, int64_list)
        whole = _with_length(_FIELD_1, self.key + _with_length(_FIELD_2, feature))
        self[num_bytes] = whole[: len(whole) - num_bytes]
        return self[num_bytes]


def _with_length(tag: bytes, payload: bytes) -> bytes:
    length = bytearray()
    rest = len(payload)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return tag + length + payload


def _varints(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    """All values as bytes, and where each begins in them: int64 (values + 1,)."""
    num_bytes = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    data = np.empty((len(values), num_bytes), np.uint8)
    is_used = np.ones(data.shape, bool)
    for i in range(num_bytes):
        part = values >> 7 * i
        data[:, i] = part & 0x7F
        if i > 0:
            is_used[:, i] = part > 0
            data[:, i - 1] |= is_used[:, i].view(np.uint8) << 7
    starts = np.zeros(len(values) + 1, np.int64)
    np.cumsum(sum(is_used[:, i].astype(np.uint8) for i in range(num_bytes)), out=starts[1:])
    return (data[is_used] if num_bytes > 1 else data).tobytes(), starts
