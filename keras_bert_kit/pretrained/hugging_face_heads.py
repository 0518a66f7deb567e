"""What tensors and `config.json` of Hugging Face say about the heads of a model, and the names of its classes."""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.source import numbered_classes, object_in

# Architectures whose `classifier` is another head than ours, and is left out with this reason.
_OTHER_HEADS = {
    "BertForTokenClassification": "head of token classification, which is not loaded yet",
    "BertForMultipleChoice": "head of multiple choice, which is not loaded yet",
}
_QA_HEAD = "head of question answering, which is not loaded yet"


def heads_of(names, values):
    """Finds the heads by the tensors that are there.

    Args:
        names: the tensors' names in today's spelling.
        values: dictionary of config.json.

    Returns:
        Pair of the list of groups of `names.HUGGING_FACE` besides the encoder, and a dictionary from the names of
        tensors of heads that are left out to the reason.
    """
    architectures = values.get("architectures")
    architecture = architectures[0] if isinstance(architectures, list) and architectures else ""
    groups = [
        group
        for group, name in (
            ("pooler", "pooler.dense.weight"),
            ("masked_lm", "cls.predictions.bias"),
            ("next_sentence", "cls.seq_relationship.weight"),
            ("classifier", "classifier.weight"),
        )
        if name in names
    ]
    left_out = {name: _QA_HEAD for name in names if name.startswith("qa_outputs.")}
    # The classes of Transformers for TensorFlow have names of their own: TFBertForTokenClassification.
    other_head = _OTHER_HEADS.get(str(architecture).removeprefix("TF"))
    if "classifier" in groups and (other_head or "pooler" not in groups):
        reason = other_head or "a classifier without a pooler is no head of BERT that is loaded yet"
        left_out |= {name: reason for name in names if name.startswith("classifier.")}
        groups.remove("classifier")
    if "next_sentence" in groups and "masked_lm" not in groups:
        reason = "a next-sentence head without a masked-LM head is not loaded yet"
        left_out |= {name: reason for name in names if name.startswith("cls.seq_relationship.")}
        groups.remove("next_sentence")
    return groups, left_out


def class_names_of(values, num_classes):
    """Finds the names of the classes. The classifier's tensor decides how many there are.

    Args:
        values: dictionary of config.json, whose `id2label` may hold the names.
        num_classes: int, rows of the classifier.

    Returns:
        Pair of a list of names and a note for the report.

    Raises:
        CheckpointError: There are more names than classes, so labels would fall out of range.
    """
    id2label = object_in(values, "id2label", "config.json")
    names = [str(id2label[key]) for key in sorted(id2label, key=lambda key: (len(str(key)), str(key)))]
    if len(names) > num_classes:
        raise CheckpointError(
            f"config.json must not name more classes than the classifier has rows. Received: {len(names)} names in "
            f"id2label, {num_classes} rows in classifier.weight. Correct id2label."
        )
    if len(names) == num_classes and len(set(names)) == num_classes:
        return names, f"{num_classes} class names from id2label: {', '.join(names[:10])}"
    return numbered_classes(num_classes), (
        f"{num_classes} classes called LABEL_0, …: id2label holds {len(id2label)} names"
    )
