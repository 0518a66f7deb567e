"""Checkpoints: a resumed run is bit-identical, damaged ones are passed over, faults of the disk lose nothing."""

import json
import logging
import math
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf
from training_models import token_data, token_model

from keras_bert_kit import BertClassifier, BertConfig, BertEncoder
from keras_bert_kit.data import ShuffledBatches
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.training import AdamW, CrossEntropy, Trainer, create_optimizer, make_strategy
from keras_bert_kit.training import checkpoint as checkpoint_module

DATA = token_data(43)
# Runs here are cut short on purpose, to go on from a checkpoint.
pytestmark = pytest.mark.filterwarnings("ignore:num_train_steps of the schedule and the steps of the run")


def trainer_of(replicas=1, **options):
    strategy = make_strategy("mirrored", replicas) if replicas > 1 else make_strategy("cpu")
    with strategy.scope():
        optimizer = create_optimizer(1e-2, num_train_steps=20, num_warmup_steps=2)
        return Trainer(token_model(dropout=0.3), optimizer, CrossEntropy(), strategy=strategy, seed=5, **options)


def train_batches(batch_size=8):
    arrays = tuple(map(tf.constant, DATA))
    return ShuffledBatches(43, batch_size, lambda rows: tuple(tf.gather(array, rows) for array in arrays), seed=3)


def held_out():
    return tf.data.Dataset.from_tensor_slices(token_data(9, seed=1)).batch(4)


def state_of(trainer):
    """The bytes of all weights and moments."""
    return [variable.numpy().tobytes() for variable in (*trainer.model.weights, *trainer.optimizer.variables)]


def straight_run(folder, steps=17, **options):
    trainer = trainer_of()
    trainer.fit(
        train_batches(), steps, validation_dataset=held_out(), validate_every=4, checkpoint_dir=folder, **options
    )
    return trainer


def test_a_resumed_run_is_bit_identical(tmp_path):
    whole = straight_run(tmp_path / "whole")
    for steps in (1, 7, 8, 12, 17):  # a new process each time, as far as the trainer can tell
        resumed = trainer_of()
        resumed.fit(
            train_batches(),
            steps,
            validation_dataset=held_out() if steps == 17 or steps % 4 == 0 else None,
            validate_every=4,
            checkpoint_dir=tmp_path / "parts",
        )
    assert state_of(resumed) == state_of(whole)
    log, expected = ((tmp_path / run / "log.jsonl").read_bytes() for run in ("parts", "whole"))
    steps_of = lambda text: [line for line in text.splitlines() if b"validation" not in line]  # noqa: E731
    assert steps_of(log) == steps_of(expected)


def shuffled():
    """Six batches an epoch, by `tf.data`, which draws another order each time that the data is begun."""
    return tf.data.Dataset.from_tensor_slices(DATA).shuffle(43, seed=1).batch(8)


def test_a_resumed_run_over_a_shuffled_dataset_is_bit_identical(tmp_path):
    options = dict(validation_dataset=held_out(), validate_every=4)
    whole, resumed = trainer_of(), None
    whole.fit(shuffled(), 20, checkpoint_dir=tmp_path / "whole", **options)
    for steps in (5, 12, 20):  # across the ends of epochs, 6 and 18
        resumed = trainer_of()
        resumed.fit(shuffled(), steps, checkpoint_dir=tmp_path / "parts", **options if steps != 5 else {})
    assert state_of(resumed) == state_of(whole)


