import sys

import pytest

from keras_bert_kit.data import read_examples
from keras_bert_kit.errors import DataError

NEEDS = "needs pyarrow: pip install 'keras_bert_kit[parquet]'"


@pytest.fixture
def write(tmp_path):
    """Writes a table of these columns."""
    pyarrow = pytest.importorskip("pyarrow", reason=NEEDS)
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDS)

    def write(columns, name="data.parquet", **options):
        table = pyarrow.table({key: pyarrow.array(*value) for key, value in columns.items()})
        parquet.write_table(table, tmp_path / name, **options)
        return tmp_path / name

    return write


@pytest.mark.parametrize("name", ["data.parquet", "data.pq", "train-00000-of-00001"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_rows_of_several_batches(write, name, compression):
    texts = [f"text {number} \u00e9\U0001f600" for number in range(2500)]
    labels = [number % 3 for number in range(2500)]
    columns = {"label": (labels,), "idx": ([{"deep": [1]}] * 2500,), "text": (texts,)}
    examples = read_examples(write(columns, name, compression=compression, row_group_size=700))
    assert examples.texts == texts and examples.labels == [str(label) for label in labels]
    assert (examples.label_column, examples.text_columns) == ("label", ("text",))


def test_types_that_labels_and_texts_may_have(write):
    import pyarrow as pa

    for labels, strings in [
        (([" a", "b "],), ["a", "b"]),
        ((["a", "b"], pa.large_string()), ["a", "b"]),
        ((["a", "b"], pa.dictionary(pa.int8(), pa.string())), ["a", "b"]),  # as pandas writes categories
        (([0, 2**64 - 1], pa.uint64()), ["0", str(2**64 - 1)]),
        (([True, False],), ["True", "False"]),
    ]:
        path = write({"a.b": (["x", "y"], pa.large_string()), " Label ": labels})
        examples = read_examples(path, text_columns="a.b")
        assert (examples.labels, examples.texts) == (strings, ["x", "y"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": (["a", None],), "text": (["x", "y"],)}, "Received 1 bad: row 2 has null in column 'label'"),
        ({"label": (["a", "b"],), "text": (["x", None],)}, "Received 1 bad: row 2 has null in column 'text'"),
        ({"label": ([1.0, 2.0],), "text": (["x", "y"],)}, "Received 2 bad: row 1 has a fractional number"),
        ({"label": ([1, 2],), "text": ([5, 6],)}, "row 1 has a number in column 'text' where text must be"),
        ({"label": ([1, 2],), "text": ([["x"], ["y"]],)}, "row 1 has a list in column 'text'"),
        ({"label": ([1, 2],), "text": ([b"x", b"y"],)}, "row 1 has a value of type bytes in column 'text'"),
        ({"label": ([{"id": 1}] * 2,), "text": (["x", "y"],)}, "row 1 has an object in column 'label'"),
        ({"label": ([1, 2],), "words": (["x", "y"],)}, "must name a text column. Received: columns 'label', 'words'"),
        ({"label": ([],), "text": ([],)}, "must hold rows. Received: only the columns label, text"),
        ({}, "must name a label column. Received: no columns"),
    ],
)
def test_what_is_refused(write, columns, message):
    with pytest.raises(DataError, match=message):
        read_examples(write(columns))


def test_a_file_that_was_cut_or_damaged(write, tmp_path):
    path = write({"label": ([1, 2] * 500,), "text": ([f"text {number}" for number in range(1000)],)})
    whole = path.read_bytes()
    for end in [0, 4, 7, len(whole) // 3, len(whole) // 2, len(whole) - 4, len(whole) - 1]:
        path.write_bytes(whole[:end])
        with pytest.raises(DataError, match="the Parquet file cannot be read .*It may be damaged or cut"):
            read_examples(path)
    path.write_bytes(whole[:100] + bytes(2000) + whole[2100:])
    with pytest.raises(DataError, match="the Parquet file cannot be read"):
        read_examples(path)


def test_another_format_under_the_name_of_parquet(write, tmp_path):
    (tmp_path / "data.parquet").write_text("label,text\na,one\n")
    with pytest.raises(DataError, match="the Parquet file cannot be read"):
        read_examples(tmp_path / "data.parquet")


def test_without_pyarrow(write, monkeypatch):
    path = write({"label": (["a"],), "text": (["x"],)})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Parquet files need pyarrow. Run: pip install 'keras_bert_kit\[parquet\]'"):
        read_examples(path)
