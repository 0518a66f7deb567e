"""Data: from files to batches of (inputs, labels)."""

from keras_bert_kit.data.classification import (
    classification_batches,
    classification_dataset,
    count_tokens,
    count_truncated,
)
from keras_bert_kit.data.labels import class_names_of, label_ids
from keras_bert_kit.data.order import ShuffledBatches
from keras_bert_kit.data.sources import AG_NEWS_CLASSES, Examples, read_examples, read_sample

__all__ = [
    "AG_NEWS_CLASSES",
    "Examples",
    "ShuffledBatches",
    "class_names_of",
    "classification_batches",
    "classification_dataset",
    "count_tokens",
    "count_truncated",
    "label_ids",
    "read_examples",
    "read_sample",
]