def test_two_runs_with_one_seed_write_the_same_bytes(tmp_path):
    first, second = straight_run(tmp_path / "a"), straight_run(tmp_path / "b")
    assert state_of(first) == state_of(second)
    for name in ("log.jsonl", "step-00000017/variables.safetensors", "step-00000017/state.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_a_run_goes_on_with_another_number_of_replicas(tmp_path):
    straight_run(tmp_path / "one", steps=9)
    two, one = trainer_of(2), trainer_of()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for trainer, folder in ((one, "one"), (two, "two")):
        trainer.model.layers[1].rate = 0.0  # replicas draw masks of their own; without dropout they agree
        trainer.fit(train_batches(), 17, checkpoint_dir=tmp_path / folder)
    for ours, theirs in zip(one.model.weights, two.model.weights, strict=True):
        np.testing.assert_allclose(theirs.numpy(), ours.numpy(), atol=1e-5)


def plain_batches(batch_size, drop_remainder=False):
    return tf.data.Dataset.from_tensor_slices(DATA).batch(batch_size, drop_remainder)


BATCHES = [
    (train_batches, "batch_size=16, steps_per_epoch=3, and in the checkpoint batch_size=8, steps_per_epoch=6"),
    (plain_batches, "batch_size=16, steps_per_epoch=3, and in the checkpoint batch_size=8, steps_per_epoch=6"),
    (lambda size: plain_batches(size, True).repeat(), "batch_size=16, and in the checkpoint batch_size=8"),
]


@pytest.mark.parametrize(("data", "received"), BATCHES, ids=["shuffled", "dataset", "endless"])
def test_another_batch_size_is_refused(tmp_path, data, received):
    trainer_of().fit(data(8), 4, checkpoint_dir=tmp_path)
    trainer = trainer_of()
    with pytest.raises(CheckpointError, match=rf"would be repeated and left out. Received: {received}. Use the former"):
        trainer.fit(data(16), 7, checkpoint_dir=tmp_path)
    trainer.fit(data(8), 5, checkpoint_dir=tmp_path)
    trainer.fit(data(8), 7, checkpoint_dir=tmp_path)  # the sixth batch is the short one


def test_a_batch_size_of_numpy_can_be_saved(tmp_path):
    trainer_of().fit(train_batches(np.int64(8)), 2, checkpoint_dir=tmp_path)
    assert json.loads((tmp_path / "step-00000002" / "state.json").read_text())["state"]["batch_size"] == 8


def test_a_checkpoint_that_knows_no_batch_size_goes_on(tmp_path):
    trainer_of().fit(plain_batches(8), 4, checkpoint_dir=tmp_path)
    path = tmp_path / "step-00000004" / "state.json"
    content = json.loads(path.read_text())
    assert content["state"].pop("batch_size") == 8 and content["state"].pop("steps_per_epoch") == 6
    path.write_text(json.dumps(content))
    assert trainer_of().fit(plain_batches(8), 5, checkpoint_dir=tmp_path).step == 5
    with pytest.raises(CheckpointError, match="steps_per_epoch=11, and in the checkpoint batch_size=8"):
        trainer_of().fit(plain_batches(4), 7, checkpoint_dir=tmp_path)


def test_only_the_newest_are_kept_and_the_best(tmp_path):
    trainer = trainer_of()
    history = trainer.fit(
        train_batches(),
        12,
        validation_dataset=held_out(),
        validate_every=3,
        monitor="accuracy",
        checkpoint_dir=tmp_path,
        save_every=2,
        keep_last=3,
    )
    names = sorted(path.name for path in tmp_path.iterdir())
    steps = [f"step-{step:08d}" for step in (8, 10, 12)]
    assert names == [f"best-{history.best_step:08d}", "log.jsonl", *steps, "tensorboard"]
    assert history.best == max(results["accuracy"] for _, results in history.validations)
    assert len(history.validations) == 4


def test_a_run_without_progress_ends_early(tmp_path):
    strategy = make_strategy("cpu")
    with strategy.scope():
        trainer = Trainer(token_model(), keras.optimizers.SGD(0.0), CrossEntropy(), strategy=strategy)
    history = trainer.fit(train_batches(), 100, validation_dataset=held_out(), validate_every=2, patience=3)
    assert history.step == 8 and history.best_step == 2  # the first evaluation is the best; three bring nothing new


class Failing:
    """An evaluation that fails after so many calls, and may give results made up before."""

    def __init__(self, results):
        self.results = iter(results)

    def __call__(self, dataset):
        if int(dataset.cardinality()) == 1:  # the look before the first step
            return {"loss": 1.0, "accuracy": 0.0}
        result = next(self.results)
        if isinstance(result, Exception):
            raise result
        return {"loss": result, "accuracy": 0.0}


def trainer_with(results):
    trainer = trainer_of()
    trainer._evaluator = Failing(results)
    return trainer


@pytest.mark.parametrize("folder", [None, "run"])
@pytest.mark.parametrize("ends", ["by patience", "after its last step"])
def test_the_model_holds_the_best_weights_if_asked(tmp_path, folder, ends):
    options = dict(validation_dataset=held_out(), validate_every=2)
    best = trainer_of()
    best.fit(train_batches(), 4)
    trainer = trainer_with([2.0, 1.0, 3.0, 4.0, 5.0])
    options |= dict(patience=2) if ends == "by patience" else {}
    history = trainer.fit(
        train_batches(), 10, restore_best=True, checkpoint_dir=folder and tmp_path / folder, **options
    )
    assert (history.step, history.best, history.best_step) == (8 if "patience" in options else 10, 1.0, 4)
    assert state_of(trainer)[:2] == state_of(best)[:2] != state_of(trainer_of())[:2]


def test_the_best_weights_can_be_had_later(tmp_path):
    best, last, later = trainer_of(), trainer_with([2.0, 1.0, 3.0]), trainer_of()
    best.fit(train_batches(), 4)
    options = dict(validation_dataset=held_out(), validate_every=2, patience=1, checkpoint_dir=tmp_path)
    last.fit(train_batches(), 10, **options)
    assert state_of(last)[:2] != state_of(best)[:2]
    before = state_of(later)
    assert later.restore_best(tmp_path) == 4
    assert state_of(later)[:2] == state_of(best)[:2] and state_of(later)[2:] == before[2:]
    again = trainer_of()
    assert again.fit(train_batches(), 10, restore_best=True, **options).step == 6  # it ended before, by patience
    assert state_of(again)[:2] == state_of(best)[:2]
    with pytest.raises(CheckpointError, match="must hold the checkpoint of a best evaluation. Received: .*nowhere"):
        later.restore_best(tmp_path / "nowhere")


def test_a_result_that_is_no_number_is_not_the_best(tmp_path):
    trainer = trainer_with([math.nan, 2.0, math.nan, 1.0])
    options = dict(validation_dataset=held_out(), validate_every=1, checkpoint_dir=tmp_path)
    history = trainer.fit(train_batches(), 4, **options)
    assert (history.best, history.best_step) == (1.0, 4)


def test_an_evaluation_that_fails_loses_no_step_and_is_made_up_for(tmp_path):
    straight_run(tmp_path / "whole", steps=8, save_every=4)
    options = dict(validation_dataset=held_out(), validate_every=4, save_every=4, checkpoint_dir=tmp_path / "parts")
    with pytest.raises(OSError, match="gone"):
        trainer_with([OSError("gone")]).fit(train_batches(), 8, **options)
    assert [path.name for path in (tmp_path / "parts").glob("step-*")] == ["step-00000004"]
    trainer_of().fit(train_batches(), 8, **options)
    for name in ("log.jsonl", "step-00000008/variables.safetensors", "step-00000008/state.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_run_that_was_killed_after_it_logged_an_evaluation_logs_it_once(tmp_path):
    trainer_of().fit(train_batches(), 8, validation_dataset=held_out(), checkpoint_dir=tmp_path)
    path, log = tmp_path / "step-00000008" / "state.json", (tmp_path / "log.jsonl").read_bytes()
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"state": content["state"] | {"to_validate": True}}))
    trainer_of().fit(train_batches(), 8, validation_dataset=held_out(), checkpoint_dir=tmp_path)
    assert (tmp_path / "log.jsonl").read_bytes() == log
    assert json.loads(path.read_text())["state"]["to_validate"] is False


