"""The heads in a source: which are there, which are left out, and how many classes a classifier has."""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.names import heads_in

HEADS = (
    "pooler",
    "masked_lm",
    "next_sentence",
    "classifier",
    "token_classifier",
    "question_answering",
    "multiple_choice",
)
ON_POOLED_OUTPUT = {"next_sentence", "classifier", "multiple_choice"}
_REGRESSION = "one number for each text or token (regression), which is no head that is loaded"


def usable_heads(table, arrays, groups=None):
    """Finds the heads whose tensors are there.

    Args:
        table: dictionary of lists of `names.Row`.
        arrays: `NamedArrays` under the names of the table.
        groups: list of str, groups of the table that are there. Default: those of which at least one tensor is.

    Returns:
        Pair of the list of groups of the table besides the encoder, and a dictionary from the names of tensors of
        heads that are left out to the reason.
    """
    groups, left_out = list(heads_in(table, arrays) if groups is None else groups), {}
    for head in {"classifier", "token_classifier"} & set(groups):
        if num_classes_of(table, head, arrays) == 1:
            groups.remove(head)
            left_out |= {row.theirs: _REGRESSION for row in table[head] if row.theirs in arrays}
    # Without a pooler such a head is of no use: the tensors of the pooler are missing, and will be reported so.
    if "pooler" not in groups and ON_POOLED_OUTPUT & set(groups):
        groups.insert(0, "pooler")
    return groups, left_out


def num_classes_of(table, head, arrays):
    """Returns how many classes a classifier has, from the shape of its bias.

    Raises:
        CheckpointError: The bias is missing or no vector.
    """
    _, bias = (row.theirs for row in table[head])
    shape = arrays.shape(bias) if bias in arrays else None
    if shape is None or len(shape) != 1:
        raise CheckpointError(f"A classifier must have a bias (classes,). Received: {bias}, {shape or 'missing'}.")
    return shape[0]


def numbered_classes(num_classes):
    """Returns the names that classes have where a source does not name them: LABEL_0, LABEL_1, …."""
    return [f"LABEL_{i}" for i in range(num_classes)]
