"""Batches of pre-training data: every row once an epoch, exact from any position, masks of their own each time."""

import collections
import itertools

import numpy as np
import pretraining_corpus as corpus
import pytest
import tensorflow as tf

from keras_bert_kit.data import PretrainingBatches, pretraining_batches, write_pretraining_data
from keras_bert_kit.training.distribution import share_batches

BATCH_SIZE = 16
FORMS = {
    "dynamic": {},
    "static": {"masking": "static", "dupe_factor": 1},
    "packed": {"packed": True},
    "packed static": {"packed": True, "masking": "static", "dupe_factor": 1},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{form of the data: folder}, each with several shards; short sequences are many, to be packed."""
    folder = tmp_path_factory.mktemp("data") / corpus.FOLDER
    source = corpus.write_corpus(folder / "text.txt")
    for form, changes in FORMS.items():
        settings = corpus.settings(short_seq_prob=0.6, **changes)
        write_pretraining_data(source, corpus.tokenizer(), folder / form, settings, 1, report=lambda line: None)
    return {form: folder / form for form in FORMS}


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Two shards a group, so that the few here make several."""
    monkeypatch.setattr(pretraining_batches, "_GROUP_SHARDS", 2)


def batches_of(folders, form="dynamic", **options):
    return PretrainingBatches(folders[form], BATCH_SIZE, **options)


def arrays(dataset, count=None):
    """The first batches as dictionaries of arrays, inputs and labels together."""
    return [
        {name: np.array(tensor) for name, tensor in (inputs | labels).items()}
        for inputs, labels in itertools.islice(dataset, count)
    ]


def rows_of(batch):
    """The rows of a batch as they were before masking: hashable."""
    ids = batch["input_word_ids"].copy()
    row, place = np.nonzero(batch["mlm_logits"] != -100)
    ids[row, batch["masked_lm_positions"][row, place]] = batch["mlm_logits"][row, place]
    for number, length in enumerate(batch["input_mask"].sum(axis=1)):
        types = batch["input_type_ids"][number, :length]
        yield tuple(ids[number, :length]), tuple(types), tuple(np.atleast_1d(batch["nsp_logits"][number]))


def all_rows(batches):
    """A list of the rows of many batches; labels of packed rows without filler."""
    rows = [row for batch in batches for row in rows_of(batch)]
    return [(ids, types, tuple(label for label in labels if label != -100)) for ids, types, labels in rows]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def records_of(folder):
    """What is in the shards, read without our code: list of {feature: list of int}."""
    paths = sorted(map(str, folder.glob("*.tfrecord.gz")))
    examples = (tf.train.Example.FromString(record.numpy()) for record in tf.data.TFRecordDataset(paths, "GZIP"))
    return [{name: list(f.int64_list.value) for name, f in example.features.feature.items()} for example in examples]


def original_rows(records):
    """The rows of records before masking, as `all_rows` gives them."""
    for record in records:
        ids = record["input_ids"]
        for place, token in zip(record.get("masked_lm_positions", []), record.get("masked_lm_ids", []), strict=True):
            ids[place] = token
    return [
        tuple(tuple(record[name]) for name in ("input_ids", "segment_ids", "next_sentence_labels"))
        for record in records
    ]


@pytest.mark.parametrize(
    ("form", "static_shapes"), [("dynamic", False), ("static", False), ("packed", False), ("packed static", True)]
)
def test_every_epoch_has_every_row_once_in_another_order(folders, form, static_shapes):
    batches = batches_of(folders, form, static_shapes=static_shapes)
    count = batches.num_examples
    found = arrays(batches.batches_from(0), -(-3 * count // BATCH_SIZE))
    assert all(len(batch["input_word_ids"]) == BATCH_SIZE for batch in found)
    rows = all_rows(found)
    expected = collections.Counter(original_rows(records_of(folders[form])))
    epochs = [rows[start : start + count] for start in (0, count, 2 * count)]
    assert all(collections.Counter(epoch) == expected for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert batches.steps_per_epoch == -(-count // BATCH_SIZE)


@pytest.mark.parametrize("packed", [False, True])
def test_a_block_without_a_row_is_passed_over(tmp_path, monkeypatch, packed):
    monkeypatch.setattr(pretraining_batches, "_GROUP_SHARDS", 1)
    corpus.write_corpus(tmp_path / "text.txt", num_documents=4)
    with open(tmp_path / "text.txt", "a", encoding="utf-8") as file:
        file.write("\n\u200b\n\n\u200b\n")  # two documents of a character that makes no token
    made = (tmp_path / "text.txt", corpus.tokenizer(), tmp_path / "out", corpus.settings(packed=packed, block_bytes=1))
    write_pretraining_data(*made, 1, report=lambda line: None)
    batches = PretrainingBatches(tmp_path / "out", 4)
    count = batches.num_examples
    rows = all_rows(arrays(batches.batches_from(0), count))  # four epochs, and one of the three shards is empty
    assert len(records_of(tmp_path / "out")) == count
    assert collections.Counter(rows) == {row: 4 * n for row, n in collections.Counter(rows[:count]).items()}


def test_another_seed_is_another_order(folders):
    one, two = (all_rows(arrays(batches_of(folders, seed=seed).batches_from(0), 3)) for seed in (0, 1))
    assert one != two


def assert_going_on_gives_the_rest(folders, form, static_shapes, numbers):
    """From each batch on, a new run gives the batches of the straight run."""
    batches = batches_of(folders, form, static_shapes=static_shapes)
    straight = arrays(batches.batches_from(0), max(numbers) + 2)
    for number in numbers:
        again = batches_of(folders, form, static_shapes=static_shapes)
        assert_same(arrays(again.batches_from(number * BATCH_SIZE), 2), straight[number : number + 2])


@pytest.mark.parametrize(("form", "static_shapes"), [("dynamic", False), ("packed", True)])
def test_going_on_from_a_position_gives_the_batches_of_the_straight_run(folders, form, static_shapes):
    steps = batches_of(folders, form).steps_per_epoch
    assert_going_on_gives_the_rest(folders, form, static_shapes, (1, steps // 2, steps - 1, steps, 2 * steps))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "static_shapes"), [("dynamic", False), ("static", True), ("packed", False), ("packed static", True)]
)
def test_going_on_from_every_position(folders, form, static_shapes):
    steps = batches_of(folders, form).steps_per_epoch
    assert_going_on_gives_the_rest(folders, form, static_shapes, range(2 * steps + 2))


@pytest.mark.parametrize("rest", [1, 15])
def test_a_position_within_a_batch_gives_the_rest_of_it_first(folders, rest):
    batches = batches_of(folders)
    position = batches.num_examples - 40
    position += -(position + rest) % BATCH_SIZE
    straight = all_rows(arrays(batches.batches_from(0), position // BATCH_SIZE + 4))
    found = arrays(batches.batches_from(position), 3)
    assert [len(batch["input_word_ids"]) for batch in found] == [rest, BATCH_SIZE, BATCH_SIZE]
    assert all_rows(found) == straight[position : position + rest + 2 * BATCH_SIZE]


def test_only_the_shards_that_are_needed_are_read(folders, monkeypatch):
    """In an epoch with a damaged first group, a run that goes on behind it never meets the damage."""
    batches = batches_of(folders)
    order = pretraining_batches.permuted(len(batches._paths), batches.seed + 2, 0).numpy()
    seen = sum(batches._rows.numpy()[order[:2]].tolist())
    for shard in order[:2]:
        batches._paths[shard] = "gone"
    position = -(-seen // BATCH_SIZE) * BATCH_SIZE
    assert len(arrays(batches.batches_from(position), 2)) == 2
    with pytest.raises(tf.errors.NotFoundError):
        arrays(batches.batches_from(0), 1)


def test_dynamic_masks_differ_between_epochs_and_not_between_runs(folders):
    batches = batches_of(folders)
    steps = -(-2 * batches.num_examples // BATCH_SIZE)
    straight = arrays(batches.batches_from(0), steps)
    assert_same(arrays(batches_of(folders).batches_from(0), steps), straight)
    masks = collections.defaultdict(list)
    for batch in straight:
        for row, (ids, *_) in enumerate(rows_of(batch)):
            masks[ids].append(tuple(batch["masked_lm_positions"][row, batch["mlm_logits"][row] != -100]))
    long = [found for ids, found in masks.items() if len(ids) == 32 and len(found) == 2]
    assert len(long) > 30 and np.mean([first == second for first, second in long]) < 0.05


def test_static_masks_are_those_in_the_data(folders):
    records = records_of(folders["static"])
    names = ("input_ids", "masked_lm_positions", "masked_lm_ids", "segment_ids", "next_sentence_labels")
    expected = collections.Counter(tuple(tuple(record[name]) for name in names) for record in records)
    batches, found = batches_of(folders, "static"), collections.Counter()
    for batch in arrays(batches.once()):
        for row, length in enumerate(batch["input_mask"].sum(axis=1)):
            masked = batch["mlm_logits"][row] != -100
            positions = batch["masked_lm_positions"][row]
            assert not positions[~masked].any() and not batch["input_word_ids"][row, length:].any()
            ids, types = (batch[name][row, :length] for name in ("input_word_ids", "input_type_ids"))
            values = (
                ids,
                positions[masked],
                batch["mlm_logits"][row, masked],
                types,
                batch["nsp_logits"][row : row + 1],
            )
            found[tuple(tuple(value.tolist()) for value in values)] += 1
    assert found == expected


@pytest.mark.parametrize("static_shapes", [False, True])
def test_packed_rows_say_where_their_sequences_are(folders, static_shapes):
    batches = batches_of(folders, "packed", static_shapes=static_shapes)
    assert batches.num_sequences > batches.num_examples
    cls_id, most = batches.tokenizer.cls_id, 0
    for batch in arrays(batches.once()):
        for row, sequence_ids in enumerate(batch["input_sequence_ids"]):
            np.testing.assert_array_equal(sequence_ids > 0, batch["input_mask"][row])
            starts = np.nonzero(np.diff(sequence_ids, prepend=0) > 0)[0]
            labels, positions = batch["nsp_logits"][row], batch["next_sentence_positions"][row]
            assert positions[labels != -100].tolist() == starts.tolist() and not positions[labels == -100].any()
            assert set(labels[: len(starts)]) <= {0, 1} and np.all(labels[len(starts) :] == -100)
            assert np.all(batch["input_word_ids"][row, starts] == cls_id)
            # 15 % of each sequence, at least one: never one sequence for another.
            masked = sequence_ids[batch["masked_lm_positions"][row, batch["mlm_logits"][row] != -100]]
            for number in range(1, len(starts) + 1):
                assert np.sum(masked == number) == max(1, round(np.sum(sequence_ids == number) * 0.15))
            most = max(most, len(starts))
    assert most == batches._max_sequences > 1


def test_static_shapes_are_all_the_same(folders):
    for form in FORMS:
        batches = batches_of(folders, form, static_shapes=True)
        inputs, labels = batches.batches_from(0).element_spec
        specs = inputs | labels
        for name in ("input_word_ids", "input_mask", "input_type_ids"):
            assert specs[name].shape == (BATCH_SIZE, 32)
        assert all(spec.shape.is_fully_defined() and spec.dtype == tf.int32 for spec in specs.values())
        assert specs["masked_lm_positions"].shape == specs["mlm_logits"].shape
        assert ("input_sequence_ids" in specs) == ("packed" in form)
        masked = [np.sum(batch["mlm_logits"] != -100, axis=1).max() for batch in arrays(batches.once())]
        assert max(masked) <= specs["mlm_logits"].shape[1] < 12


def test_rows_of_similar_length_share_a_batch(folders, monkeypatch):
    def padding_share(dataset):
        found = [batch["input_mask"] for batch in arrays(dataset, 100)]
        return 1 - sum(mask.sum() for mask in found) / sum(mask.size for mask in found)

    monkeypatch.setattr(pretraining_batches, "_GROUP_SHARDS", 8)
    batches = PretrainingBatches(folders["dynamic"], 2)
    assert padding_share(batches.batches_from(0)) < 0.3 * padding_share(batches.once(8))


def test_a_pass_for_evaluation_is_finite_and_always_the_same(folders):
    batches = batches_of(folders)
    dataset = batches.once(10)
    found = arrays(dataset)
    assert_same(arrays(dataset), found)
    assert_same(arrays(batches_of(folders).once(10)), found)
    assert [len(batch["nsp_logits"]) for batch in found[:-1]] == [10] * (batches.num_examples // 10)
    assert collections.Counter(all_rows(found)) == collections.Counter(original_rows(records_of(folders["dynamic"])))


def test_two_replicas_share_the_batches_of_one(folders):
    straight = arrays(batches_of(folders, "packed").batches_from(0), 3)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    shared_out = iter(share_batches(batches_of(folders, "packed").batches_from(0), strategy))
    for expected in straight:
        inputs, labels = next(shared_out)
        for name, value in (inputs | labels).items():
            joined = np.concatenate([np.array(part) for part in strategy.experimental_local_results(value)])
            np.testing.assert_array_equal(joined, expected[name])


def test_the_sense_of_the_labels(folders, tmp_path):
    """0: B follows A. Of sentences that all differ, in order, the document says which do (field case FC37)."""
    sentences = [[f"{a} {b} {c} ." for c in corpus.WORDS[:6]] for a in corpus.WORDS[:8] for b in corpus.WORDS[8:12]]
    (tmp_path / "text.txt").write_text("\n\n".join("\n".join(document) for document in sentences))
    settings = corpus.settings(short_seq_prob=0.0, sequence_length=19)
    made = write_pretraining_data(tmp_path / "text.txt", corpus.tokenizer(), tmp_path / "data", settings, 1, str)
    follows = {
        (batch["input_word_ids"][row, 1:3].tolist() == _second(batch, row)[:2], label)
        for batch in arrays(PretrainingBatches(made.folder, 8).once())
        for batch in [batch | {"input_word_ids": _unmasked(batch)}]
        for row, label in enumerate(batch["nsp_logits"].tolist())
    }
    assert follows == {(True, 0), (False, 1)}


def _unmasked(batch):
    ids = batch["input_word_ids"].copy()
    row, place = np.nonzero(batch["mlm_logits"] != -100)
    ids[row, batch["masked_lm_positions"][row, place]] = batch["mlm_logits"][row, place]
    return ids


def _second(batch, row):
    return batch["input_word_ids"][row][batch["input_type_ids"][row] == 1].tolist()


def test_the_fingerprint_is_that_of_the_data(folders):
    assert batches_of(folders).fingerprint == batches_of(folders, seed=1).fingerprint
    assert batches_of(folders).fingerprint != batches_of(folders, "static").fingerprint


def test_no_rows_a_batch_is_refused(folders):
    with pytest.raises(ValueError, match="batch_size must be 1 or more. Received: batch_size=0"):
        PretrainingBatches(folders["dynamic"], 0)
