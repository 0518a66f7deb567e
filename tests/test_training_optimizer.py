"""AdamW with its schedule: against PyTorch's numbers, against NumPy, and which variables are decayed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit import BertClassifier, BertConfig, BertEncoder
from keras_bert_kit.models import freeze, layers_by_depth, rates_by_depth, unfreeze
from keras_bert_kit.training import AdamW, Lamb, WarmUpAndDecay, create_optimizer, steps_of


def test_the_schedule_rises_then_falls():
    rate = WarmUpAndDecay(init_lr=1.0, num_train_steps=10, num_warmup_steps=4, end_lr=0.1)
    expected = [0, 0.25, 0.5, 0.75, 1.0, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1, 0.1]
    np.testing.assert_allclose([rate(step) for step in range(12)], expected, atol=1e-6)


def test_the_schedule_without_warm_up_and_of_one_step():
    assert float(WarmUpAndDecay(0.5, num_train_steps=1, num_warmup_steps=0)(0)) == 0.5
    assert float(WarmUpAndDecay(0.5, 4, 0, poly_power=2.0)(2)) == pytest.approx(0.125)


def test_a_warm_up_longer_than_the_run_is_warned_of():
    with pytest.warns(UserWarning, match="will only reach 7.82e-07, not init_lr=3e-05. Are both counted in steps"):
        create_optimizer(3e-5, num_train_steps=938, num_warmup_steps=36000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(num_train_steps=0), "num_train_steps must be 1 or more.*Received: num_train_steps=0"),
        (dict(num_warmup_steps=-1), "num_warmup_steps 0 or more.*num_warmup_steps=-1"),
        (dict(end_lr=1.0), "init_lr must be at least end_lr"),
        (dict(weight_decay=-1.0), "weight_decay must be 0 or more.*Received: weight_decay=-1.0"),
        (
            dict(global_clipnorm=-1.0),
            "global_clipnorm above 0; None turns either off. Received: .*global_clipnorm=-1.0",
        ),
        (dict(global_clipnorm=0.0), "global_clipnorm above 0.*global_clipnorm=0.0"),
        (dict(optimizer_type="sgd"), "optimizer_type must be one of adamw, lamb. Received: optimizer_type='sgd'"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        create_optimizer(**(dict(init_lr=1e-3, num_train_steps=10, num_warmup_steps=1) | arguments))


@pytest.mark.parametrize("optimizer_type", ["adamw", "lamb"])
def test_none_turns_decay_and_clipping_off(optimizer_type):
    for decay in (None, 0.0):
        optimizer = create_optimizer(
            0.1, 10, 0, optimizer_type=optimizer_type, weight_decay=decay, global_clipnorm=None
        )
        assert optimizer.global_clipnorm is None and optimizer.get_config()["weight_decay"] == 0.0
        weights, gradients = variables()
        optimizer.apply(gradients, weights)
        assert not any(optimizer.is_decayed(weight) for weight in weights)


def variables(seed=0):
    rng = np.random.default_rng(seed)
    kernel = keras.Variable(rng.normal(size=(3, 4)), name="kernel")
    bias = keras.Variable(rng.normal(size=4), name="a_name_without_hint")
    return [kernel, bias], [tf.constant(rng.normal(size=v.shape), tf.float32) for v in (kernel, bias)]


def test_updates_equal_numpy_with_decay_for_matrices_only():
    weights, gradients = variables()
    values = [weight.numpy().astype("float64") for weight in weights]
    moments = [[np.zeros(v.shape), np.zeros(v.shape)] for v in values]
    optimizer = AdamW(0.1, weight_decay=0.2, epsilon=1e-2, global_clipnorm=1.0)
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
    assert norm > 1
    for step in range(1, 4):
        optimizer.apply(gradients, weights)
        for i, gradient in enumerate(gradients):
            clipped = gradient.numpy() / norm
            moments[i][0] = 0.9 * moments[i][0] + 0.1 * clipped
            moments[i][1] = 0.999 * moments[i][1] + 0.001 * clipped**2
            mean, square = moments[i][0] / (1 - 0.9**step), moments[i][1] / (1 - 0.999**step)
            if values[i].ndim == 2:
                values[i] *= 1 - 0.1 * 0.2
            values[i] -= 0.1 * mean / (np.sqrt(square) + 1e-2)
        for weight, value in zip(weights, values, strict=True):
            np.testing.assert_allclose(weight, value, atol=2e-5)


@pytest.mark.parametrize(("name", "kind"), [("adamw", AdamW), ("lamb", Lamb)])
def test_the_optimizer_survives_serialization(name, kind):
    optimizer = create_optimizer(1e-3, 10, 2, optimizer_type=name, weight_decay=0.3, global_clipnorm=0.5)
    copy = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(copy) is kind and copy.get_config() == optimizer.get_config() and copy.decay == 0.3


def test_lamb_equals_numpy():
    weights, gradients = variables()
    values = [weight.numpy().astype("float64") for weight in weights]
    moments = [[np.zeros(v.shape), np.zeros(v.shape)] for v in values]
    optimizer = Lamb(0.1, weight_decay=0.2, epsilon=1e-2)
    for step in range(1, 4):
        optimizer.apply(gradients, weights)
        for i, gradient in enumerate(gradients):
            moments[i][0] = 0.9 * moments[i][0] + 0.1 * gradient.numpy()
            moments[i][1] = 0.999 * moments[i][1] + 0.001 * gradient.numpy() ** 2
            update = moments[i][0] / (1 - 0.9**step) / (np.sqrt(moments[i][1] / (1 - 0.999**step)) + 1e-2)
            rate = 0.1
            if values[i].ndim == 2:
                update += 0.2 * values[i]
                rate *= np.linalg.norm(values[i]) / np.linalg.norm(update)
            values[i] -= rate * update
        for weight, value in zip(weights, values, strict=True):
            np.testing.assert_allclose(weight, value, atol=2e-5)


def test_rate_factors_scale_the_rate_of_single_variables():
    (plain, _), gradients = variables()
    (half, bias), _ = variables()
    resting = lambda step: tf.cast(step >= 2, tf.float32)  # noqa: E731
    one, two = AdamW(0.05, weight_decay=0.5), AdamW(0.1, weight_decay=0.5)
    two.set_rate_factors([(half, 0.5), (bias, resting)])
    start = bias.numpy()
    for step in range(3):
        one.apply([gradients[0]], [plain])
        two.apply(gradients, [half, bias])
        assert (np.abs(bias.numpy() - start).max() > 0) == (step == 2)
    np.testing.assert_allclose(half.numpy(), plain.numpy(), atol=1e-6)
    with pytest.raises(ValueError, match="before the optimizer is built"):
        two.set_rate_factors([])


def test_rate_factors_of_another_model_are_refused():
    """Those of variables that are frozen may stay: `freeze` may come after `rates_by_depth`."""
    model, other = classifier(), classifier()
    optimizer = create_optimizer(1e-3, 10, 0, rate_factors=rates_by_depth(other, 0.5))
    with pytest.raises(ValueError, match="must be of variables that are trained. Received: factors of others, .*/"):
        optimizer.build(model.trainable_variables)
    assert not optimizer.built
    optimizer = create_optimizer(1e-3, 10, 0, rate_factors=rates_by_depth(model, 0.5))
    freeze(model, "embeddings")
    optimizer.build(model.trainable_variables)
    assert optimizer.rate_factor(model.trainable_variables[0]) == 1 / 8


def test_variables_excluded_from_weight_decay_are_not_decayed():
    (kernel, bias), gradients = variables()
    optimizer = AdamW(0.1, weight_decay=0.2)
    optimizer.exclude_from_weight_decay(var_list=[kernel])
    without = AdamW(0.1, weight_decay=0.0)
    (same, other), _ = variables()
    optimizer.apply(gradients, [kernel, bias])
    without.apply(gradients, [same, other])
    assert not optimizer.is_decayed(kernel)
    np.testing.assert_array_equal(kernel.numpy(), same.numpy())


def test_warm_up_as_a_share_and_in_examples():
    assert create_optimizer(1.0, 900, 0.1).schedule.num_warmup_steps == 90
    assert steps_of(examples=1000, batch_size=32) == 32 and steps_of(32, 32) == 1
    with pytest.raises(ValueError, match="must be 1 or more. Received: examples=100, batch_size=0"):
        steps_of(examples=100, batch_size=0)


def classifier():
    sizes = dict(vocab_size=9, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=8)
    return BertClassifier(BertEncoder(BertConfig(**sizes)), 2)


def test_rates_fall_with_depth():
    model = classifier()
    rates = rates_by_depth(model, 0.5)
    assert {id(v) for v, _ in rates} == {id(v) for v in model.trainable_variables} and len(rates) == 3 * 12 + 5 + 2 + 2
    of = {name: {rate for v, rate in rates if any(v is w for layer in layers for w in layer.weights)}
          for name, layers in layers_by_depth(model).items()}  # fmt: skip
    assert of == {"embeddings": {1 / 16}, "block_0": {1 / 8}, "block_1": {1 / 4}, "block_2": {1 / 2}, "head": {1.0}}
    with pytest.raises(ValueError, match="above 0 and at most 1. Received: layer_decay=0"):
        rates_by_depth(model, 0)


def test_freezing_takes_variables_out_of_training():
    model = classifier()
    freeze(model, "embeddings", layers=range(2))
    assert len(model.trainable_variables) == 12 + 2 + 2
    unfreeze(model, layers=[1])
    assert len(model.trainable_variables) == 24 + 2 + 2
    unfreeze(model)
    assert len(model.trainable_variables) == 36 + 5 + 2 + 2
    with pytest.raises(ValueError, match="Parts of this model are embeddings, block_0, .*Received: block_7"):
        freeze(model, layers=[7])


def test_five_steps_equal_pytorch(shared):
    """Losses and logits of PyTorch's AdamW on a small BERT, through `compile` and `train_on_batch`."""
    from keras_bert_kit.pretrained import load_pretrained

    folder = shared / "fixtures/hf/one_step_before"
    golden, model = np.load(folder / "goldens.npz"), load_pretrained(folder).classifier
    inputs = {
        "input_word_ids": golden["input_ids"],
        "input_mask": golden["attention_mask"],
        "input_type_ids": golden["token_type_ids"],
    }
    model.compile(AdamW(1e-3, global_clipnorm=1.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses = [model.train_on_batch(inputs, golden["labels"]) for _ in range(5)]
    np.testing.assert_allclose(losses, golden["losses"], atol=1e-5)
    np.testing.assert_allclose(model(inputs), golden["logits_after"], atol=1e-4)