def damage(folder):
    path = folder / "variables.safetensors"
    content = bytearray(path.read_bytes())
    content[-7] ^= 1
    path.write_bytes(content)


def test_a_damaged_checkpoint_falls_back_loudly(tmp_path, caplog):
    straight_run(tmp_path / "good", save_every=5)
    shutil.copytree(tmp_path / "good", tmp_path / "bad")
    damage(tmp_path / "bad" / "step-00000017")
    trainer = trainer_of()
    with caplog.at_level(logging.WARNING):
        trainer.fit(train_batches(), 17, checkpoint_dir=tmp_path / "bad")
    assert "step-00000017" in caplog.text and "checksum differs" in caplog.text
    assert state_of(trainer) == state_of(straight_run(tmp_path / "again"))  # from step 15 once more
    assert (tmp_path / "bad" / "damaged-step-00000017").is_dir()
    name = "step-00000017/variables.safetensors"
    assert (tmp_path / "bad" / name).read_bytes() == (tmp_path / "good" / name).read_bytes()


@pytest.mark.parametrize("name", ["variables.safetensors", "state.json"])
@pytest.mark.parametrize("content", [b"", b"{}", None])
def test_only_damaged_checkpoints_are_an_error(tmp_path, name, content):
    trainer_of().fit(train_batches(), 2, checkpoint_dir=tmp_path)
    path = tmp_path / "step-00000002" / name
    path.unlink() if content is None else path.write_bytes(content)
    trainer = trainer_of()
    before = state_of(trainer)
    with pytest.raises(CheckpointError, match="must be whole. All are damaged"):
        trainer.fit(train_batches(), 4, checkpoint_dir=tmp_path)
    assert state_of(trainer) == before


