import sys

import numpy as np
import pytest
from prepared_tfds import AG_NEWS, MRPC, NAMES, prepare, prepare_ag_news, prepare_mrpc

from keras_bert_kit.data import class_names_of, read_examples, read_tfds
from keras_bert_kit.errors import DataError


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tfds daten für uns")
    prepare_ag_news(folder)
    prepare_mrpc(folder)
    return folder


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test may download."""

    def refuse(*args, **kwargs):
        raise OSError("Failed to resolve 'example.org'")

    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("requests.Session.send", refuse)


def test_ag_news_by_folder_and_by_name(data_dir):
    folder = data_dir / "ag_news_subset" / "1.0.0"
    examples = read_tfds(folder, "test")
    assert examples.texts == [f"{row['title']} {row['description']}" for row in AG_NEWS]
    assert examples.labels == [NAMES[row["label"]] for row in AG_NEWS]
    assert class_names_of(examples) == ("Business", "Sci/Tech", "Sports", "World")
    assert (examples.label_column, examples.text_columns) == ("label", ("title", "description"))
    assert not examples.official_ag_news and examples.source == f"tfds:{folder}/test"
    for same in (
        read_tfds("ag_news_subset", "test", data_dir=data_dir),
        read_tfds("ag_news_subset:1.0.0", "test", data_dir=data_dir, download=False),
        read_examples(f"tfds:{folder}/test"),
    ):
        assert (same.texts, same.labels) == (examples.texts, examples.labels)


def test_pairs_of_glue(data_dir):
    pairs = read_tfds("glue/mrpc", "validation", data_dir=data_dir)
    assert pairs.texts == [f"{row['sentence1']} {row['sentence2']}" for row in MRPC]
    assert pairs.labels == ["equivalent", "not_equivalent"]
    one = read_tfds("glue/mrpc", "validation", label_column="idx", text_columns="sentence2", data_dir=data_dir)
    assert (one.labels, one.texts) == (["0", "1"], [row["sentence2"] for row in MRPC])


@pytest.mark.parametrize(
    ("split", "rows"), [("train", 20), ("train[:10%]", 2), ("train[-3:]", 3), ("train+test", 24), ("train[:5]+test", 9)]
)
def test_parts_of_splits(data_dir, split, rows):
    assert len(read_examples(f"tfds:{data_dir}/ag_news_subset/1.0.0/{split}")) == rows


def test_a_split_without_labels_is_refused(data_dir):
    with pytest.raises(DataError, match=r"Received: 2 of 2 without \(-1\).*Use another split: train, validation, test"):
        read_tfds("glue/mrpc", "test", data_dir=data_dir)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("dev", "split cannot be had .Unknown split 'dev'.*Splits: train, test"),
        ("train[:x]", "split cannot be had .*Unrecognized split format.*Splits: train, test"),
        ("train[:0]", "split cannot be had .Instruction .* corresponds to no data"),
    ],
)
def test_wrong_splits(data_dir, split, message):
    with pytest.raises(DataError, match=message):
        read_tfds("ag_news_subset", split, data_dir=data_dir)


@pytest.mark.parametrize("address", ["tfds:", "tfds:ag_news_subset", "tfds:ag_news_subset/", "tfds:/train"])
def test_addresses_without_split_or_name(address):
    with pytest.raises(DataError, match="must be tfds:NAME/SPLIT.*tfds:ag_news_subset/train"):
        read_examples(address)


def test_wrong_columns(data_dir):
    with pytest.raises(DataError, match="no column 'body'. Received: columns .*'description'"):
        read_tfds("ag_news_subset", "test", text_columns="body", data_dir=data_dir)
    with pytest.raises(DataError, match="feature 'idx' must be a string. Received: Tensor.*Features: .*sentence1"):
        read_tfds("glue/mrpc", "train", text_columns=["sentence1", "idx"], data_dir=data_dir)


def test_features_of_other_types(tmp_path):
    def features(f):
        several = f.Sequence({"x": f.Text()})
        return {
            "text": f.Text(),
            "label": f.Scalar(np.float32),
            "name": f.Text(),
            "flag": f.Scalar(np.bool_),
            "all": several,
        }

    row = {"text": "one", "label": 0.5, "name": " b ", "flag": True, "all": {"x": ["y", "z"]}}
    folder = prepare(tmp_path, "several", features, {"train": [row]})
    assert read_tfds(folder, "train", label_column="name").labels == ["b"]
    assert read_tfds(folder, "train", label_column="flag").labels == ["True"]
    with pytest.raises(DataError, match="feature 'label' must be a class: an integer, a Boolean or a string. Received"):
        read_tfds(folder, "train")
    with pytest.raises(DataError, match="feature 'all' must be a string. Received: Sequence"):
        read_tfds(folder, "train", label_column="name", text_columns="all")


def test_texts_that_are_not_utf8(tmp_path):
    folder = prepare(
        tmp_path,
        "latin",
        lambda f: {"text": f.Text(), "label": f.Scalar(np.int64)},
        {"train": [{"text": b"caf\xe9", "label": 1}]},
    )
    with pytest.raises(DataError, match="texts must be UTF-8. Received: .*0xe9"):
        read_tfds(folder, "train")


def test_names_and_folders_that_are_not_there(data_dir, tmp_path):
    with pytest.raises(DataError, match="ag_newz: tensorflow-datasets cannot make it .Dataset ag_newz not found"):
        read_tfds("ag_newz", "train", data_dir=data_dir)
    with pytest.raises(DataError, match="cannot make it .*cannot be loaded at version 9.0.0, only: 1.0.0"):
        read_tfds("ag_news_subset:9.0.0", "train", data_dir=data_dir)
    with pytest.raises(DataError, match="not prepared in .*ag_news_subset.*must not be downloaded .download=False"):
        read_tfds("ag_news_subset", "train", data_dir=tmp_path, download=False)
    with pytest.raises(DataError, match="dataset_info.json in it. Received: one with the folders 1.0.0"):
        read_tfds(data_dir / "ag_news_subset", "train")
    with pytest.raises(DataError, match="dataset_info.json in it. Received: none such, nor inside it"):
        read_tfds(tmp_path / "nowhere", "train")


def test_offline_nothing_is_fetched_and_what_is_there_is_read(data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BERT_KIT_OFFLINE", "1")
    assert len(read_tfds("ag_news_subset", "test", data_dir=data_dir)) == 4
    with pytest.raises(DataError, match="must not be downloaded .KERAS_BERT_KIT_OFFLINE"):
        read_tfds("ag_news_subset", "test", data_dir=tmp_path)


def test_no_network_says_how_to_do_without(tmp_path, capsys):
    pytest.importorskip("tensorflow_datasets")
    with pytest.raises(DataError, match="cannot make it .Failed to resolve.* Without network, prepare it elsewhere"):
        read_tfds("ag_news_subset", "train", data_dir=tmp_path)
    assert capsys.readouterr().out == ""


def test_damaged_folders(tmp_path):
    folder = prepare_ag_news(tmp_path)
    (records,) = folder.glob("*-test.tfrecord-*")
    whole = records.read_bytes()
    records.write_bytes(whole[:-5])
    with pytest.raises(DataError, match="prepared files are damaged"):
        read_tfds(folder, "test")
    records.write_bytes(whole[:30] + b"?" + whole[31:])
    with pytest.raises(DataError, match="prepared files are damaged"):
        read_tfds(folder, "test")
    records.unlink()
    with pytest.raises(DataError, match="prepared files are damaged"):
        read_tfds(folder, "test")
    for name in ("features.json", "dataset_info.json"):
        file = folder / name
        file.write_text(file.read_text()[:-9])
        with pytest.raises(DataError, match="damaged|cannot make it"):
            read_tfds(folder, "train")


def test_without_tensorflow_datasets(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(ImportError, match=r"needs tensorflow-datasets. Run: pip install 'keras_bert_kit\[datasets\]'"):
        read_tfds("ag_news_subset", "train")
