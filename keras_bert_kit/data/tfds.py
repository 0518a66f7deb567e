"""Labelled texts from tensorflow-datasets (TFDS): by name, or from a folder that it has prepared before."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keras_bert_kit.data.columns import find_columns
from keras_bert_kit.data.examples import Examples
from keras_bert_kit.errors import DataError
from keras_bert_kit.network import offline_by

PREFIX = "tfds:"
"""What an address such as `tfds:glue/mrpc/validation` begins with, where a path of a file could be too."""


def read_tfds(
    source: str | Path,
    split: str,
    label_column: str | None = None,
    text_columns: str | Sequence[str] | None = None,
    *,
    data_dir: str | Path | None = None,
    download: bool = True,
) -> Examples:
    """Reads labelled texts of tensorflow-datasets, such as `ag_news_subset`, `glue/sst2` or `glue/mrpc`.

    Labels are the names of the classes. A prepared folder needs neither the network nor the code that prepared it.

    Args:
        source: name of a data set, with its configuration and perhaps its version (`glue/mrpc`,
            `ag_news_subset:1.0.0`); or a folder that TFDS prepared, the one with dataset_info.json
            (`…/ag_news_subset/1.0.0`).
        split: which part, in the words of TFDS: `train`, `train[:10%]`, `train+test`.
        label_column: name of the label's feature. Default: found by name, see `read_examples`.
        text_columns: name or names of the texts' features. Default: found by name; several are joined by a space.
        data_dir: folder where TFDS keeps what it prepared. Default: its own, ~/tensorflow_datasets.
        download: whether to download and prepare what is not there. With KERAS_BERT_KIT_OFFLINE=1 nothing is.

    Returns:
        The examples, in the order of the files.

    Raises:
        DataError: there is no such data set, split or feature; it cannot be had or is damaged; features are no texts or
            no classes; the split has no labels, as the test splits of GLUE.
        ImportError: tensorflow-datasets is not installed.
    """
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        message = f"{source} needs tensorflow-datasets. Run: pip install 'keras_bert_kit[datasets]'"
        raise ImportError(message) from error
    text_columns = [text_columns] if isinstance(text_columns, str) else text_columns
    folder = Path(source).expanduser()
    if folder.is_dir() or folder.is_absolute():
        builder = _from_folder(tfds, folder)
    else:
        builder = _by_name(tfds, str(source), data_dir, download)
    where = f"{PREFIX}{source}/{split}"
    features, splits = builder.info.features, ", ".join(builder.info.splits)
    columns = find_columns(tuple(features), where, label_column, text_columns)
    _require_types(features, columns, where)
    try:
        dataset = builder.as_dataset(split=split)
    except ValueError as error:
        raise DataError(f"{where}: the split cannot be had ({_line(error)}). Splits: {splits}.") from error
    labels, texts = _values(dataset, (columns.label_name, *columns.text_names), where)
    label = features[columns.label_name]
    if isinstance(label, tfds.features.ClassLabel):
        unlabelled = sum(number < 0 for number in labels)
        if unlabelled:
            raise DataError(
                f"{where}: every example must have a label. Received: {unlabelled} of {len(labels)} without (-1), as "
                f"in the test splits of GLUE. Use another split: {splits}."
            )
        labels = [label.int2str(int(number)) for number in labels]
    labels = [str(label).strip() for label in labels]
    return Examples(texts, labels, where, label_column=columns.label_name, text_columns=columns.text_names)


def split_address(address: str) -> tuple[str, str]:
    """Name or folder, and split, of an address such as `tfds:glue/mrpc/train[:10%]`.

    Raises:
        DataError: one of them is missing.
    """
    source, _, split = address.removeprefix(PREFIX).rpartition("/")
    if not source or not split:
        raise DataError(
            f"{address}: it must be {PREFIX}NAME/SPLIT, with a name of tensorflow-datasets or a folder that it "
            f"prepared. Examples: {PREFIX}ag_news_subset/train, {PREFIX}glue/mrpc/train[:10%]."
        )
    return source, split


def _from_folder(tfds, folder: Path):
    """What reads a prepared folder."""
    if not (folder / "dataset_info.json").is_file():
        inside = sorted(str(info.parent.relative_to(folder)) for info in folder.glob("*/**/dataset_info.json"))
        raise DataError(
            f"{folder}: the folder must be one that tensorflow-datasets prepared, with dataset_info.json in it. "
            f"Received: {'one with the folders ' + ', '.join(inside) if inside else 'none such, nor inside it'}."
        )
    try:
        return tfds.builder_from_directory(folder)
    except (OSError, ValueError, KeyError, json_format.ParseError) as error:
        raise DataError(f"{folder}: the prepared folder is damaged ({_line(error)}). Prepare it again.") from error


def _by_name(tfds, name: str, data_dir, download: bool):
    """What reads a data set of this name, which is downloaded and prepared if that is wanted and needed."""
    failures = (OSError, ValueError, AssertionError, tfds.download.DownloadError)
    failures += (tfds.core.download.download_manager.NonMatchingChecksumError,)
    try:
        builder = tfds.builder(name, data_dir=data_dir)
        if download and not offline_by():
            with contextlib.redirect_stdout(sys.stderr):  # it prints what it does; answers alone go to standard output
                builder.download_and_prepare()
    except failures as error:
        raise DataError(
            f"{name}: tensorflow-datasets cannot make it ({_line(error)}). Without network, prepare it elsewhere, copy "
            f"the folder with dataset_info.json, and name that: {PREFIX}FOLDER/train."
        ) from error
    if not builder.is_prepared():
        raise DataError(
            f"{name}: it is not prepared in {builder.data_path}, and must not be downloaded "
            f"({offline_by() or 'download=False'})."
        )
    return builder


def _require_types(features, columns, where: str):
    """Texts are strings, labels classes, one of each an example."""
    for name in (columns.label_name, *columns.text_names):
        dtype, is_label = features[name].tf_dtype, name == columns.label_name
        scalar = isinstance(dtype, tf.DType) and features[name].shape == ()
        if not scalar or not (dtype == tf.string or (is_label and (dtype.is_integer or dtype.is_bool))):
            needed = "a class: an integer, a Boolean or a string" if is_label else "a string"
            raise DataError(
                f"{where}: feature {name!r} must be {needed}. Received: {features[name]}. "
                f"Features: {', '.join(features)}."
            )


def _values(dataset, names: tuple[str, ...], where: str) -> tuple[list, list[str]]:
    """Labels as they are stored, with strings decoded, and texts."""
    labels, texts = [], []
    batches = dataset.map(lambda row: tuple(row[name] for name in names)).batch(1024)
    try:
        for label, *parts in batches.as_numpy_iterator():
            labels += [value.decode() for value in label] if label.dtype == np.object_ else label.tolist()
            texts += [b" ".join(row).decode() for row in zip(*parts, strict=True)]
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: texts must be UTF-8. Received: {error}, among examples {len(texts)} on.") from error
    except tf.errors.OpError as error:
        raise DataError(
            f"{where}: the prepared files are damaged ({_line(error.message)}). Prepare it again."
        ) from error
    return labels, texts


def _line(message) -> str:
    """The beginning of a message that may have many lines."""
    return " ".join(str(message).split())[:300]
