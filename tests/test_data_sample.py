import csv
import re
from collections import Counter
from importlib import resources
from itertools import combinations

import pytest

from keras_bert_kit.data import AG_NEWS_CLASSES, class_names_of, read_sample


@pytest.fixture(scope="module")
def items():
    """(label, text) of all rows, read without the code under test."""
    with (resources.files("keras_bert_kit.data") / "sample_news.csv").open(encoding="ascii", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["label", "text"]
    return rows


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def five_grams(text):
    return set(zip(*(words(text)[start:] for start in range(5)), strict=False))


def test_held_out_fifth_is_balanced_and_apart(items):
    train, held_out = read_sample()
    assert Counter(train.labels) == dict.fromkeys(AG_NEWS_CLASSES, 120)
    assert Counter(held_out.labels) == dict.fromkeys(AG_NEWS_CLASSES, 30)
    assert Counter(train.texts + held_out.texts) == Counter(text for _, text in items)
    for label in AG_NEWS_CLASSES:
        of_class = [text for row_label, text in items if row_label == label]
        assert [text for text, name in zip(held_out.texts, held_out.labels, strict=True) if name == label] == of_class[
            4::5
        ]
    assert train.source == held_out.source == "sample_news.csv"
    assert class_names_of(train) == class_names_of(held_out) == ("Business", "Sci/Tech", "Sports", "World")


def test_lengths_are_spread_from_6_to_60_words(items):
    for label in AG_NEWS_CLASSES:
        lengths = [len(text.split()) for row_label, text in items if row_label == label]
        assert 6 <= min(lengths) <= 7
        assert 50 <= max(lengths) <= 60
        for low, high in [(6, 12), (12, 24), (24, 36), (36, 61)]:
            assert sum(low <= length < high for length in lengths) >= 10, (label, low)


def test_rows_are_mixed_and_clean(items):
    assert all(len(set(label for label, _ in items[start : start + 50])) == 4 for start in range(0, 600, 50))
    for _, text in items:
        assert text == " ".join(text.split())
        assert text.isprintable()


def test_no_item_repeats_another(items):
    assert len({" ".join(words(text)) for _, text in items}) == 600
    shared = [
        (first, second)
        for (first, grams), (second, other_grams) in combinations([(text, five_grams(text)) for _, text in items], 2)
        if grams & other_grams
    ]
    assert not shared


def test_no_item_is_in_ag_news(items, shared):
    ours = {" ".join(words(text)) for _, text in items}
    for path in sorted((shared / "data" / "ag_news").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                fields = [*row, " ".join(row[1:3])]
                assert not ours & {" ".join(words(field)) for field in fields}, path.name
