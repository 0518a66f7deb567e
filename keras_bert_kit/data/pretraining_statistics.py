"""BlockStatistics: what is counted while pre-training data are created; blocks add up to a corpus."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class BlockStatistics:
    """Counts of one block, or of several added together with `+`.

    Attributes:
        documents, sentences: with text in them, as read (once, whatever the `dupe_factor`).
        cut_documents: cuts in documents too long for a block. `records_of_block` cannot see them and says 0;
            `count_cut_documents` counts them.
        sequences: pairs of segments.
        rows: records; several sequences share a row where they are packed.
        tokens: tokens of all sequences, special ones counted.
        places: tokens that the rows would have, were each padded to `sequence_length`.
        next_pairs, random_pairs: sequences with label 0 (B follows A) and 1 (B from another document).
        predictions: masked tokens; with dynamic masking those that a reading will mask, with whole words at most.
        masked_mask, masked_random, masked_kept: of these, how many became [MASK], a random token, or stayed (static
            masking only).
        unknown_tokens: [UNK] among the tokens of the text.
        text_tokens: tokens of the text.
        lengths: how many sequences have 0, 1, 2, … `sequence_length` tokens.
    """

    documents: int = 0
    sentences: int = 0
    cut_documents: int = 0
    sequences: int = 0
    rows: int = 0
    tokens: int = 0
    places: int = 0
    next_pairs: int = 0
    random_pairs: int = 0
    predictions: int = 0
    masked_mask: int = 0
    masked_random: int = 0
    masked_kept: int = 0
    unknown_tokens: int = 0
    text_tokens: int = 0
    lengths: tuple[int, ...] = ()

    def __add__(self, other: "BlockStatistics") -> "BlockStatistics":
        values, others = vars(self), vars(other)
        sums = {name: values[name] + others[name] for name in values if name != "lengths"}
        longest = max(len(self.lengths), len(other.lengths))
        padded = [counts + (0,) * (longest - len(counts)) for counts in (self.lengths, other.lengths)]
        return BlockStatistics(**sums, lengths=tuple(map(sum, zip(*padded, strict=True))))

    @property
    def padding_share(self) -> float:
        """Share of the places that would be padding, were each row padded to `sequence_length`."""
        return 1 - self.tokens / self.places if self.places else 0.0

    @property
    def masked_share(self) -> float:
        """Share of the tokens, special ones counted, that are masked."""
        return self.predictions / self.tokens if self.tokens else 0.0

    @property
    def random_pairs_share(self) -> float:
        """Share of the pairs whose B comes from another document."""
        return self.random_pairs / self.sequences if self.sequences else 0.0

    def to_dict(self) -> dict:
        """The counts by name, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "BlockStatistics":
        """Makes statistics of what `to_dict` gave."""
        return cls(**{**values, "lengths": tuple(values["lengths"])})
