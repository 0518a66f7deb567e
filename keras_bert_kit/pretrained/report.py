"""`LoadReport`: what was found in a source of weights, what became of it, and why."""

import dataclasses
import json


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """An account of one load: `print(report)` for people, `report.to_json()` for programs.

    Attributes:
        source: str, what was read, as it was given.
        kind: str, the format found.
        config: dict, the fields of `BertConfig`.
        parameters: int, numbers assigned.
        tensor_bytes: int, bytes of the numbers in all tensors of the source.
        heads: tuple of str, of `pooler`, `masked_lm`, `next_sentence`, `classifier`, `token_classifier`,
            `question_answering` and `multiple_choice`.
        notes: tuple of str, each a decision with its reason: which GELU, which epsilon, lower-casing, class names.
        assigned: tuple of str, names of tensors in the file that were assigned.
        random: tuple of str, names of tensors that the source lacks, as `allow_missing` allows: their variables start
            random.
        left_out: dict from the name of each other tensor to the reason why it was not assigned.
        sha256: dict from file name to checksum.
        verified: float, the greatest difference between outputs of the model and of the source itself; None if the
            source was not run.
    """

    source: str
    kind: str
    config: dict
    parameters: int
    tensor_bytes: int
    heads: tuple
    notes: tuple
    assigned: tuple
    random: tuple
    left_out: dict
    sha256: dict
    verified: float | None = None

    def __str__(self):
        size = "L-{num_hidden_layers} H-{hidden_size} A-{num_attention_heads} vocabulary {vocab_size}"
        config = (
            "intermediate {intermediate_size}, positions {max_position_embeddings}, segments {type_vocab_size}, "
            "dropout {hidden_dropout_prob:g}, of attention {attention_probs_dropout_prob:g}"
        )
        lines = [
            f"source      {self.source}",
            f"kind        {self.kind}",
            f"size        {size.format(**self.config)}, {self.parameters:,} parameters",
            f"config      {config.format(**self.config)}",
            f"heads       {', '.join(self.heads) or 'none'}",
            *(f"note        {note}" for note in self.notes),
            f"assigned    {len(self.assigned)} tensors; all in the source take {self.tensor_bytes:,} bytes",
            *([f"random      {_some(self.random)}: not in the source"] if self.random else []),
            *(f"left out    {names}: {reason}" for reason, names in self._names_left_out()),
            *(f"sha256      {digest}  {name}" for name, digest in self.sha256.items()),
        ]
        if self.verified is not None:
            lines.append(f"verified    outputs of the source differ by at most {self.verified:.1e}")
        return "\n".join(lines)

    def _names_left_out(self):
        """Pairs of a reason and the names that it holds for, the first few of them."""
        for reason in dict.fromkeys(self.left_out.values()):
            yield reason, _some([name for name, why in self.left_out.items() if why == reason])

    def to_json(self):
        """Returns the report as a JSON object in one line."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)


def _some(names):
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
