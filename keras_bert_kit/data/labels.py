"""From label strings to class numbers: one order for training, evaluation and export.

The order of the classes is part of a model. It must not depend on the order of the rows or on Python's hash seed, and
numbers must not sort as text (1, 10, 11, 2): https://github.com/ThilinaRajapakse/simpletransformers/issues/713.
"""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from keras_bert_kit.data.examples import AG_NEWS_CLASSES, Examples
from keras_bert_kit.errors import DataError

_MAX_SHOWN = 10
_NAME_OF_NUMBER = dict(zip(("1", "2", "3", "4"), AG_NEWS_CLASSES, strict=True))
_NUMBER_OF_NAME = {name: number for number, name in _NAME_OF_NUMBER.items()}


def class_names_of(examples: Examples) -> tuple[str, ...]:
    """Names of the classes, in the order of a model's outputs.

    Labels that are all numbers come in numeric order, others sorted by code point, so the order depends only on which
    labels there are. The official AG News files have numbers in place of names: for them the four names are returned.

    Args:
        examples: labelled texts.

    Returns:
        The class names: the original strings, or the AG News names.

    Raises:
        DataError: there are fewer than two classes; or labels are fractional numbers, which are measured and not
            counted. Where they are classes all the same, name them: `finetune_classifier(…, class_names=…)`.
    """
    labels = set(examples.labels)
    if len(labels) < 2:
        raise DataError(
            f"{examples.source}: a classifier needs at least two classes. Received: {len(examples)} rows with "
            f"{', '.join(map(repr, labels)) or 'no label'} in column {examples.label_column!r}. Is it the right column?"
        )
    if examples.official_ag_news:
        return AG_NEWS_CLASSES
    if all(re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", label) for label in labels):
        _require_whole(labels, examples)
        return tuple(sorted(labels, key=lambda label: (Decimal(label), label)))
    return tuple(sorted(labels))


def _require_whole(labels, examples: Examples):
    """Refuses scores: `0.0` and `1.0` may be classes that a program has written so, 3.8 of 5 is none."""
    fractions = sorted((label for label in labels if label.partition(".")[2].strip("0")), key=Decimal)
    if fractions:
        raise DataError(
            f"{examples.source}: labels must be classes. Received: fractional numbers in column "
            f"{examples.label_column!r}, {_listed([repr(label) for label in fractions])}. To predict numbers "
            "(regression) is none of the kit's recipes. Make classes of them, such as 'low' and 'high', or choose "
            "another column; classes that only look like numbers need a letter, such as 'v2.1'."
        )


def label_ids(examples: Examples, class_names: Sequence[str]) -> np.ndarray:
    """Class numbers of the labels, for a model with these class names.

    Labels match as strings. Where some do not, the AG News names stand for the numbers 1 to 4 and the numbers for the
    names, so that a model trained on the official files evaluates a file with names in it, and the other way round.

    Args:
        examples: labelled texts.
        class_names: the model's classes, in the order of its outputs.

    Returns:
        int32 array (examples,).

    Raises:
        DataError: labels that the model does not know; the message has the first of them and their counts.
    """
    id_of_name = {name: class_id for class_id, name in enumerate(class_names)}
    used = set(examples.labels)
    for spelling in ({}, _NAME_OF_NUMBER, _NUMBER_OF_NAME):
        id_of_label = {label: id_of_name.get(spelling.get(label, label)) for label in used}
        if None not in id_of_label.values():
            return np.array([id_of_label[label] for label in examples.labels], dtype=np.int32)
    unknown = Counter(label for label in examples.labels if label not in id_of_name)
    raise DataError(
        f"{examples.source}: every label must be one of the model's classes. "
        f"Received: {_listed([f'{label!r} ({count} rows)' for label, count in unknown.most_common()])}. "
        f"The model's classes: {_listed([repr(name) for name in class_names])}."
    )


def _listed(shown: list[str]) -> str:
    more = f" and {len(shown) - _MAX_SHOWN} more" if len(shown) > _MAX_SHOWN else ""
    return ", ".join(shown[:_MAX_SHOWN]) + more
