"""The texts that every contender gets: some batches of a file, in two orders."""

import dataclasses

import numpy as np
from report import BY_LENGTH, NATURAL

from keras_bert_kit.data import ShuffledBatches, class_names_of, count_tokens, label_ids, read_examples
from keras_bert_kit.text import BertPacker, BertTokenizer


@dataclasses.dataclass(frozen=True)
class Workload:
    """Texts, the same ones in each order, whole batches of them.

    Attributes:
        class_names: tuple of str.
        examples: {order: (texts, class numbers)}.
        lengths: {order: tokens of each text, cut at the maximum}.
        batch_size, max_length: int.
    """

    class_names: tuple
    examples: dict
    lengths: dict
    batch_size: int
    max_length: int

    @property
    def tokens(self):
        return int(sum(self.lengths[NATURAL]))

    def padding(self, order, fixed_length=None):
        """The share of padding, where batches are padded to their longest text, or all to one length."""
        batches = np.reshape(self.lengths[order], [-1, self.batch_size])
        longest = batches.max(axis=1) if fixed_length is None else np.full(len(batches), fixed_length)
        return 1 - self.tokens / (self.batch_size * int(longest.sum()))

    def batches(self, order):
        texts = self.examples[order][0]
        return [texts[first : first + self.batch_size] for first in range(0, len(texts), self.batch_size)]

    def facts(self):
        num_batches = len(self.lengths[NATURAL]) // self.batch_size
        mean = self.tokens / len(self.lengths[NATURAL])
        return f"{num_batches} batches of {self.batch_size} texts a turn, {mean:.1f} tokens a text on average"


def read_workload(options, batch_size, order_of):
    """Chooses batches of the file of texts, from short to long ones.

    Args:
        options: the command line.
        batch_size: int.
        order_of: function from the lengths of all texts to an order in which texts of similar length are neighbours.

    Returns:
        `Workload`. "by length" are batches of that order, whose mean lengths are spread as in the file; "natural" are
        the same texts, shuffled.
    """
    examples = read_examples(options.texts)
    names = class_names_of(examples)
    pack = BertPacker(BertTokenizer.from_vocab_file(options.vocab), None)
    lengths = np.minimum(count_tokens(examples, pack), options.max_length)
    whole = len(examples) // batch_size * batch_size
    batches = np.reshape(order_of(lengths)[:whole], [-1, batch_size])
    if len(batches) < options.batches:
        raise SystemExit(f"{options.texts} must have {options.batches * batch_size} texts. It has {len(examples)}.")
    chosen = batches[spread_choice(lengths[batches].mean(axis=1), options.batches)]
    rng = np.random.default_rng(0)
    orders = {BY_LENGTH: rng.permutation(chosen).ravel(), NATURAL: rng.permutation(chosen.ravel())}
    labels = label_ids(examples, names)
    return Workload(
        names,
        {order: ([examples.texts[i] for i in rows], labels[rows].tolist()) for order, rows in orders.items()},
        {order: lengths[rows].tolist() for order, rows in orders.items()},
        batch_size,
        options.max_length,
    )


def spread_choice(values, count):
    """Positions of `count` of the values, at evenly spaced quantiles."""
    places = (np.arange(count) + 0.5) / count * len(values)
    return np.argsort(values, kind="stable")[places.astype(int)]


def order_of_the_recipe(batch_size):
    """The order in which `finetune_classifier` goes through texts: random, neighbours of similar length."""
    return lambda lengths: ShuffledBatches(len(lengths), batch_size, None, 0, lengths).order(np.int64(0)).numpy()


def sorted_order(lengths):
    return np.argsort(lengths, kind="stable")
