"""Rows of JSON-lines files: one object a line, its keys the names of the columns."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from keras_bert_kit.data.rows import NOT_UTF8, BadRows, text_lines
from keras_bert_kit.errors import DataError


class JsonLines:
    """An open file.

    Attributes:
        names: keys of the first object.
    """

    def __init__(self, path: Path, lines: Iterator[tuple[int, str]], bad_rows: BadRows):
        self._lines, self._bad_rows = lines, bad_rows
        number, line = next(self._lines, (0, ""))
        if not number:
            bad_rows.raise_if_any()
            raise DataError(f"{path}: the file must hold one JSON object a line. Received: an empty file.")
        if line.lstrip().startswith("["):
            raise DataError(
                f"{path}: the file must hold one JSON object a line. Received: a JSON array, which has to be read as "
                "a whole. Write its objects one a line, such as by: jq -c '.[]' data.json > data.jsonl"
            )
        self._first = number, self._object(number, line)
        bad_rows.raise_if_any()  # Else a damaged first line would be blamed on its columns.
        self.names = tuple(self._first[1])

    def rows(self, wanted: Sequence[str]) -> Iterator[tuple[int, list]]:
        """Number of the line and values under these keys, for each object that has them; the others are noted."""
        yield self._first[0], [self._first[1][name] for name in wanted]
        for number, line in self._lines:
            row = self._object(number, line)
            if row is None:
                continue
            missing = [name for name in wanted if name not in row]
            if missing:
                self._bad_rows.add(number, f"lacks {', '.join(map(repr, missing))}")
                continue
            yield number, [row[name] for name in wanted]

    def _object(self, number: int, line: str) -> dict | None:
        """The object of a line; None, and a fault is noted, where there is none."""
        try:
            row = json.loads(line, object_pairs_hook=_unique)
        except json.JSONDecodeError as error:
            self._bad_rows.add(number, f"is not a JSON object ({error.msg}, character {error.pos + 1})")
        except (ValueError, RecursionError) as error:  # the same key twice, too many digits, too deep
            self._bad_rows.add(number, f"cannot be read ({error})")
        else:
            if isinstance(row, dict):
                return row
            self._bad_rows.add(number, "holds something else than one JSON object")
        return None


def _unique(pairs: list[tuple]) -> dict:
    row = dict(pairs)
    if len(row) != len(pairs):
        raise ValueError("a key is there twice")
    return row


@contextmanager
def open_json_lines(path: Path, bad_rows: BadRows) -> Iterator[JsonLines]:
    """Opens a JSON-lines file in UTF-8. Empty lines are skipped."""
    with text_lines(path, bad_rows) as lines:
        numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
        # A line that is not UTF-8 has been noted.
        yield JsonLines(path, (pair for pair in numbered if not NOT_UTF8.search(pair[1])), bad_rows)
