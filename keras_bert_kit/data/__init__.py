"""Data: from files to batches of (inputs, labels)."""

from keras_bert_kit.data.classification import (
    classification_batches,
    classification_dataset,
    count_tokens,
    count_truncated,
)
from keras_bert_kit.data.examples import AG_NEWS_CLASSES, Examples
from keras_bert_kit.data.labels import class_names_of, label_ids
from keras_bert_kit.data.order import ShuffledBatches
from keras_bert_kit.data.pretraining_batches import PretrainingBatches
from keras_bert_kit.data.pretraining_settings import PretrainingSettings
from keras_bert_kit.data.sources import read_examples, read_sample
from keras_bert_kit.data.tfds import read_tfds
from keras_bert_kit.data.write_pretraining import PretrainingData, write_pretraining_data

__all__ = [
    "AG_NEWS_CLASSES",
    "Examples",
    "PretrainingBatches",
    "PretrainingData",
    "PretrainingSettings",
    "ShuffledBatches",
    "class_names_of",
    "classification_batches",
    "classification_dataset",
    "count_tokens",
    "count_truncated",
    "label_ids",
    "read_examples",
    "read_sample",
    "read_tfds",
    "write_pretraining_data",
]
