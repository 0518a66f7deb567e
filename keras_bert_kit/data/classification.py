"""Batches for a classifier: texts become ids in `tf.data`, beside the training step."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_bert_kit.data.autotune import without_autotune
from keras_bert_kit.data.examples import Examples
from keras_bert_kit.data.labels import label_ids
from keras_bert_kit.data.order import ShuffledBatches


def classification_dataset(
    examples: Examples,
    pack: Callable,
    class_names: Sequence[str],
    batch_size: int,
    *,
    shuffle: bool = False,
    seed: int = 0,
    drop_remainder: bool = False,
) -> tf.data.Dataset:
    """Batches of packed texts and class numbers.

    Shuffling permutes the indices of all examples, not a window of them, so a file sorted by class is mixed as well as
    any other; each pass over the data set has another permutation.

    Args:
        examples: labelled texts.
        pack: from a string tensor (batch,) to a dictionary of int32 tensors (batch, sequence), such as a `BertPacker`.
        class_names: the model's classes, in the order of its outputs.
        batch_size: examples a batch, over all replicas.
        shuffle: whether to permute the examples anew in each epoch.
        seed: seed of the permutations (combined with that of `tf.random.set_seed`, where it is set).
        drop_remainder: whether to leave out a last batch that is not full.

    Returns:
        Data set of known cardinality with elements (inputs, labels): what `pack` gives, and int32 (batch,).

    Raises:
        DataError: labels that are not among `class_names`.
        ValueError: `batch_size` is not positive, or there is no batch.
    """
    num_examples = len(examples)
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1. Received: batch_size={batch_size}.")
    if num_examples < (batch_size if drop_remainder else 1):
        raise ValueError(
            f"There must be at least one batch. Received: {num_examples} examples, batch_size={batch_size}, "
            f"drop_remainder={drop_remainder}."
        )
    indices = tf.data.Dataset.range(num_examples)
    if shuffle:
        indices = indices.shuffle(num_examples, seed=seed, reshuffle_each_iteration=True)
    batches = indices.batch(batch_size, drop_remainder=drop_remainder)
    batch_at = _maker_of_batches(examples, pack, class_names)
    batches = batches.map(batch_at, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return without_autotune(batches)


def classification_batches(
    examples: Examples,
    pack: Callable,
    class_names: Sequence[str],
    batch_size: int,
    seed: int = 0,
    lengths: Sequence[int] | None = None,
) -> ShuffledBatches:
    """Batches for `Trainer`: endless, shuffled anew in each epoch, and resumed at any position at once.

    Texts of similar length share a batch, which saves padding.

    Args:
        examples, pack, class_names, batch_size, seed: see `classification_dataset`.
        lengths: tokens of each text. Default: they are counted.
    """
    if lengths is None:
        lengths = count_tokens(examples, pack)
    return ShuffledBatches(len(examples), batch_size, _maker_of_batches(examples, pack, class_names), seed, lengths)


def _maker_of_batches(examples, pack, class_names):
    texts = tf.constant(examples.texts)
    labels = tf.constant(label_ids(examples, class_names))
    return lambda indices: (pack(tf.gather(texts, indices)), tf.gather(labels, indices))


def count_tokens(examples: Examples, pack: Callable, batch_size: int = 256) -> np.ndarray:
    """Counts the tokens of each text, [CLS] and [SEP] included, before it is truncated.

    Args:
        examples: the texts.
        pack: a `BertPacker`, whose tokenizer is used.
        batch_size: texts that are tokenized at a time.

    Returns:
        int64 array (examples,).
    """
    texts = tf.data.Dataset.from_tensor_slices(examples.texts).batch(batch_size)
    counts = texts.map(lambda batch: pack.tokenizer(batch).row_lengths() + 2, num_parallel_calls=tf.data.AUTOTUNE)
    return np.concatenate([batch.numpy() for batch in without_autotune(counts)])


def count_truncated(examples: Examples, pack: Callable) -> int:
    """How many texts are longer than what the packer keeps, [CLS] and [SEP] included.

    Args:
        examples: the texts.
        pack: a `BertPacker`: its tokenizer and its `sequence_length` (or `max_sequence_length`) are used.
    """
    return int(np.sum(count_tokens(examples, pack) > (pack.sequence_length or pack.max_sequence_length)))
