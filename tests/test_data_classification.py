import pytest
import tensorflow as tf

from keras_bert_kit.data import Examples, classification_dataset, count_tokens, count_truncated
from keras_bert_kit.errors import DataError
from keras_bert_kit.text.packer import BertPacker
from keras_bert_kit.text.tokenizer import BertTokenizer

CLASSES = ("even", "odd")


def pack(texts):
    """Stands for a packer: the number in `text <number>` is the only id."""
    ids = tf.strings.to_number(tf.strings.regex_replace(texts, "text ", ""), tf.int32)[:, None]
    return {"input_word_ids": ids, "input_mask": tf.ones_like(ids), "input_type_ids": tf.zeros_like(ids)}


def examples_of(count):
    return Examples([f"text {i}" for i in range(count)], [CLASSES[i % 2] for i in range(count)])


def epoch(dataset):
    """Ids of one pass, after a check that each kept its label."""
    ids = []
    for inputs, labels in dataset:
        words = inputs["input_word_ids"].numpy()[:, 0]
        assert (words % 2 == labels.numpy()).all()
        ids.extend(words.tolist())
    return ids


def test_elements_and_cardinality():
    dataset = classification_dataset(examples_of(7), pack, CLASSES, batch_size=3)
    inputs, labels = dataset.element_spec
    assert sorted(inputs) == ["input_mask", "input_type_ids", "input_word_ids"]
    assert all(spec.dtype == tf.int32 and spec.shape.as_list() == [None, 1] for spec in inputs.values())
    assert labels == tf.TensorSpec([None], tf.int32)
    assert dataset.cardinality() == 3
    assert [len(labels) for _, labels in dataset] == [3, 3, 1]
    assert epoch(dataset) == list(range(7))
    assert epoch(dataset) == list(range(7))


def test_drop_remainder_gives_static_shapes():
    dataset = classification_dataset(examples_of(7), pack, CLASSES, batch_size=3, drop_remainder=True)
    assert dataset.cardinality() == 2
    assert dataset.element_spec[1].shape == [3]


def test_each_epoch_is_another_permutation_of_all_examples():
    dataset = classification_dataset(examples_of(500), pack, CLASSES, batch_size=8, shuffle=True, seed=1)
    first, second = epoch(dataset), epoch(dataset)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(500))
    assert sum(i < 250 for i in first[:100]) < 75, "the beginning must not come from the beginning"


def test_same_seed_same_epochs():
    def two_epochs(seed):
        tf.random.set_seed(5)
        dataset = classification_dataset(examples_of(50), pack, CLASSES, batch_size=8, shuffle=True, seed=seed)
        return epoch(dataset) + epoch(dataset)

    assert two_epochs(1) == two_epochs(1)
    assert two_epochs(1) != two_epochs(2)


def test_unknown_label():
    with pytest.raises(DataError, match="'odd'"):
        classification_dataset(examples_of(4), pack, ("even", "other"), batch_size=2)


@pytest.mark.parametrize(
    "count, arguments, message",
    [
        (3, {"batch_size": 0}, "batch_size must be at least 1. Received: batch_size=0"),
        (0, {"batch_size": 2}, "at least one batch. Received: 0 examples"),
        (3, {"batch_size": 4, "drop_remainder": True}, "at least one batch. Received: 3 examples, batch_size=4"),
    ],
)
def test_no_batch(count, arguments, message):
    with pytest.raises(ValueError, match=message):
        classification_dataset(examples_of(count), pack, CLASSES, **arguments)


class WhitespacePacker:
    sequence_length = 5
    max_sequence_length = 8

    def tokenizer(self, texts):
        return tf.strings.split(texts)


def test_truncated_texts_are_counted():
    # FC09
    texts = ["a b c", "a b c d", "", "a " * 200_000]
    packer = WhitespacePacker()
    assert count_truncated(Examples(texts, ["x"] * 4), packer) == 2
    packer.sequence_length = None
    assert count_truncated(Examples(texts, ["x"] * 4), packer) == 1


@pytest.mark.parametrize("sequence_length, widths", [(6, [6, 6]), (None, [8, 4])])
def test_with_the_packer_and_a_huge_text(sequence_length, widths):
    # FC09: the long text is truncated and counted as truncated.
    tokenizer = BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word", "other"])
    packer = BertPacker(tokenizer, sequence_length, max_sequence_length=8)
    examples = Examples(["word", "word " * 40_000, "", "other word"], ["b", "a", "b", "a"])
    batches = list(classification_dataset(examples, packer, ("a", "b"), batch_size=2))
    words = [inputs["input_word_ids"].numpy().tolist() for inputs, _ in batches]
    assert [len(rows[0]) for rows in words] == widths
    assert words[0][1] == [2] + [5] * (widths[0] - 2) + [3]
    assert words[1] == [[2, 3] + [0] * (widths[1] - 2), [2, 6, 5, 3] + [0] * (widths[1] - 4)]
    assert [labels.numpy().tolist() for _, labels in batches] == [[1, 0], [1, 0]]
    assert count_truncated(examples, packer) == 1
    assert count_tokens(examples, packer, batch_size=3).tolist() == [3, 40_002, 2, 4]
