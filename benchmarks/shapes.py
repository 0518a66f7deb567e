"""The shapes of BERT that are measured, and how many operations their texts cost.

Operations are those of matrix products alone, two for a multiplication and an addition. Only real tokens count: work on
padding is waste, and makes the share of the machine's rate smaller.
"""

import dataclasses

SHAPES = {"base": (12, 768, 12, 3072), "minilm": (6, 384, 12, 1536)}  # layers, hidden, heads, intermediate
TRAINING = 3  # a step costs a forward pass, and two products for each of its products on the way back


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    intermediate: int
    vocab_size: int
    positions: int = 512
    classes: int = 4

    @property
    def config(self):
        """The keys that the configurations of the kit and of Transformers share."""
        return {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.positions,
        }

    @property
    def parameters(self):
        """Numbers that a classifier learns: embeddings, blocks, pooler, dense layer."""
        hidden, wide = self.hidden, self.intermediate
        embeddings = (self.vocab_size + self.positions + 2) * hidden + 2 * hidden
        block = 4 * (hidden * hidden + hidden) + 2 * hidden * wide + wide + hidden + 4 * hidden
        return embeddings + self.layers * block + hidden * hidden + hidden + self.classes * (hidden + 1)

    def encoder_operations(self, lengths):
        """Of a forward pass over texts of so many tokens each."""
        dense = self.layers * (4 * self.hidden**2 + 2 * self.hidden * self.intermediate)
        attention = 2 * self.layers * self.hidden  # the products with keys and with values, a pair of tokens
        return sum(2 * (dense * length + attention * length**2) for length in lengths)

    def classifier_operations(self, lengths):
        return self.encoder_operations(lengths) + 2 * len(lengths) * self.hidden * (self.hidden + self.classes)

    def pretraining_operations(self, lengths, num_predictions):
        heads = num_predictions * self.hidden * (self.hidden + self.vocab_size)
        heads += len(lengths) * self.hidden * (self.hidden + 2)
        return self.encoder_operations(lengths) + 2 * heads


def shape_of(options, vocab_size):
    """The shape that the command line asks for."""
    named = dict(zip(("layers", "hidden", "heads", "intermediate"), SHAPES[options.shape], strict=True))
    if options.hidden:
        named |= {"hidden": options.hidden, "heads": max(options.hidden // 64, 1), "intermediate": 4 * options.hidden}
    if options.layers:
        named["layers"] = options.layers
    return Shape(**named, vocab_size=vocab_size)
