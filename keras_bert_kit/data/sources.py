"""Labelled texts from files and from tensorflow-datasets, and the sample that comes with the kit.

In CSV and TSV files every field stays the string it is in the file, where pandas would turn `null` and `NA` into
missing values. A file with faults is refused as a whole, with the lines listed, before any training.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from itertools import chain
from pathlib import Path

from keras_bert_kit.data.columns import AG_NEWS_COLUMNS, Columns, find_columns, is_header, is_integer
from keras_bert_kit.data.examples import Examples
from keras_bert_kit.data.json_lines import open_json_lines
from keras_bert_kit.data.parquet import open_parquet
from keras_bert_kit.data.rows import BadRows, format_of, open_rows
from keras_bert_kit.data.tfds import PREFIX, read_tfds, split_address
from keras_bert_kit.data.values import Values
from keras_bert_kit.errors import DataError


def read_examples(
    path: str | Path, label_column: str | None = None, text_columns: str | Sequence[str] | None = None
) -> Examples:
    """Reads labelled texts from a CSV, TSV, JSON-lines or Parquet file, or by tensorflow-datasets.

    The ending of the name decides on the format, or, where it says nothing, the first line: `.csv` has commas and may
    have quotes, `.tsv` and `.tab` have tabs and literal fields, `.jsonl`, `.ndjson` and `.json` one object a line,
    `.parquet` and `.pq` are Parquet. Text is UTF-8, with or without byte-order mark. `tfds:NAME/SPLIT` is read by
    `read_tfds`.

    A CSV or TSV file whose first row starts with a number and holds no known column name has no header and the official
    AG News columns (class number, title, description). Empty lines and rows of empty fields are skipped; an empty text
    is kept. Several text columns are joined by a space. In JSON and Parquet, texts must be strings and labels strings,
    integers or Booleans; columns that are not read may hold anything.

    A byte that is not UTF-8 is an error and not replaced: one such byte means that the file has another encoding, in
    which every accented letter would be lost without a word.

    Args:
        path: the file, or `tfds:ag_news_subset/train`, `tfds:glue/mrpc/validation`, `tfds:FOLDER/train[:10%]`.
        label_column: name of the label column. Default: `label`, `class`, `category`, `target`, …
        text_columns: name or names of the text columns. Default: `text`, `sentence1` and `sentence2`, `sentence`,
            `title` and `description`, …

    Returns:
        The examples, in the order of the file.

    Raises:
        DataError: the file is missing, damaged or of another format, a column is not there, there are no rows, or rows
            are bad: then all of them are counted and the first ten listed.
        ImportError: a library is missing that the format needs; the message says how to install it.
    """
    if str(path).startswith(PREFIX):
        return read_tfds(*split_address(str(path)), label_column, text_columns)
    path = Path(path).expanduser()
    text_columns = [text_columns] if isinstance(text_columns, str) else text_columns
    format = format_of(path)
    if format in ("csv", "tsv"):
        return _read_fields(path, format, label_column, text_columns)
    return _read_values(path, format, label_column, text_columns)


def read_sample() -> tuple[Examples, Examples]:
    """The 600 news items that come with the kit: the four AG News classes, written for it, everything in them invented.

    Returns:
        480 examples to train on and 120 held out: every fifth item of each class, in the order of the file.
    """
    with resources.as_file(resources.files("keras_bert_kit.data") / "sample_news.csv") as path:
        sample = replace(read_examples(path), source=path.name)
    seen = Counter()
    train, held_out = [], []
    for index, label in enumerate(sample.labels):
        seen[label] += 1
        (train if seen[label] % 5 else held_out).append(index)
    return sample.select(train), sample.select(held_out)


def _read_fields(path, format, label_column, text_columns) -> Examples:
    """Reads a CSV or TSV file, where everything is a string and a row may have too many fields."""
    bad_rows = BadRows(str(path))
    texts, labels = [], []
    with open_rows(path, format, bad_rows) as rows:
        first = next(rows, None)
        if first is None:
            bad_rows.raise_if_any()
            raise DataError(f"{path}: the file must hold a header and rows. Received: an empty file.")
        with_header = label_column is not None or text_columns is not None or is_header(first[1])
        if with_header:
            bad_rows.raise_if_any()  # Else a damaged header would be blamed on its columns.
            columns = find_columns(first[1], str(path), label_column, text_columns)
        else:
            columns = AG_NEWS_COLUMNS
            rows = chain([first], rows)
        for line, fields in rows:
            fault = _fault(fields, columns, with_header)
            if fault:
                bad_rows.add(line, fault)
                continue
            labels.append(fields[columns.label].strip())
            texts.append(" ".join(fields[position] for position in columns.texts))
    bad_rows.raise_if_any()
    if not texts:
        raise DataError(f"{path}: the file must hold rows. Received: only the header {', '.join(columns.names)}.")
    official = not with_header and set(labels) <= {"1", "2", "3", "4"}
    return Examples(texts, labels, str(path), official, columns.label_name, columns.text_names)


def _read_values(path, format, label_column, text_columns) -> Examples:
    """Reads a JSON-lines or Parquet file, where columns have names and values have types."""
    bad_rows = BadRows(str(path), "row" if format == "parquet" else "line")
    texts, labels = [], []
    with open_parquet(path) if format == "parquet" else open_json_lines(path, bad_rows) as table:
        columns = find_columns(table.names, str(path), label_column, text_columns)
        values = Values(columns.label_name, columns.text_names)
        wanted = [table.names[position] for position in (columns.label, *columns.texts)]
        for number, (label, *parts) in table.rows(wanted):
            try:
                label, text = values.read(label, parts)
            except ValueError as error:
                bad_rows.add(number, str(error))
                continue
            labels.append(label)
            texts.append(text)
    bad_rows.raise_if_any()
    if not texts:
        raise DataError(f"{path}: the file must hold rows. Received: only the columns {', '.join(columns.names)}.")
    return Examples(texts, labels, str(path), label_column=columns.label_name, text_columns=columns.text_names)


def _fault(fields: list[str], columns: Columns, with_header: bool) -> str | None:
    """What is wrong with a row, or None."""
    if len(fields) != len(columns.names):
        plural = "s" if len(fields) > 1 else ""
        return f"has {len(fields)} field{plural} instead of {len(columns.names)} ({', '.join(columns.names)})"
    label = fields[columns.label].strip()
    if not label:
        return "has an empty label"
    if not with_header and not is_integer(label):
        return f"has {label[:20]!r} where the class number must be"
    return None
