"""PretrainingSettings: all that decides, beside text and tokenizer, what pre-training data are like."""

import dataclasses
import difflib
import math

from keras_bert_kit.data.documents import TEXT_FORMATS
from keras_bert_kit.errors import DataError

MASKINGS = ("dynamic", "static")
_STATIC_DUPE_FACTOR = 10


@dataclasses.dataclass(frozen=True)
class PretrainingSettings:
    """Settings of data creation; names and numbers are those of Google's script where it has them.

    Attributes:
        sequence_length: tokens of a sequence at most, [CLS] and [SEP] counted (Google's `max_seq_length`).
        max_predictions_per_seq: masked tokens of a sequence at most. None: what the share of a full sequence comes to.
        masked_lm_prob: share of the tokens to mask.
        short_seq_prob: probability that the sequences of a document are shorter, as texts in use will be.
        whole_word: whether all pieces of a word are masked together.
        masking: "dynamic" (anew each time that a sequence is read) or "static" (now, written into the data).
        dupe_factor: how often pairs are drawn from each document, with static masking also masks. None: 1 for dynamic
            masking, 10 for static.
        packed: whether several short sequences share a row.
        text_format: "sentences" or "plain", see `documents`.
        block_bytes: size of the blocks of text, each of which becomes a shard.
        seed: of all random numbers.
    """

    sequence_length: int = 128
    max_predictions_per_seq: int | None = None
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    whole_word: bool = False
    masking: str = "dynamic"
    dupe_factor: int | None = None
    packed: bool = False
    text_format: str = "sentences"
    block_bytes: int = 4 << 20
    seed: int = 0

    def __post_init__(self):
        self._check("masked_lm_prob", 0 < self.masked_lm_prob < 1, "between 0 and 1")
        self._check("sequence_length", self.sequence_length >= 5, "5 or more: [CLS], [SEP], [SEP] and two tokens")
        if self.max_predictions_per_seq is None:
            predictions = math.ceil(self.sequence_length * self.masked_lm_prob)
            object.__setattr__(self, "max_predictions_per_seq", predictions)
        if self.dupe_factor is None:
            object.__setattr__(self, "dupe_factor", _STATIC_DUPE_FACTOR if self.masking == "static" else 1)
        limit = self.sequence_length - 3
        self._check("max_predictions_per_seq", 1 <= self.max_predictions_per_seq <= limit, f"from 1 to {limit}")
        self._check("short_seq_prob", 0 <= self.short_seq_prob <= 1, "from 0 to 1")
        self._check("masking", self.masking in MASKINGS, f"one of {MASKINGS}")
        self._check("dupe_factor", self.dupe_factor >= 1, "1 or more")
        self._check("text_format", self.text_format in TEXT_FORMATS, f"one of {TEXT_FORMATS}")
        self._check("block_bytes", self.block_bytes >= 1, "1 or more")
        self._check("seed", self.seed >= 0, "0 or more")

    def _check(self, name, holds, rule):
        if not holds:
            raise ValueError(f"{name} must be {rule}. Received: {name}={getattr(self, name)!r}.")

    def to_dict(self) -> dict:
        """The settings by name, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict) -> "PretrainingSettings":
        """Makes settings of what `to_dict` gave.

        Raises:
            DataError: a name is unknown; the nearest known one is named.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1)
                meant = f"Did you mean {nearest[0]!r}?" if nearest else f"Known are {', '.join(known)}."
                raise DataError(f"Settings of pre-training data must be known ones. Received: {name!r}. {meant}")
        return cls(**values)
