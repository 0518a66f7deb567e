"""Labelled texts in memory: what every source is read into."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from keras_bert_kit.errors import DataError

#: Names of the classes of AG News, in the order of the numbers 1 to 4 in its files.
AG_NEWS_CLASSES = ("World", "Sports", "Business", "Sci/Tech")


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
