import os
import random
import subprocess
import sys

import numpy as np
import pytest

from keras_bert_kit.data import AG_NEWS_CLASSES, Examples, class_names_of, label_ids
from keras_bert_kit.errors import DataError


def examples_of(labels, **kwargs):
    labels = list(labels)
    return Examples([f"text {i}" for i in range(len(labels))], labels, **kwargs)


def test_numbers_come_in_numeric_order_whatever_the_rows():
    # FC07: simpletransformers#713
    labels = [str(number) for number in range(1, 13)] * 3
    for seed in range(3):
        random.Random(seed).shuffle(labels)
        assert class_names_of(examples_of(labels)) == tuple(str(number) for number in range(1, 13))


def test_order_does_not_depend_on_the_hash_seed():
    # FC07: simpletransformers#924
    labels = ["pear", "Apple", "fig", "null", "12", "3", "kiwi", "plum"]
    program = (
        f"from keras_bert_kit.data import Examples, class_names_of; print(class_names_of(Examples({labels}, {labels})))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True)
    assert class_names_of(examples_of(labels)) == ("12", "3", "Apple", "fig", "kiwi", "null", "pear", "plum")
    assert other.stdout.strip() == str(class_names_of(examples_of(labels)))


@pytest.mark.parametrize(
    "labels, names",
    [
        (["-1", "10", "2"], ("-1", "2", "10")),
        (["2.0", "10", "1.0"], ("1.0", "2.0", "10")),
        (["v2.5", "v2.1"], ("v2.1", "v2.5")),
        (["1", "01"], ("01", "1")),
        (["b", "a", "b"], ("a", "b")),
        (["nan", "inf"], ("inf", "nan")),
    ],
)
def test_class_names(labels, names):
    assert class_names_of(examples_of(labels)) == names


def test_scores_are_no_classes():
    labels = ["3.8", "5.000", "0", "2.4", "-0.5"]
    with pytest.raises(
        DataError, match="data.csv: labels must be classes. .*column 'label', '-0.5', '2.4', '3.8'. .*regression"
    ):
        class_names_of(examples_of(labels, source="data.csv"))


def test_official_ag_news_has_four_classes_even_if_few_are_there():
    assert class_names_of(examples_of(["3", "1"], official_ag_news=True)) == AG_NEWS_CLASSES


@pytest.mark.parametrize("labels", [[], ["a", "a"]])
def test_fewer_than_two_classes(labels):
    with pytest.raises(DataError, match=f"at least two classes. Received: {len(labels)} rows"):
        class_names_of(examples_of(labels))


@pytest.mark.parametrize(
    "labels, class_names, ids",
    [
        (["b", "a"], ["a", "b"], [1, 0]),
        (["4", "1"], ["1", "2", "3", "4"], [3, 0]),
        (["4", "1"], AG_NEWS_CLASSES, [3, 0]),
        (["4", "1"], sorted(AG_NEWS_CLASSES), [1, 3]),
        (["Sci/Tech", "World"], ["1", "2", "3", "4"], [3, 0]),
        (["Sci/Tech", "World"], AG_NEWS_CLASSES, [3, 0]),
    ],
)
def test_label_ids(labels, class_names, ids):
    result = label_ids(examples_of(labels), class_names)
    np.testing.assert_array_equal(result, ids)
    assert result.dtype == np.int32


def test_unknown_labels_are_counted():
    examples = examples_of(["a", "Weather", "b", "Arts", "Weather"], source="new.csv")
    with pytest.raises(
        DataError,
        match=r"new.csv: .*Received: 'Weather' \(2 rows\), 'Arts' \(1 rows\)\. The model's classes: 'a', 'b'\.",
    ):
        label_ids(examples, ("a", "b"))


def test_many_unknown_labels_make_a_short_message():
    with pytest.raises(DataError, match=r"and 90 more\.") as raised:
        label_ids(examples_of(map(str, range(100))), ("a", "b"))
    assert len(str(raised.value)) < 500


def test_zero_based_numbers_are_not_taken_for_ag_news():
    with pytest.raises(DataError, match=r"'0' \(1 rows\)"):
        label_ids(examples_of(["0", "1", "2", "3"]), AG_NEWS_CLASSES)
