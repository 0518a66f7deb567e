"""Looks into protobuf messages without parsing them whole: what is not asked for is skipped and takes no memory.

An empty message of two bytes takes protobuf's own parser fifty in memory, so a file of megabytes may need gigabytes.
Source: https://protobuf.dev/programming-guides/encoding.
"""

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from keras_bert_kit.errors import CheckpointError

_WHOLE_BYTES = 1 << 16  # the largest message that is parsed as a whole
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


class Message:
    """A message in bytes, and the type that says what its fields are called.

    Args:
        kind: class that protobuf made of the type, such as `SavedModel`.
        content: bytes, or a memoryview of them.
        path: `pathlib.Path` of the file, for messages.

    Raises:
        CheckpointError: From every method: the bytes are no such message.
    """

    __slots__ = ("_content", "_kind", "_path")

    def __init__(self, kind, content, path):
        self._kind, self._content, self._path = kind, memoryview(content), path

    def each(self, name):
        """Yields the values of a field: messages, strings, bytes or integers, one at a time.

        Args:
            name: str, the field.
        """
        field = self._kind.DESCRIPTOR.fields_by_name[name]
        is_number = field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING, field.TYPE_BYTES)
        try:
            for number, value in _fields(self._content):
                if number == field.number:
                    if isinstance(value, int) != is_number:
                        raise ValueError(f"{name} is of another type")
                    yield value if is_number else self._converted(field, value)
        except ValueError as error:
            raise self._damaged(error) from None

    def one(self, name):
        """Returns the value of a field, or what protobuf has for one that is not there: an empty message, "" or 0."""
        last = None
        for value in self.each(name):
            last = value
        field = self._kind.DESCRIPTOR.fields_by_name[name]
        if last is None:
            return self._converted(field, b"") if field.type == field.TYPE_MESSAGE else field.default_value
        return last

    def entry(self, name, key):
        """Returns the value under a string in a map, or an empty message where there is none."""
        found = Message(GetMessageClass(self._kind.DESCRIPTOR.fields_by_name[name].message_type), b"", self._path)
        for entry in self.each(name):
            if entry.one("key") == key:
                found = entry
        return found.one("value")

    def whole(self):
        """Returns the message as protobuf parses it; it must be small."""
        try:
            if len(self._content) > _WHOLE_BYTES:
                raise ValueError(f"a {self._kind.DESCRIPTOR.name} of {len(self._content)} bytes")
            return self._kind.FromString(bytes(self._content))
        except (DecodeError, ValueError) as error:
            raise self._damaged(error) from None

    def _converted(self, field, value):
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            return Message(GetMessageClass(field.message_type), value, self._path)
        value = bytes(value)
        return value if field.type == FieldDescriptor.TYPE_BYTES else value.decode("utf-8", errors="replace")

    def _damaged(self, error):
        return CheckpointError(f"{self._path} cannot be read: {error}. Fetch it again.")


def _fields(content):
    """Yields pairs of the number of a field and its value: an int, or a memoryview of what has a length."""
    place = 0
    while place < len(content):
        tag, place = _integer(content, place)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _integer(content, place)
        else:
            length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(kind)
            if kind == _LENGTH:
                length, place = _integer(content, place)
            if length is None or place + length > len(content):
                raise ValueError("a field is longer than the message, or of no known type")
            value, place = content[place : place + length], place + length
        yield number, value


def _integer(content, place):
    """Reads an integer of variable length; returns it and the place after it."""
    value, shift = 0, 0
    while place < len(content) and shift < 70:
        byte = content[place]
        value, shift, place = value | (byte & 127) << shift, shift + 7, place + 1
        if byte < 128:
            return value - (1 << 64) if value >> 63 else value, place
    raise ValueError("an integer does not end")
