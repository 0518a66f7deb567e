"""Rows of Parquet files, a batch of rows in memory at a time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from keras_bert_kit.errors import DataError


class Parquet:
    """An open file.

    Attributes:
        names: names of the columns.
    """

    def __init__(self, file):
        self._file = file
        self.names = tuple(file.schema_arrow.names)

    def rows(self, wanted: Sequence[str]) -> Iterator[tuple[int, list]]:
        """Number of the row, from 1, and values of these columns; the other columns are not read."""
        before = 0
        for batch in self._file.iter_batches(columns=list(wanted), batch_size=1024):
            columns = [batch.column(name).to_pylist() for name in wanted]
            for number, values in enumerate(zip(*columns, strict=True), start=before + 1):
                yield number, list(values)
            before += batch.num_rows


@contextmanager
def open_parquet(path: Path) -> Iterator[Parquet]:
    """Opens a Parquet file.

    Raises:
        DataError: it is damaged, or of a kind that pyarrow does not read.
        ImportError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        message = f"{path}: Parquet files need pyarrow. Run: pip install 'keras_bert_kit[parquet]'"
        raise ImportError(message) from error
    try:
        with parquet.ParquetFile(path) as file:
            yield Parquet(file)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: the Parquet file cannot be read ({reason}). It may be damaged or cut.") from error
