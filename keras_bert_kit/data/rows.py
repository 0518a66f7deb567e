"""Rows of CSV and TSV files, one at a time, and the faults in them.

Here is what a table is made of: file, encoding, separator, quotes. What its columns mean is for `columns` to find.
Files of other formats are opened by `json_lines` and `parquet`.
"""

import csv
import difflib
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from keras_bert_kit.errors import DataError

# The csv module's default of 131,072 is too small for long articles. Beyond this one, a quote was surely left open.
_MAX_FIELD_CHARACTERS = 2**24
_MAX_SHOWN = 10
FORMAT_OF_ENDING = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_PARQUET_START = b"PAR1"
_BINARY_STARTS = {
    b"PK\x03\x04": "a ZIP archive or a spreadsheet",
    b"\x1f\x8b": "a gzip archive",
    _PARQUET_START: "a Parquet file, whose name must end in .parquet",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
# With errors="surrogateescape" a byte that is not UTF-8 is read as one of these, so that reading goes on behind it.
NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass
class BadRows:
    """Faults of one file: the first ten, and how many there are."""

    source: str
    unit: str = "line"
    shown: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, number: int, fault: str):
        """Notes what is wrong with the row that starts in this line (the first line is 1), or with this row."""
        self.count += 1
        if self.count <= _MAX_SHOWN:
            self.shown.append(f"{self.unit} {number} {fault}")

    def raise_if_any(self):
        """Raises a DataError that lists the faults."""
        if self.count:
            more = f"; and {self.count - _MAX_SHOWN} more" if self.count > _MAX_SHOWN else ""
            raise DataError(
                f"{self.source}: every row must be readable. Received {self.count} bad: "
                f"{'; '.join(self.shown)}{more}. Correct or remove them."
            )


def format_of(path: Path) -> str:
    """The format of a data file: "csv", "tsv", "json" (lines) or "parquet".

    The ending of its name decides; with an ending that says nothing, the first line does.

    Raises:
        DataError: there is no such file, or it is neither a text file nor Parquet.
    """
    start = _start_of_file(path)
    known = FORMAT_OF_ENDING.get(path.suffix.lower())
    if start == _PARQUET_START and known in ("parquet", None):
        return "parquet"
    for magic, kind in _BINARY_STARTS.items():
        if start.startswith(magic):
            raise DataError(
                f"{path}: the data must be text in UTF-8 (CSV, TSV, JSON lines) or Parquet. Received: {kind}. "
                "Convert it first."
            )
    return known or _format_of_first_line(path)


@contextmanager
def open_rows(path: Path, format: str, bad_rows: BadRows) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Opens a table for reading its rows.

    Fields of a CSV may be quoted; those of a TSV are literal, as in the GLUE files, where quotes are unbalanced.

    Args:
        path: the file, UTF-8 with or without byte-order mark.
        format: "csv" or "tsv".
        bad_rows: receives the rows that cannot be read.

    Yields:
        Iterator over (number of the row's first line, fields) of all rows but the empty ones.
    """
    quoting = csv.QUOTE_NONE if format == "tsv" else csv.QUOTE_MINIMAL
    limit_before = csv.field_size_limit(_MAX_FIELD_CHARACTERS)  # One limit for the whole process: it is put back.
    try:
        with text_lines(path, bad_rows) as lines:
            yield _rows(csv.reader(lines, delimiter=_DELIMITERS[format], quoting=quoting, strict=True), bad_rows)
    finally:
        csv.field_size_limit(limit_before)


@contextmanager
def text_lines(path: Path, bad_rows: BadRows) -> Iterator[Iterator[str]]:
    """Opens a text file in UTF-8, with or without byte-order mark; lines end in LF, CR LF or CR.

    Args:
        path: the file.
        bad_rows: receives the lines with bytes that no text has.

    Yields:
        Iterator over the lines.
    """
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        yield _checked_lines(file, bad_rows)


def _rows(reader, bad_rows: BadRows) -> Iterator[tuple[int, list[str]]]:
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad_rows.add(line, f"has broken quotes ({error})")
            continue
        if any(text.strip() for text in fields):
            yield line, fields


def _checked_lines(file, bad_rows: BadRows) -> Iterator[str]:
    """Notes lines with bytes that no text has, and yields them all the same, so that faults behind them are found."""
    for number, line in enumerate(file, start=1):
        wrong = NOT_UTF8.search(line)
        if wrong:
            bad_rows.add(number, f"is not UTF-8 (byte 0x{ord(wrong[0]) - 0xDC00:02X}; convert the file)")
        if "\0" in line:
            bad_rows.add(number, "holds a NUL character")
            line = line.replace("\0", "")  # The csv module of Python 3.10 stops at it.
        yield line


def _start_of_file(path: Path) -> bytes:
    """Four bytes of a file that is there and can be read."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
            raise DataError(f"{path}: the data must be a file (CSV, TSV, JSON lines, Parquet). Received: {kind}.")
        with path.open("rb") as file:
            return file.read(4)
    except FileNotFoundError as error:
        siblings = [sibling.name for sibling in path.parent.iterdir()] if path.parent.is_dir() else []
        nearest = difflib.get_close_matches(path.name, siblings, n=1)
        meant = f"Did you mean {nearest[0]!r}?" if nearest else "Check the path, and put quotes around one with spaces."
        raise DataError(f"{path}: there is no such file. {meant}") from error
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}.") from error


def _format_of_first_line(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        first_line = next((line for line in file if line.strip()), "")
    if first_line.lstrip().startswith("{"):
        return "json"
    return "tsv" if "\t" in first_line else "csv"
