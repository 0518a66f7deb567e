"""What to know about texts before training on them: how long they are, what truncation costs, what is unknown."""

import dataclasses
import itertools

import numpy as np

TEXTS_PER_BATCH = 1024


@dataclasses.dataclass(frozen=True)
class TextStatistics:
    """Counts over a set of texts, in tokens without [CLS] and [SEP].

    num_texts, num_empty_texts: how many texts, and how many of them without any token.
    num_tokens, num_unknown: how many tokens, and how many of them [UNK].
    num_truncated, tokens_lost: texts that do not fit `sequence_length`, and tokens that they lose.
    sequence_length: tokens that an example may have, with [CLS] and [SEP].
    longest: tokens of the longest text.
    percentiles: dict of percent to length: that share of the texts is at most so long.
    histogram: list of (from, to, texts), lengths `from <= length < to`.
    warnings: list of str, what looks wrong.
    """

    num_texts: int
    num_empty_texts: int
    num_tokens: int
    num_unknown: int
    num_truncated: int
    tokens_lost: int
    sequence_length: int
    longest: int
    percentiles: dict
    histogram: list
    warnings: list

    @property
    def unknown_share(self):
        """Share of tokens that are [UNK], 0 to 1."""
        return self.num_unknown / max(self.num_tokens, 1)

    @property
    def truncated_share(self):
        """Share of texts that are truncated, 0 to 1."""
        return self.num_truncated / max(self.num_texts, 1)

    def as_dict(self):
        """Everything, in types that JSON knows."""
        shares = {"unknown_share": self.unknown_share, "truncated_share": self.truncated_share}
        return {**dataclasses.asdict(self), **shares}

    def __str__(self):
        widest = max((count for *_, count in self.histogram), default=1)
        lines = [
            f"texts      {self.num_texts:>11,}   ({self.num_empty_texts:,} without tokens)",
            f"tokens     {self.num_tokens:>11,}   [UNK]: {self.num_unknown:,} ({self.unknown_share:.3%})",
            f"truncated  {self.num_truncated:>11,}   at {self.sequence_length} tokens ({self.truncated_share:.2%} of "
            f"the texts, {self.tokens_lost:,} tokens lost)",
            "length     " + ", ".join(f"{percent} %: {length}" for percent, length in self.percentiles.items()),
            *(f"{a:>5} to {b - 1:<5} {n:>9,} {'#' * round(40 * n / widest)}" for a, b, n in self.histogram),
            *(f"warning: {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


def text_statistics(texts, tokenizer, sequence_length=128, num_bins=16):
    """Tokenizes texts and counts.

    Args:
        texts: iterable of str, read once, some at a time: a file's lines may be given as they are. A str is one text.
        tokenizer: BertTokenizer.
        sequence_length: int, as in `BertPacker`.
        num_bins: int, bars of the histogram; the last one takes everything above.

    Returns:
        TextStatistics.

    Raises:
        ValueError: there are no texts, or something is not a text.
    """
    lengths, num_unknown = [], 0
    texts = iter([texts] if isinstance(texts, (str, bytes)) else texts)
    while batch := list(itertools.islice(texts, TEXTS_PER_BATCH)):
        ids = tokenizer(batch)
        lengths.append(ids.row_lengths().numpy())
        num_unknown += int((ids.values.numpy() == tokenizer.unk_id).sum())
    if not lengths:
        raise ValueError("Statistics need at least one text. Received: none. Is the file empty?")
    lengths = np.concatenate(lengths)
    lost = np.maximum(lengths - (sequence_length - 2), 0)
    percents = (50, 90, 95, 99, 100)
    return TextStatistics(
        num_texts=len(lengths),
        num_empty_texts=int((lengths == 0).sum()),
        num_tokens=int(lengths.sum()),
        num_unknown=num_unknown,
        num_truncated=int((lost > 0).sum()),
        tokens_lost=int(lost.sum()),
        sequence_length=sequence_length,
        longest=int(lengths.max()),
        percentiles={percent: int(np.percentile(lengths, percent, method="higher")) for percent in percents},
        histogram=_histogram(lengths, num_bins),
        warnings=[*case_warnings(tokenizer), *_length_warnings(lengths, lost, num_unknown)],
    )


def case_warnings(tokenizer):
    """Says when a vocabulary with capital letters meets a tokenizer that lower-cases, or the other way round."""
    letters = [token for token in tokenizer.vocabulary if token.isascii() and not token.startswith("[")]
    share = sum(token != token.lower() for token in letters) / max(len(letters), 1)
    if tokenizer.lowercase and share > 0.05:
        return [f"the tokenizer lower-cases, but {share:.0%} of the tokens have capital letters: a cased vocabulary?"]
    if not tokenizer.lowercase and share == 0 and len(letters) > 1000:
        return ["the tokenizer keeps capital letters, but no token has any: an uncased vocabulary?"]
    return []


def _length_warnings(lengths, lost, num_unknown):
    """What the numbers say to someone who knows how they should be."""
    warnings = []
    if num_unknown > 0.01 * lengths.sum():
        warnings.append("more than 1 % of the tokens are [UNK]: is this the right vocabulary for these texts?")
    if (lost > 0).mean() > 0.1:
        warnings.append("more than 10 % of the texts are truncated: think of a larger sequence length, or windows.")
    return warnings


def _histogram(lengths, num_bins):
    """Equal bins up to the 99th percentile; the last one takes the rest."""
    width = max(1, -(-int(np.percentile(lengths, 99) + 1) // num_bins))
    counts = np.bincount(np.minimum(lengths // width, num_bins - 1), minlength=num_bins)
    ends = [(i + 1) * width for i in range(num_bins)]
    ends[-1] = max(ends[-1], int(lengths.max()) + 1)
    bars = [(i * width, end, int(count)) for i, (end, count) in enumerate(zip(ends, counts, strict=True))]
    while len(bars) > 1 and bars[-1][2] == 0:
        bars.pop()
    return bars
