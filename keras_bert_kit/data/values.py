"""From the typed values of JSON and Parquet to texts and labels, without guessing.

In a CSV file everything is a string. Here a value may also be a number, a list or nothing, and turning such a thing
into a string would hide a mistake: `None`, `nan` and `[1, 2]` would be texts, and 3.7 a class.
"""

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a fractional number",
    type(None): "null",
    list: "a list",
    dict: "an object",
}


class Values:
    """Checks the label and the texts of one row after another.

    Args:
        label_column: name of the label's column, for messages.
        text_columns: names of the text columns.
    """

    def __init__(self, label_column: str, text_columns: tuple[str, ...]):
        self.label_column, self.text_columns = label_column, text_columns
        self._label_type = None  # that of the first row: 1 and "1" in one column are two ideas of what a class is

    def read(self, label, texts) -> tuple[str, str]:
        """The label, which is a string, an integer or a Boolean in the file, and the text, as strings.

        Raises:
            ValueError: one of them is something else; the message ends the sentence "line 7 …".
        """
        for name, value in zip(self.text_columns, texts, strict=True):
            if not isinstance(value, str):
                raise ValueError(f"has {_kind(value)} in column {name!r} where text must be")
            _require_characters(name, value)
        if not isinstance(label, str | int):
            raise ValueError(f"has {_kind(label)} in column {self.label_column!r}; a label is a string or an integer")
        self._label_type = self._label_type or type(label)
        if type(label) is not self._label_type:
            first = _KINDS[self._label_type]
            raise ValueError(f"has {_kind(label)} in column {self.label_column!r} where the first row has {first}")
        label = str(label).strip()
        _require_characters(self.label_column, label)
        if not label:
            raise ValueError("has an empty label")
        return label, " ".join(texts)


def _kind(value) -> str:
    return _KINDS.get(type(value), f"a value of type {type(value).__name__}")


def _require_characters(name: str, text: str):
    """JSON can spell what no UTF-8 text holds."""
    if "\0" in text:
        raise ValueError(f"holds a NUL character in column {name!r}")
    if not text.isascii() and _SURROGATE.search(text):
        raise ValueError(f"holds half a surrogate pair in column {name!r}, which is no character")
