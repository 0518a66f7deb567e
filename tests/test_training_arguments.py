"""What `Trainer`, `fit` and `evaluate` refuse, and that they do so before anything is trained."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from training_models import LENGTH, batches, token_data, token_model

from keras_bert_kit.data import ShuffledBatches
from keras_bert_kit.errors import DataError, TrainingError
from keras_bert_kit.training import AdamW, CrossEntropy, Trainer, create_optimizer, make_strategy

INPUTS, LABELS = token_data(12)
ENDLESS = ShuffledBatches(12, 4, lambda rows: (tf.gather(INPUTS, rows), tf.gather(LABELS, rows)))


def good():
    return batches(INPUTS, LABELS, 4)


def refused(error, message, trainer=None, **arguments):
    """Checks that `fit` with these arguments raises the error, and that no weight has changed."""
    trainer = trainer or Trainer(token_model(), AdamW(1e-2), CrossEntropy())
    before = [weight.numpy() for weight in trainer.model.weights]
    with pytest.raises(error, match=message):
        trainer.fit(**(dict(train_dataset=good(), steps=3) | arguments))
    for weight, value in zip(trainer.model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


@pytest.mark.parametrize(
    ("wrong", "received"),
    [
        (dict(model="bert"), "model='bert'"),
        (dict(optimizer="adam"), "optimizer='adam'"),
        (dict(optimizer=None, loss="mse"), "optimizer=None, loss='mse'"),
        (dict(loss=keras.losses.SparseCategoricalCrossentropy()), "loss=<LossFunctionWrapper"),
        (dict(loss=CrossEntropy), "loss=<class"),
    ],
)
def test_names_and_other_kinds_of_objects_are_refused(wrong, received):
    arguments = dict(model=token_model(), optimizer=AdamW(1e-2), loss=CrossEntropy()) | wrong
    with pytest.raises(ValueError, match=f"Trainer needs objects: .*CrossEntropy.*Received: {received}"):
        Trainer(**arguments)


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.optimizers.SGD(0.1, clipnorm=1.0),
        lambda: keras.optimizers.SGD(0.1, clipvalue=1.0),
        lambda: keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
        lambda: keras.optimizers.SGD(0.1, global_clipnorm=-1.0),
        lambda: AdamW(0.1, use_ema=True),
        lambda: AdamW(0.1, loss_scale_factor=1024.0),
        lambda: keras.optimizers.LossScaleOptimizer(AdamW(0.1)),
    ],
    ids=["clipnorm", "clipvalue", "accumulation", "global_clipnorm", "ema", "loss_scale_factor", "LossScaleOptimizer"],
)
def test_an_optimizer_that_does_by_itself_what_the_trainer_does_is_refused(make, request):
    name = request.node.callspec.id.replace("accumulation", "gradient_accumulation_steps").replace("ema", "use_ema")
    with pytest.raises(ValueError, match=f"may clip by global_clipnorm only, above 0.* Received: .*{name}"):
        Trainer(token_model(), make(), CrossEntropy())


@pytest.mark.parametrize("outside", ["model", "optimizer"])
def test_what_was_made_outside_of_the_scope_is_refused(outside):
    strategy = make_strategy("mirrored", 2)
    make = {"model": token_model, "optimizer": lambda: AdamW(1e-2)}
    made = {outside: make[outside]()}
    with strategy.scope():
        made |= {name: make[name]() for name in make if name != outside}
    with pytest.raises(ValueError, match=f"The {outside} must be made in the scope of the strategy"):
        Trainer(**made, loss=CrossEntropy(), strategy=strategy)


@pytest.mark.parametrize(
    "arguments",
    [
        dict(steps=64 / 24),
        dict(steps=0),
        dict(steps=None),
        dict(validate_every=-5),
        dict(save_every=0),
        dict(patience=0),
    ],
    ids=str,
)
def test_counts_that_are_none_are_refused(arguments):
    (name,) = arguments
    options = dict(validation_dataset=good()) | arguments
    refused(ValueError, f"{name} must be a whole number, 1 or more. Received: {name}=", **options)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((INPUTS, LABELS), "of batches .* Received: tuple. .*from_tensor_slices"),
        (5, "Received: int"),
        (tf.data.Dataset.from_tensor_slices((INPUTS, LABELS, LABELS)).batch(4), "tuples of 3. Of sample weights only"),
        (tf.data.Dataset.from_tensor_slices(INPUTS).batch(4), "single elements, TensorSpec"),
        (tf.data.Dataset.from_tensor_slices((INPUTS, LABELS[:, 0])), r"no batches, .* Add .batch\(32\)"),
    ],
    ids=["arrays", "int", "weights", "inputs", "examples"],
)
def test_data_of_another_kind_is_refused(data, message):
    refused(ValueError, f"train_dataset must be .*{message}", train_dataset=data)
    refused(ValueError, f"validation_dataset must be .*{message}", validation_dataset=data)
    with pytest.raises(ValueError, match=f"dataset must be .*{message}"):
        Trainer(token_model(), AdamW(1e-2), CrossEntropy()).evaluate(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (ENDLESS, "validation_dataset must be a tf.data.Dataset of .* Received: ShuffledBatches"),
        (good().repeat(), "that ends. Received: one without end. Leave .repeat"),
    ],
    ids=["ShuffledBatches", "repeat"],
)
def test_an_evaluation_without_end_is_refused(data, message):
    refused(ValueError, message, validation_dataset=data)


def test_data_without_a_batch_is_refused(tmp_path):
    for nothing in (good().take(0), tf.data.Dataset.from_tensor_slices((INPUTS, LABELS)).batch(100, True)):
        refused(DataError, "at least one batch. Received: an empty data set", train_dataset=nothing)
        refused(DataError, "at least one batch", validation_dataset=nothing, checkpoint_dir=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [dict(monitor="loss"), dict(patience=2), dict(restore_best=True)], ids=str)
def test_what_needs_evaluations_is_refused_without_them(options):
    refused(ValueError, r"need a validation_dataset. Received: \w+=.*, without one", **options)


def test_an_unknown_result_to_monitor_is_refused_before_the_first_step(tmp_path):
    options = dict(validation_dataset=good(), monitor="acc", checkpoint_dir=tmp_path)
    refused(ValueError, "monitor must be one of loss, accuracy. Received: monitor='acc'", **options)
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_the_checkpoints_is_refused(tmp_path):
    (tmp_path / "run").write_text("a file")
    refused(NotADirectoryError, "a file is at", checkpoint_dir=tmp_path / "run")


def test_a_model_with_losses_of_its_own_is_refused():
    inputs = keras.Input((LENGTH, 5))
    model = keras.Model(inputs, keras.layers.Dense(3, kernel_regularizer="l2")(inputs))
    trainer = Trainer(model, create_optimizer(1e-2, 3, 0), CrossEntropy())
    refused(TrainingError, "must not add losses of its own. Received: 1 in model.losses", trainer)


@pytest.mark.parametrize("lengths", [range(20), range(90), np.ones((64, 1), "int32")], ids=["few", "many", "column"])
def test_lengths_of_other_examples_are_refused(lengths):
    with pytest.raises(
        ValueError, match=r"one number for each example. Received: lengths of shape \(.*num_examples=64"
    ):
        ShuffledBatches(64, 8, lambda rows: rows, lengths=lengths)
