"""Records are, byte for byte, what `tf.train.Example` writes."""

import numpy as np
import tensorflow as tf

from keras_bert_kit.data.tf_example import serialize_examples


def example(values_by_name):
    example = tf.train.Example()
    for name, values in values_by_name.items():
        example.features.feature[name].int64_list.value.extend(values)
    return example.SerializeToString(deterministic=True)


def test_bytes_are_those_of_the_class():
    rng = np.random.default_rng(0)
    limits = {"input_ids": 30522, "bits": 2, "byte": 128, "a name that is " + "long " * 40: 2**31 - 1, "c": 2**14 + 1}
    features, expected = {}, [{} for _ in range(60)]
    for name, limit in limits.items():
        lengths = rng.integers(0, 300, 60)
        lengths[:5] = 0
        splits = np.concatenate([[0], np.cumsum(lengths)])
        values = rng.integers(0, limit, splits[-1])
        features[name] = (values.astype(np.int32), splits)
        for record, start, end in zip(expected, splits, splits[1:], strict=False):
            record[name] = values[start:end].tolist()
    assert serialize_examples(features) == [example(record) for record in expected]


def test_edges():
    edges = np.array([0, 1, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**31 - 1, 2**40])
    assert serialize_examples({"x": (edges, np.array([0, 10]))}) == [example({"x": edges.tolist()})]
    assert serialize_examples({"x": (edges[:0], np.array([0, 0]))}) == [example({"x": []})]
    assert serialize_examples({"x": (edges[:0], np.array([0]))}) == []
