"""The checklist accepts a sound layer and catches each fault it is there for."""

import os
import platform

import keras
import layer_checks
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import check_layer

from keras_bert_kit.layers.frozen import keep_frozen


def hidden(batch, sequence):
    return np.random.default_rng(3).normal(size=(batch, sequence, 4)).astype("float32")


@keras.saving.register_keras_serializable("layer_checks")
class Scale(keras.layers.Layer):
    """A sound layer, (batch, sequence, hidden) to the same; each fault below is one method of it done wrong."""

    def __init__(self, power=1.0, **kwargs):
        super().__init__(**kwargs)
        self.power = power

    def build(self, inputs_shape):
        self.scale = self.add_weight(name="scale", shape=inputs_shape[-1:], initializer="ones")

    def call(self, inputs):
        return inputs * self.scale**self.power

    def get_config(self):
        return {**super().get_config(), "power": self.power}


SCALE_WEIGHTS = {"scale": (4,)}


def test_sound_layer_with_one_argument_passes():
    layer = check_layer(lambda: Scale(power=2.0), hidden, weights=SCALE_WEIGHTS)
    assert layer.built and layer.power == 2.0


@keras.saving.register_keras_serializable("layer_checks")
class Mix(keras.layers.Layer):
    """A sound layer with integers, a mask, dropout, sublayers and a dictionary of outputs."""

    def build(self, ids_shape, states_shape):
        self.table = keras.layers.Embedding(11, states_shape[-1], name="table")
        self.table.build(ids_shape)
        self.dropout = keras.layers.Dropout(0.5)
        self.supports_masking = True
        keep_frozen(self)

    def call(self, ids, states, mask=None, training=None):
        mixed = self.dropout(self.table(ids) + states, training=training)  # (B, S, D)
        mask = tf.cast(mask[:, :, None], mixed.dtype)
        return {"mixed": mixed, "mean": tf.reduce_sum(mixed * mask, 1) / tf.reduce_sum(mask, 1)}

    def compute_mask(self, ids, previous_mask):
        return None


def test_sound_layer_with_integers_mask_dropout_and_dictionary_passes():
    def make_inputs(batch, sequence):
        ids = np.random.default_rng(0).integers(0, 11, size=(batch, sequence)).astype("int32")
        lengths = np.array([[sequence], [2], [3]])[:batch]
        return {"ids": ids, "states": hidden(batch, sequence), "mask": np.arange(sequence)[None, :] < lengths}

    weights = {"table/embeddings": (11, 4)}
    check_layer(Mix, make_inputs, weights=weights)
    check_layer(Mix, lambda batch, sequence: tuple(make_inputs(batch, sequence).values()), weights=weights)


def test_layer_without_weights_passes():
    check_layer(lambda: keras.layers.Activation("tanh"), hidden, weights={})


def faulty(name, **methods):
    """A subclass of Scale with some methods replaced, registered so that Keras can load it."""
    return keras.saving.register_keras_serializable("layer_checks")(type(name, (Scale,), methods))


def call_under(condition, wrong):
    """A call that is right unless `condition()` holds while it runs."""
    return lambda self, inputs: (wrong if condition() else 1.0) * inputs * self.scale**self.power


def build_with_unused_weight(self, inputs_shape):
    Scale.build(self, inputs_shape)
    self.unused = self.add_weight(name="unused", shape=(2,), initializer="zeros")


def build_with_unsaved_state(self, inputs_shape):
    Scale.build(self, inputs_shape)
    self.shift = float(np.random.default_rng().normal())


def build_in_compute_dtype(self, inputs_shape):
    self.scale = self.add_weight(name="scale", shape=inputs_shape[-1:], initializer="ones", dtype=self.compute_dtype)


def call_with_fixed_length(self, inputs):
    return tf.reshape(Scale.call(self, inputs), (-1, 5, 4))


def call_outside_tensorflow(self, inputs):
    return tf.numpy_function(lambda x: x, [Scale.call(self, inputs)], inputs.dtype)


def shape_that_is_wrong(self, inputs):
    return keras.KerasTensor((inputs.shape[0], 9, 4), dtype=self.compute_dtype)


