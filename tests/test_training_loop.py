"""The loop: against NumPy, one replica against many, with accumulation, short batches and half precision."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from training_models import batches, numpy_sgd, token_data, token_model

from keras_bert_kit.errors import DataError, TrainingError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.training import AdamW, CrossEntropy, Trainer, make_strategy

REPLICAS = (1, 2, 4)


def strategy_of(replicas):
    return make_strategy("mirrored", replicas) if replicas > 1 else make_strategy("cpu")


def run(make_optimizer, replicas=1, steps=20, batch_size=8, data=None, dropout=0.0, dtype="float32", **options):
    """A trained model, its trainer and the history, of 43 examples by default: the last batch holds 3."""
    strategy = strategy_of(replicas)
    with strategy.scope():
        model, optimizer = token_model(dropout, dtype), make_optimizer()
    trainer = Trainer(model, optimizer, CrossEntropy(), strategy=strategy, **options)
    history = trainer.fit(batches(*(data or token_data(43)), batch_size), steps)
    return trainer, history


def sgd():
    return keras.optimizers.SGD(0.5, global_clipnorm=0.2)


def adamw():
    return AdamW(1e-2, global_clipnorm=0.2)


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("accumulation_steps", [1, 2, 4])
def test_sgd_equals_numpy(replicas, accumulation_steps):
    """Unequal counts of targets, a short last batch, clipping active: all as if there were one replica."""
    start = [weight.numpy() for weight in token_model().weights]
    expected, losses, norms = numpy_sgd(start, token_data(43), 8, 20, 0.5, 0.2)
    assert sum(norm > 0.2 for norm in norms) > 5 and sum(norm < 0.2 for norm in norms) > 0
    trainer, history = run(sgd, replicas, accumulation_steps=accumulation_steps)
    np.testing.assert_allclose([record["loss"] for record in history.records], losses, atol=1e-6)
    np.testing.assert_allclose([record["gradient_norm"] for record in history.records], norms, atol=1e-6)
    for weight, value in zip(trainer.model.weights, expected, strict=True):
        np.testing.assert_allclose(weight.numpy(), value, atol=1e-6)


@pytest.mark.parametrize("replicas", REPLICAS[1:])
def test_adamw_on_many_replicas_equals_one(replicas):
    one, many = run(adamw), run(adamw, replicas, accumulation_steps=2)
    for ours, theirs in zip(one[0].model.weights, many[0].model.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-5)
    assert int(many[0].optimizer.iterations.numpy()) == 20


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_batches_smaller_than_the_number_of_replicas(batch_size):
    one, many = run(sgd, batch_size=batch_size), run(sgd, 4, batch_size=batch_size)
    np.testing.assert_allclose(many[0].model.weights[0].numpy(), one[0].model.weights[0].numpy(), atol=1e-6)


def test_a_replica_without_any_target():
    inputs, labels = token_data(8)
    labels[4:] = -100
    one, two = run(sgd, data=(inputs, labels), steps=3), run(sgd, 2, data=(inputs, labels), steps=3)
    np.testing.assert_allclose(two[0].model.weights[0].numpy(), one[0].model.weights[0].numpy(), atol=1e-6)


def test_several_steps_a_call_are_the_same_steps():
    one, several = run(sgd), run(sgd, steps_per_call=7)
    assert several[1].records == one[1].records


@pytest.mark.filterwarnings("ignore:Even though the `tf.config.experimental_run_functions_eagerly` option is set")
def test_steps_that_run_eagerly_are_the_same_steps():
    """As somebody has them who looks for a mistake of their own."""
    losses = [record["loss"] for record in run(sgd)[1].records]
    tf.config.run_functions_eagerly(True)
    try:
        eager = run(sgd)[1].records
    finally:
        tf.config.run_functions_eagerly(False)
    np.testing.assert_allclose([record["loss"] for record in eager], losses, atol=1e-6)


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("num_examples", [103, 101])
def test_evaluation_counts_every_example_once(replicas, num_examples):
    """Batches of 25: the last one holds 3 or 1, fewer than there are replicas."""
    inputs, labels = token_data(num_examples)
    trainer, _ = run(sgd, replicas, steps=1)
    kernel, bias = (weight.numpy().astype("float64") for weight in trainer.model.weights)
    logits = inputs.astype("float64") @ kernel + bias
    there = labels != -100
    log_sums = np.log(np.exp(logits).sum(axis=-1))
    chosen = np.take_along_axis(logits, np.where(there, labels, 0)[..., None], axis=-1)[..., 0]
    results = trainer.evaluate(batches(inputs, labels, 25))
    assert results["accuracy"] == pytest.approx((logits.argmax(-1) == labels)[there].mean(), abs=1e-7)
    assert results["loss"] == pytest.approx((log_sums - chosen)[there].mean(), abs=1e-6)


@pytest.mark.parametrize("replicas", REPLICAS[:2])
def test_dropout_differs_by_step_and_replica_and_repeats_by_seed(replicas):
    first, again, other = (run(sgd, replicas, dropout=0.5, seed=seed)[1].records for seed in (0, 0, 1))
    assert first == again and first != other


def test_replicas_drop_different_values():
    """Both replicas get the same rows; with the same masks the gradient would be that of one of them."""
    inputs, labels = token_data(4)
    twice = np.concatenate([inputs, inputs]), np.concatenate([labels, labels])
    one = run(sgd, dropout=0.5, data=(inputs, labels), batch_size=4, steps=1)[1].records[0]
    two = run(sgd, 2, dropout=0.5, data=twice, steps=1)[1].records[0]
    assert one["loss"] != pytest.approx(two["loss"], abs=1e-4)


def infinite_row(row):
    """Data whose loss is finite in float32 and whose gradient overflows in float16, in one row of eight."""
    inputs, labels = token_data(8)
    inputs[row], labels[row] = 6e4, [0, 1, 2, 0, 1, 2]
    return inputs, labels


@pytest.mark.parametrize("row", [0, 7])
def test_an_overflow_on_any_replica_is_seen_by_all(row):
    """float16, and a gradient that is infinite on one replica only: no weight changes, and the scale is halved."""
    start = [weight.numpy() for weight in token_model().weights]
    trainer, history = run(sgd, 2, steps=1, dtype="mixed_float16", data=infinite_row(row))
    assert not np.isfinite(history.records[0]["gradient_norm"])
    for weight, before in zip(trainer.model.weights, start, strict=True):
        for part in trainer.strategy.experimental_local_results(weight.value):
            np.testing.assert_array_equal(part.numpy(), before)
    assert float(trainer.step.loss_scale.value.numpy()) == 2.0**14
    assert int(trainer.optimizer.iterations.numpy()) == 0


def test_float16_learns_what_float32_learns():
    half, full = run(sgd, 2, dtype="mixed_float16"), run(sgd)
    scale = half[0].step.loss_scale
    assert float(scale.value.numpy()) == 2.0**15 and int(scale.good_steps.numpy()) == 20
    np.testing.assert_allclose(half[0].model.weights[0].numpy(), full[0].model.weights[0].numpy(), atol=5e-3)


@pytest.mark.parametrize("replicas", REPLICAS[:2])
def test_tokens_and_padding_are_counted(replicas, capsys):
    strategy = strategy_of(replicas)
    with strategy.scope():
        inputs = {"input_mask": keras.Input((4,), name="input_mask")}
        model, optimizer = keras.Model(inputs, keras.layers.Dense(2)(inputs["input_mask"])), sgd()
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], "float32")
    dataset = tf.data.Dataset.from_tensor_slices(({"input_mask": mask}, np.array([0, 1, 0]))).batch(3)
    history = Trainer(model, optimizer, CrossEntropy(), strategy=strategy).fit(dataset, 10)
    assert history.records[0]["tokens"] == 8 and history.records[0]["padding_share"] == pytest.approx(1 / 3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and lines[-1].startswith("step 10 of 10: loss ") and lines[-1].endswith("padding 33%")


def test_a_loss_that_is_not_finite_stops_with_the_step():
    inputs, labels = token_data(43)
    inputs[20] = np.nan  # in the third batch of eight
    with pytest.raises(TrainingError, match="must be finite. Received: loss nan, gradient norm nan at step 3. Lower"):
        run(sgd, data=(inputs, labels), steps=9, steps_per_call=4)


def test_a_gradient_that_is_not_finite_is_not_saved(tmp_path):
    """The loss of the second batch is finite, and its gradient is not: as the root of 0 has."""

    @tf.custom_gradient
    def broken_at_zero(x):
        return x, lambda upstream: tf.where(tf.reduce_all(x == 0), np.inf, 1.0) * upstream

    inputs, labels = token_data(16)
    inputs[8:] = 0
    start = keras.Input((6, 5))
    model = keras.Model(start, keras.layers.Dense(3, use_bias=False)(keras.layers.Lambda(broken_at_zero)(start)))
    logits = keras.layers.Lambda(broken_at_zero)(model.output)
    trainer = Trainer(keras.Model(start, logits), sgd(), CrossEntropy())
    with pytest.raises(
        TrainingError, match=r"must be finite. Received: loss 1.098\d*, gradient norm (nan|inf) at step 2"
    ):
        trainer.fit(batches(inputs, labels, 8), 2, checkpoint_dir=tmp_path, save_every=1)
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-00000001"]


@pytest.mark.parametrize("label", [3, -1])
@pytest.mark.parametrize("options", [dict(), dict(jit_compile=True), dict(replicas=2)], ids=str)
def test_a_label_out_of_range_in_a_later_batch_stops_with_the_step_and_the_label(label, options):
    inputs, labels = token_data(40)
    labels[20, 1] = label  # in the third batch of eight
    with pytest.raises(TrainingError, match=rf"loss nan, .* at step 3. Labels must be .* Received: \[{label}\]. The"):
        run(sgd, data=(inputs, labels), steps=9, steps_per_call=4, **options)


def test_a_label_out_of_range_is_found_in_half_precision_and_in_shuffled_data():
    inputs, labels = token_data(40)
    labels[20, 1] = 9
    trainer = Trainer(token_model(dtype="mixed_float16"), sgd(), CrossEntropy())
    with pytest.raises(TrainingError, match=r"Received: \[9\]"):
        trainer.fit(tf.data.Dataset.from_tensor_slices((inputs, labels)).shuffle(40, seed=2).batch(4), 10)
    with pytest.raises(DataError, match=r"from 0 to 2, or -100 for no target. Received: \[9\]. Number the classes"):
        trainer.evaluate(batches(inputs, labels, 8))


def test_labels_that_are_fractions_are_refused():
    inputs, labels = token_data(24)
    labels = labels.astype("float32")
    run(sgd, data=(inputs, labels), steps=3)  # whole numbers are classes, whatever their type
    labels[20, 1] = 0.5
    for batch_size, message in ((24, r"Received: \[0.5\]. Nothing was trained"), (8, r"at step 3. .*\[0.5\]. The")):
        with pytest.raises(TrainingError, match=message):
            run(sgd, data=(inputs, labels), steps=3, batch_size=batch_size)


def test_evaluations_are_traced_once():
    trainer = Trainer(token_model(), sgd(), CrossEntropy())
    for examples, batch_size in ((9, 4), (7, 3), (5, 5)):
        trainer.evaluate(batches(*token_data(examples), batch_size))
    assert trainer._evaluator._batch.experimental_get_tracing_count() == 1


def test_xla_gives_the_same_numbers():
    data = token_data(40)
    plain, compiled = run(sgd, data=data), run(sgd, data=data, jit_compile=True)
    np.testing.assert_allclose(compiled[0].model.weights[0].numpy(), plain[0].model.weights[0].numpy(), atol=1e-6)


def test_the_whole_step_compiles_with_xla():
    """Forward, backward, clipping and update, with static shapes, and no operation on the host: what a TPU needs."""
    trainer, _ = run(adamw, steps=1)
    inputs, labels = (tf.constant(array[:8]) for array in token_data(8))
    compiled = tf.function(trainer.step, jit_compile=True)
    before = trainer.model.weights[0].numpy()
    compiled((inputs, labels))
    assert np.abs(trainer.model.weights[0].numpy() - before).max() > 0
    host = {"PyFunc", "EagerPyFunc", "Print", "PrintV2", "HostSend", "HostRecv"}
    assert not host & {op.type for op in compiled.get_concrete_function((inputs, labels)).graph.get_operations()}


def test_five_adamw_steps_equal_pytorch(shared):
    folder = shared / "fixtures" / "hf" / "one_step_before"
    golden = np.load(folder / "goldens.npz")
    names = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
    inputs = {ours: golden[theirs].astype("int32") for ours, theirs in names.items()}
    model = load_pretrained(folder).classifier
    optimizer = AdamW(1e-3, weight_decay=0.01, beta_1=0.9, beta_2=0.999, epsilon=1e-6, global_clipnorm=1.0)
    trainer = Trainer(model, optimizer, CrossEntropy())
    dataset = tf.data.Dataset.from_tensor_slices((inputs, golden["labels"].astype("int32"))).batch(3)
    history = trainer.fit(dataset, steps=5)
    np.testing.assert_allclose([record["loss"] for record in history.records], golden["losses"], atol=1e-5)
    np.testing.assert_allclose(model(inputs), golden["logits_after"], atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            dict(accumulation_steps=0),
            "accumulation_steps must be a whole number, 1 or more. Received: accumulation_steps=0",
        ),
        (dict(replicas=2, jit_compile=True), "jit_compile=True is for one replica"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run(sgd, **options)
