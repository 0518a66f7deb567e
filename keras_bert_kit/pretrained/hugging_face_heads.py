"""What tensors and `config.json` of Hugging Face say about the heads of a model, and the names of its classes."""

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.heads import num_classes_of, numbered_classes, usable_heads
from keras_bert_kit.pretrained.source import object_in

# Transformers' classes whose head is called `classifier` in the file, and which head of ours that is.
_CLASSIFIERS = {
    "BertForSequenceClassification": "classifier",
    "BertForTokenClassification": "token_classifier",
    "BertForMultipleChoice": "multiple_choice",
}


def heads_of(table, arrays, values):
    """Finds the heads by the tensors that are there.

    Args:
        table: `names.HUGGING_FACE`, or `names.HUGGING_FACE_TF`.
        arrays: `NamedArrays` under the tensors' names in today's spelling.
        values: dictionary of config.json.

    Returns:
        Triple of the list of groups of the table besides the encoder, a dictionary from the names of tensors of heads
        that are left out to the reason, and notes for the report.
    """
    groups = [
        group
        for group, name in (
            ("pooler", "pooler.dense.weight"),
            ("masked_lm", "cls.predictions.bias"),
            ("next_sentence", "cls.seq_relationship.weight"),
            ("question_answering", "qa_outputs.weight"),
        )
        if name in arrays
    ]
    notes = []
    if "classifier.weight" in arrays:
        outputs = num_classes_of(table, "classifier", arrays)
        head, why = _head_called_classifier(values, outputs, "pooler" in groups)
        groups.append(head)
        notes = [f"the tensors called classifier are the head {head} ({why})"]
    return *usable_heads(table, arrays, groups), notes


def _head_called_classifier(values, outputs, has_pooler):
    """Returns which head the tensors called `classifier` are, and what says so.

    Where config.json names no class, there are the tensors alone: a token classifier does without a pooler. With one,
    one output is multiple choice; or a classifier trained for regression, which has one label in config.json.
    """
    architectures = values.get("architectures")
    architecture = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    # The classes of Transformers for TensorFlow have names of their own: TFBertForTokenClassification.
    if head := _CLASSIFIERS.get(architecture.removeprefix("TF")):
        return head, f"architectures in config.json says {architecture}"
    one_label = values.get("num_labels") == 1 or len(object_in(values, "id2label", "config.json")) == 1
    if not has_pooler:
        return "token_classifier", "architectures in config.json does not say which; there is no pooler"
    if outputs > 1 or one_label or values.get("problem_type") == "regression":
        return "classifier", "architectures in config.json does not say which; there is a pooler"
    return "multiple_choice", "architectures in config.json does not say which; there are a pooler and one output"


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
