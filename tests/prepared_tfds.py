"""Folders as tensorflow-datasets prepares them, with features like the real ones and made-up text."""

import contextlib
import io

import numpy as np
import pytest

AG_NEWS = [
    {"title": "Oil up", "description": "Prices rose.", "label": 2},
    {"title": "Cup won", "description": "In extra time.", "label": 1},
    {"title": "Caf\u00e9 vote", "description": "", "label": 0},
    {"title": "Probe lands", "description": "On a moon.", "label": 3},
]
MRPC = [
    {"sentence1": "A dog ran.", "sentence2": "A dog was running.", "label": 1, "idx": 0},
    {"sentence1": "A dog ran.", "sentence2": "It rained.", "label": 0, "idx": 1},
]


def prepare(data_dir, name, features, splits, version="1.0.0", config=None):
    """Writes the splits, {name: list of rows}, by TFDS's own writer; returns the folder of the version."""
    tfds = pytest.importorskip(
        "tensorflow_datasets", reason="needs tensorflow-datasets: pip install 'keras_bert_kit[datasets]'"
    )
    import tensorflow as tf

    features = tfds.features.FeaturesDict(features(tfds.features))
    datasets = {
        split: tf.data.Dataset.from_generator(lambda rows=rows: rows, output_signature=features.get_tensor_spec())
        for split, rows in splits.items()
    }
    tfds.disable_progress_bar()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that it downloads, which it does not
        tfds.dataset_builders.store_as_tfds_dataset(
            name=name,
            version=version,
            features=features,
            split_datasets=datasets,
            config=config,
            data_dir=data_dir,
            disable_shuffling=True,
        )
    return data_dir.joinpath(name, *([config] if config else []), version)


def prepare_ag_news(data_dir):
    def features(f):
        return {"title": f.Text(), "description": f.Text(), "label": f.ClassLabel(names=NAMES)}

    return prepare(data_dir, "ag_news_subset", features, {"train": AG_NEWS * 5, "test": AG_NEWS})


NAMES = ["World", "Sports", "Business", "Sci/Tech"]


def prepare_mrpc(data_dir):
    def features(f):
        label = f.ClassLabel(names=["not_equivalent", "equivalent"])
        return {"sentence1": f.Text(), "sentence2": f.Text(), "label": label, "idx": f.Scalar(np.int32)}

    unlabelled = [row | {"label": -1} for row in MRPC]
    return prepare(
        data_dir, "glue", features, {"train": MRPC * 3, "validation": MRPC, "test": unlabelled}, "2.0.0", "mrpc"
    )
