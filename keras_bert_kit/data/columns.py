"""Which columns of a table hold the label and the text.

Data sets agree on little: `label,text`, `sentence,label`, `Class Index,Title,Description`, or no header at all. Columns
are found by name, ignoring case and treating spaces and hyphens as underscores, or are given by the user.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from keras_bert_kit.errors import DataError

# In order of preference: the first that is there is taken.
LABEL_NAMES = ("label", "labels", "class", "class_index", "category", "target", "topic")
TEXT_NAMES = (
    ("text",),
    ("sentence1", "sentence2"),  # GLUE, as far as ("question", "sentence")
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("sentence",),
    ("title", "description"),
    ("title", "content"),
    ("title", "body"),
    ("content",),
    ("description",),
    ("body",),
    ("title",),
    ("headline",),
)
_KNOWN_NAMES = {*LABEL_NAMES, *(name for names in TEXT_NAMES for name in names)}


@dataclass(frozen=True)
class Columns:
    """Positions of the label and of the texts in a row, and the names of all columns."""

    names: tuple[str, ...]
    label: int
    texts: tuple[int, ...]

    @property
    def label_name(self) -> str:
        """Name of the label column."""
        return self.names[self.label]

    @property
    def text_names(self) -> tuple[str, ...]:
        """Names of the text columns."""
        return tuple(self.names[position] for position in self.texts)


AG_NEWS_COLUMNS = Columns(names=("class", "title", "description"), label=0, texts=(1, 2))
"""The official AG News files have these three columns and no header."""


def is_integer(field: str) -> bool:
    """Whether a field is a class number, such as `3`."""
    return re.fullmatch(r"[+-]?[0-9]+", field.strip()) is not None


def is_header(first_row: Sequence[str]) -> bool:
    """Whether the first row names columns: no class number in front, or at least one name that we know."""
    return not is_integer(first_row[0]) or any(_normal(field) in _KNOWN_NAMES for field in first_row)


def find_columns(
    header: Sequence[str], source: str, label_column: str | None = None, text_columns: Sequence[str] | None = None
) -> Columns:
    """Finds the label column and the text columns in a header.

    Args:
        header: names of the columns, in order.
        source: name of the file, for messages.
        label_column: name of the label column. Default: the first of `LABEL_NAMES` that is there.
        text_columns: names of the text columns. Default: the first of `TEXT_NAMES` that is there.

    Returns:
        The positions in a row.

    Raises:
        DataError: no such column, the same name twice, or one column for label and text.
    """
    names = tuple(name.strip() for name in header)
    if label_column is None:
        label = _first_known(names, [(name,) for name in LABEL_NAMES], "label", source)[0]
    else:
        label = _position(label_column, names, source)
    if text_columns is None:
        others = tuple("" if position == label else name for position, name in enumerate(names))
        texts = _first_known(others, TEXT_NAMES, "text", source, shown=names)
    else:
        texts = tuple(_position(name, names, source) for name in text_columns)
    if not texts or label in texts:
        raise DataError(
            f"{source}: the text must come from one or more columns, none of them the label's. "
            f"Received: label column {names[label]!r}, text columns {[names[t] for t in texts]}."
        )
    return Columns(names, label, texts)


def _first_known(names, candidates, what, source, shown=None) -> tuple[int, ...]:
    """Positions of the first candidate of which every column is there."""
    normal = [_normal(name) for name in names]
    for candidate in candidates:
        if all(name in normal for name in candidate):
            return tuple(_position(names[normal.index(name)], names, source) for name in candidate)
    known = ", ".join("+".join(candidate) for candidate in candidates)
    raise DataError(
        f"{source}: the header must name a {what} column. Received: {_listed(shown or names)}. Known names: {known}; "
        f"or give {what}_column{'s' if what == 'text' else ''}. {_hint(shown or names)}"
    )


def _position(wanted: str, names: tuple[str, ...], source: str) -> int:
    """Position of one column: the exact name, else the same name in another spelling."""
    matches = [position for position, name in enumerate(names) if name == wanted.strip()]
    matches = matches or [position for position, name in enumerate(names) if _normal(name) == _normal(wanted)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"{source}: column {wanted!r} must be there once. Received: {_listed(names)}. Rename one of them."
        )
    nearest = difflib.get_close_matches(_normal(wanted), [_normal(name) for name in names], n=1, cutoff=0.5)
    meant = next((f"Did you mean {name!r}? " for name in names if [_normal(name)] == nearest), "")
    raise DataError(f"{source}: there is no column {wanted!r}. Received: {_listed(names)}. {meant}{_hint(names)}")


def _normal(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "no columns"
    shown = [repr(name if len(name) <= 40 else f"{name[:37]}...") for name in names[:12]]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"column{'s' if len(names) > 1 else ''} {', '.join(shown)}{more}"


def _hint(names: Sequence[str]) -> str:
    """What may be the matter when the first line does not look like a header."""
    if names and names[0].lstrip().startswith("{"):
        return "It looks like JSON lines: files of those are named .jsonl."
    for separator, spelled in ((";", "';'"), ("\t", "a tab"), (",", "','")):
        if len(names) == 1 and separator in names[0]:
            return f"The fields seem to be separated by {spelled}: .csv files need commas, .tsv files tabs."
    return "The first line must be a header, unless the columns are AG News' own (class number, title, description)."
