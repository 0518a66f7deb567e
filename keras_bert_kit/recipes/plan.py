"""`Plan`: what a fine-tuning run is going to do, and what of it looks like a mistake."""

import dataclasses

import numpy as np

from keras_bert_kit.text import text_statistics

_SAMPLE = 2000  # texts in which [UNK] is counted
# What is warned of: times the usual rate, and shares.
_HIGHEST_RATE, _MOST_SINGLE, _MOST_UNKNOWN, _MOST_TRUNCATED = 5, 0.5, 0.05, 0.2


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a fine-tuning run is going to do, for people to look at before it starts.

    Attributes:
        num_examples: int, training examples.
        class_names: tuple of str.
        class_counts: tuple of int, training examples of each class.
        num_truncated: int, training examples with more tokens than `max_length`.
        num_steps: int, updates of the weights.
        num_warmup_steps: int, of them, with a rising rate.
        learning_rate: float, the highest rate.
        warnings: tuple of str, what looks like a mistake.
        num_empty: int, training examples without a token.
        text_columns: tuple of str, the columns of the file that the texts come from.
    """

    num_examples: int
    class_names: tuple
    class_counts: tuple
    num_truncated: int
    num_steps: int
    num_warmup_steps: int
    learning_rate: float
    warnings: tuple = ()
    num_empty: int = 0
    text_columns: tuple = ("text",)

    def __str__(self):
        counts = ", ".join(f"{n} {name}" for name, n in zip(self.class_names, self.class_counts, strict=True))
        empty = f", {self.num_empty} empty" if self.num_empty else ""
        plan = (
            f"{self.num_examples} examples ({counts}), {self.num_truncated} truncated{empty}; "
            f"{self.num_steps} steps, {self.num_warmup_steps} of them warm-up, rate {self.learning_rate:g}"
        )
        lines = [plan, *(f"Warning: {warning}" for warning in self.warnings)]
        if len(self.text_columns) > 1:
            columns = " + ".join(self.text_columns)
            lines.append(f"Texts are {columns}, joined by a space: ask the model, and a server, for one such text")
        return "\n".join(lines)


def warnings_of(bert, train, num_truncated, class_counts, rate, usual_rate):
    """What of a run looks like a mistake: tuple of str.

    Args:
        bert: what `load_pretrained` returned.
        train: `Examples`.
        num_truncated: int, of them.
        class_counts: int array (classes,), examples of each class.
        rate: float, the highest rate, and `usual_rate`, that which is usual for such an encoder.
    """
    unknown = text_statistics(train.texts[:_SAMPLE], bert.tokenizer).unknown_share
    truncated = num_truncated / len(train)
    single = int(np.sum(class_counts == 1))
    found = [
        (
            bert.encoder.trainable and rate > _HIGHEST_RATE * usual_rate,
            f"a rate of {rate:g} is high for an encoder of this size that is trained too; {usual_rate:g} is usual",
        ),
        (
            single > _MOST_SINGLE * len(class_counts),
            f"{single} of {len(class_counts)} classes have one example: is {train.label_column!r} the label column?",
        ),
        (
            unknown > _MOST_UNKNOWN,
            f"{unknown:.0%} of the tokens are [UNK]: is it the vocabulary of this language and case?",
        ),
        (
            truncated > _MOST_TRUNCATED,
            f"{truncated:.0%} of the texts are truncated: raise max_length, or put what matters first",
        ),
    ]
    return tuple(text for holds, text in found if holds)
