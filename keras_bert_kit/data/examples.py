"""Labelled texts in memory: what every source is read into."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from keras_bert_kit.errors import DataError

#: Names of the classes of AG News, in the order of the numbers 1 to 4 in its files.
AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")

_LABELS = (str, int, np.integer, np.bool_)


@dataclass(frozen=True)
class Examples:
    """Labelled texts.

    Texts are strings, labels strings, integers or Booleans; they may come in a list, a tuple, an array or a column of a
    table. Whatever else a column may hold (nothing, NaN, a fraction) is a mistake that turning it into a string would
    hide.

    Attributes:
        texts: the texts, unchanged.
        labels: the label of each text, as written in the file but for white space around it; numbers as strings.
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
        for name in ("texts", "labels"):
            values = getattr(self, name)
            if isinstance(values, str | bytes):
                raise DataError(f"{name} must be a list of strings. Received: one, {values[:40]!r}. Put it in a list.")
            object.__setattr__(self, name, list(values))
        self._require("texts", str, "a string", "Leave such rows out")
        self._require("labels", _LABELS, "a string or an integer", "Leave such rows out, or write classes as words")
        if not all(isinstance(label, str) for label in self.labels):
            object.__setattr__(self, "labels", [str(label) for label in self.labels])
        if len(self.texts) != len(self.labels):
            raise DataError(
                f"There must be one label for each text. Received: {len(self.texts)} texts, {len(self.labels)} labels."
            )

    def _require(self, name, kinds, rule, advice):
        values = getattr(self, name)
        wrong = [number for number, value in enumerate(values) if not isinstance(value, kinds)]
        if wrong:
            shown = ", ".join(f"{name}[{number}]={values[number]!r:.40}" for number in wrong[:3])
            raise DataError(f"Each of {name} must be {rule}. Received: {shown}; {len(wrong)} such in all. {advice}.")

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, indices: Sequence[int]) -> "Examples":
        """The examples at these positions, in this order."""
        return replace(self, texts=[self.texts[i] for i in indices], labels=[self.labels[i] for i in indices])