def test_another_model_is_refused_before_anything_changes(tmp_path):
    trainer_of().fit(train_batches(), 2, checkpoint_dir=tmp_path)
    other = Trainer(token_model(), keras.optimizers.SGD(0.1), CrossEntropy())
    before = state_of(other)
    with pytest.raises(CheckpointError, match="can only go on with the model and the optimizer that it began with"):
        other.fit(train_batches(), 4, checkpoint_dir=tmp_path)
    assert state_of(other) == before


def test_what_a_kill_left_behind_is_removed(tmp_path):
    (tmp_path / ".tmp-step-00000003-abc").mkdir(parents=True)
    (tmp_path / ".tmp-step-00000003-abc" / "variables.safetensors").write_bytes(b"half")
    trainer_of().fit(train_batches(), 2, checkpoint_dir=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.jsonl", "step-00000002", "tensorboard"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")])
def test_a_fault_of_the_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch, error):
    trainer_of().fit(train_batches(), 4, checkpoint_dir=tmp_path)

    def short_write(arrays, path):
        path.write_bytes(b"only a part")
        raise error

    monkeypatch.setattr(checkpoint_module, "save_file", short_write)
    with pytest.raises(OSError, match=error.strerror):
        trainer_of().fit(train_batches(), 8, checkpoint_dir=tmp_path)
    monkeypatch.undo()
    resumed, whole = trainer_of(), trainer_of()
    resumed.fit(train_batches(), 8, checkpoint_dir=tmp_path)
    whole.fit(train_batches(), 8, checkpoint_dir=tmp_path / "other")
    assert state_of(resumed) == state_of(whole)


def test_the_loss_scale_is_saved(tmp_path):
    def half():
        return Trainer(token_model(dtype="mixed_float16"), AdamW(1e-2), CrossEntropy())

    first, second = half(), half()
    first.step.loss_scale.value.assign(4.0)
    first.fit(train_batches(), 3, checkpoint_dir=tmp_path)
    second.fit(train_batches(), 3, checkpoint_dir=tmp_path)
    assert float(second.step.loss_scale.value) == 4.0 and int(second.step.loss_scale.good_steps) == 3


def test_scalars_for_tensorboard(tmp_path):
    history = trainer_of().fit(train_batches(), 5, validation_dataset=held_out(), checkpoint_dir=tmp_path)
    (path,) = (tmp_path / "tensorboard").iterdir()
    found = {}
    for record in tf.data.TFRecordDataset(str(path)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            assert value.metadata.plugin_data.plugin_name in ("scalars", "")
            found.setdefault(value.tag, []).append((event.step, float(tf.make_ndarray(value.tensor))))
    losses = [(record["step"], record["loss"]) for record in history.records if "loss" in record]
    assert found["train/loss"] == losses and len(losses) == 5
    assert found["validation/accuracy"] == [(5, pytest.approx(history.validations[0][1]["accuracy"]))]


@pytest.mark.slow
def test_two_runs_of_a_bert_over_200_steps_write_the_same_bytes(tmp_path):
    """With dropout, clipping, batches of many lengths, both cores at work."""
    sizes = dict(vocab_size=200, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128)
    rng = np.random.default_rng(0)
    ids = tf.constant(rng.integers(5, 200, (500, 40)).astype("int32"))
    lengths = tf.constant(rng.integers(3, 41, 500).astype("int32"))
    labels = tf.constant(rng.integers(0, 4, 500).astype("int32"))

    def batch_at(rows):
        mask = tf.sequence_mask(tf.gather(lengths, rows), dtype=tf.int32)
        words = tf.gather(ids, rows)[:, : tf.shape(mask)[1]] * mask
        inputs = {"input_word_ids": words, "input_mask": mask, "input_type_ids": tf.zeros_like(mask)}
        return inputs, tf.gather(labels, rows)

    for name in ("a", "b"):
        keras.utils.set_random_seed(0)
        model = BertClassifier(BertEncoder(BertConfig(**sizes)), 4)
        trainer = Trainer(model, create_optimizer(1e-3, 200, 20), CrossEntropy(), seed=1)
        trainer.fit(ShuffledBatches(500, 16, batch_at, seed=2, lengths=lengths), 200, checkpoint_dir=tmp_path / name)
    for file in ("log.jsonl", "step-00000200/variables.safetensors", "step-00000200/state.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file