FAULTS = {
    "config_forgets": (
        dict(get_config=lambda self: {"name": self.name, "dtype": "float32"}),
        SCALE_WEIGHTS,
        "get_config forgets ['power']",
    ),
    "config_drifts": (
        dict(get_config=lambda self: {**Scale.get_config(self), "power": self.power + 1}),
        SCALE_WEIGHTS,
        "from_config changes the config",
    ),
    "missing_weight": ({}, {**SCALE_WEIGHTS, "bias": (4,)}, "weights after build"),
    "weight_shape": ({}, {"scale": (5,)}, "weights after build"),
    "unused_weight": (
        dict(build=build_with_unused_weight),
        {**SCALE_WEIGHTS, "unused": (2,)},
        "no gradient reaches weight",
    ),
    "stopped_input": (
        dict(call=lambda self, x: tf.stop_gradient(x) * self.scale**self.power),
        SCALE_WEIGHTS,
        "no gradient reaches floating input 0",
    ),
    "stopped_weight": (
        dict(call=lambda self, x: x * (self.scale * 0.0 + tf.stop_gradient(self.scale)) ** self.power),
        SCALE_WEIGHTS,
        "does not change",
    ),
    "wrong_when_traced": (
        dict(call=call_under(lambda: not tf.executing_eagerly(), 1.01)),
        SCALE_WEIGHTS,
        "differs from the eager call",
    ),
    "random_calls": (
        dict(call=lambda self, x: x * self.scale + tf.random.normal(())),
        SCALE_WEIGHTS,
        "a second eager call differs",
    ),
    "unsaved_state": (
        dict(build=build_with_unsaved_state, call=lambda self, x: x * self.scale + self.shift),
        SCALE_WEIGHTS,
        "a .keras file changes the outputs",
    ),
    "half_weights": (dict(build=build_in_compute_dtype), SCALE_WEIGHTS, "variables are {'bfloat16'}"),
    "float32_output": (
        dict(call=lambda self, x: tf.cast(x, tf.float32) * tf.cast(self.scale, tf.float32)),
        SCALE_WEIGHTS,
        "mixed_bfloat16 gives float32, expected bfloat16",
    ),
    "overflow_in_half": (
        dict(call=lambda self, x: (x * self.scale * 1e5) * 1e-5),
        SCALE_WEIGHTS,
        "not finite under mixed_float16",
    ),
    "not_finite": (dict(call=lambda self, x: x * self.scale / 0.0), SCALE_WEIGHTS, "output is not finite"),
    "wrong_shape": (
        dict(compute_output_spec=shape_that_is_wrong),
        SCALE_WEIGHTS,
        "symbolic shape",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_layer_is_caught(fault):
    methods, weights, message = FAULTS[fault]
    broken = faulty(fault, **methods)
    with pytest.raises(AssertionError) as caught:
        check_layer(broken, hidden, weights=weights)
    assert message in str(caught.value)


@pytest.mark.parametrize("method", [call_with_fixed_length, call_outside_tensorflow])
def test_layer_that_fails_on_other_sizes_or_under_xla_is_caught(method):
    broken = faulty(method.__name__, call=method)
    with pytest.raises((tf.errors.OpError, ValueError)):
        check_layer(broken, hidden, weights=SCALE_WEIGHTS)


def call_with_a_fusion_that_loses_epsilon(self, inputs):
    mean, variance = tf.nn.moments(inputs, axes=[-1 + inputs.shape.rank], keepdims=True)
    scale = tf.math.rsqrt(variance + 0.5) * self.scale
    return inputs * scale + (0.5 * self.scale - mean * scale)


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0",
    reason="needs oneDNN, whose fusion is the fault",
)
def test_layer_that_is_wrong_when_frozen_is_caught():
    broken = faulty("wrong_when_frozen", call=call_with_a_fusion_that_loses_epsilon)
    with pytest.raises(AssertionError, match="a graph with frozen weights differs from the eager call"):
        check_layer(broken, hidden, weights=SCALE_WEIGHTS)


def test_unregistered_layer_is_caught():
    class Unregistered(Scale):
        pass

    with pytest.raises(TypeError, match="Could not locate class 'Unregistered'"):
        check_layer(Unregistered, hidden, weights=SCALE_WEIGHTS)


def test_float32_outputs_can_be_promised():
    promising = faulty("promising", call=FAULTS["float32_output"][0]["call"])
    check_layer(promising, hidden, weights=SCALE_WEIGHTS, output_dtype="float32")


def test_dtype_policy_is_restored():
    with pytest.raises(KeyError), layer_checks.dtype_policy("mixed_bfloat16"):
        raise KeyError
    assert keras.config.dtype_policy().name == "float32"
