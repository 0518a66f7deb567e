"""Labelled texts from CSV and TSV files, and the sample that comes with the kit.

Every field stays the string it is in the file, where pandas would turn `null` and `NA` into missing values. A file with
faults is refused as a whole, with the lines listed, before any training.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import chain
from pathlib import Path

from keras_bert_kit.data.columns import AG_NEWS_COLUMNS, Columns, find_columns, is_header, is_integer
from keras_bert_kit.data.rows import BadRows, open_rows
from keras_bert_kit.errors import DataError

#: Names of the classes of AG News, in the order of the numbers 1 to 4 in its files.
AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")
"""Names of the classes 1 to 4 of the official AG News files."""


@dataclass(frozen=True)
class Examples:
    """Labelled texts.

    Attributes:
        texts: the texts, unchanged.
        labels: the label of each text, as written in the file but for white space around it.
        source: where they come from, for messages and reports.
        official_ag_news: whether they come from a file without header with all labels within 1 to 4.
        label_column: name of the column that was taken for the label; the official name where there is no header.
        text_columns: names of the columns that were joined to the text.
    """

    texts: list[str]
    labels: list[str]
    source: str = "memory"
    official_ag_news: bool = False
    label_column: str = "label"
    text_columns: tuple[str, ...] = ("text",)

    def __post_init__(self):
        if len(self.texts) != len(self.labels):
            raise DataError(
                f"There must be one label for each text. Received: {len(self.texts)} texts, {len(self.labels)} labels."
            )

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, indices: Sequence[int]) -> "Examples":
        """The examples at these positions, in this order."""
        return replace(self, texts=[self.texts[i] for i in indices], labels=[self.labels[i] for i in indices])


def read_examples(
    path: str | Path, label_column: str | None = None, text_columns: str | Sequence[str] | None = None
) -> Examples:
    """Reads labelled texts from a CSV or TSV file in UTF-8, with or without byte-order mark.

    `.csv` has commas and may have quotes, `.tsv` and `.tab` have tabs and literal fields; with another extension, the
    first line decides. A file whose first row starts with a number and holds no known column name has no header and
    the official AG News columns (class number, title, description). Empty lines and rows of empty fields are skipped;
    an empty text is kept. Several text columns are joined by a space.

    A byte that is not UTF-8 is an error and not replaced: one such byte means that the file has another encoding, in
    which every accented letter would be lost without a word.

    Args:
        path: the file.
        label_column: name of the label column. Default: `label`, `class`, `category`, `target`, …
        text_columns: name or names of the text columns. Default: `text`, `sentence`, `title` and `description`, …

    Returns:
        The examples, in the order of the file.

    Raises:
        DataError: the file is missing or no text file, a column is not there, there are no rows, or rows are bad: then
            all of them are counted and the first ten listed.
    """
    path = Path(path)
    text_columns = [text_columns] if isinstance(text_columns, str) else text_columns
    bad_rows = BadRows(str(path))
    texts, labels = [], []
    with open_rows(path, bad_rows) as rows:
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
    return Examples(
        texts,
        labels,
        source=str(path),
        official_ag_news=not with_header and set(labels) <= {"1", "2", "3", "4"},
        label_column=columns.names[columns.label],
        text_columns=tuple(columns.names[position] for position in columns.texts),
    )


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
