"""One checklist for every Keras layer of the project.

A layer that people put into their own models has to survive more than one eager call: it is saved, traced, compiled by
XLA, trained, run in half precision. `check_layer` does all of that the same way for every layer, so that the test of a
layer is one call here and then its own numbers against an independent reference:

    def test_pooler():
        layer = check_layer(
            lambda: kbk.Pooler(hidden_size=8),
            lambda batch, sequence: rng.normal(size=(batch, sequence, 8)).astype("float32"),
            weights={"dense/kernel": (8, 8), "dense/bias": (8,)},
        )
"""

import contextlib
import inspect
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2


def check_layer(make_layer, make_inputs, *, weights, tolerance=1e-5, half_tolerance=0.1, output_dtype=None):
    """Check everything that holds for any layer; the first broken promise is an AssertionError that names it.

    Checked: config round trip; weights exist after a symbolic build, with the given names and shapes; eager call = call
    in a functional model = `tf.function` = XLA = a graph with frozen weights, for two sizes of batch and sequence; the
    symbolic shape is the true one; every trainable weight and every floating input gets a gradient, and one `fit` step
    moves every weight and leaves it finite; under mixed_bfloat16 and mixed_float16 variables are float32, outputs have
    the compute dtype, are finite and near the float32 outputs; a `.keras` file gives bit-equal outputs.

    Args:
        make_layer: function without arguments, gives a fresh layer that is not built. It is called under several dtype
            policies, so it must not fix `dtype`. Dropout does no harm: it is off outside of `fit`. Arguments that
            differ from the defaults show more.
        make_inputs: function of `batch, sequence` (two ints), gives NumPy arrays: one array is the only argument of the
            call, a tuple holds positional arguments, a dictionary keyword arguments. In symbolic calls every axis is
            dynamic, except the last one of floating inputs (features). A gradient must reach each floating input.
        weights: dictionary from the path of each variable below the layer ("dense/kernel") to its shape; `{}` if none.
        tolerance: largest absolute difference between ways to call, float32.
        half_tolerance: largest absolute difference of half precision to float32, in units of the largest float32 value.
        output_dtype: dtype of floating outputs under the mixed policies; None means the compute dtype. For a layer
            that promises float32 logits, "float32".

    Returns:
        The built float32 layer, its weights seeded and random (also biases and LayerNorm scales, first 0 and 1).
    """
    layer = make_layer()
    inputs = make_inputs(2, 5)
    check_config_round_trip(layer)
    model = check_symbolic_build(layer, inputs, weights)
    randomize_weights(layer)
    check_ways_to_call(layer, model, inputs, tolerance)
    check_ways_to_call(layer, model, make_inputs(3, 7), tolerance)
    check_keras_file(layer, model, inputs)
    check_mixed_precision(make_layer, layer, inputs, half_tolerance, output_dtype)
    check_gradients(layer, inputs)
    check_fit_step(make_layer, inputs)
    return layer


def check_config_round_trip(layer):
    """The config holds every argument; `from_config` and Keras's serialization give a layer with the same config."""
    config = layer.get_config()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    arguments = {p.name for p in inspect.signature(type(layer).__init__).parameters.values() if p.kind in named}
    arguments.discard("self")
    assert arguments <= config.keys(), f"{layer.name}: get_config forgets {sorted(arguments - config.keys())}"
    assert type(layer).from_config(config).get_config() == config, f"{layer.name}: from_config changes the config"
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(restored) is type(layer), f"{layer.name}: deserialized as {type(restored).__name__}"
    assert restored.get_config() == config, f"{layer.name}: serialization changes the config"


def check_symbolic_build(layer, inputs, weights):
    """A call on `keras.Input`s makes all weights; returns the functional model of this one layer."""
    assert not layer.weights, f"{layer.name}: weights exist before build"
    model = functional_model(layer, inputs)
    found = {variable.path.removeprefix(layer.name + "/"): tuple(variable.shape) for variable in layer.weights}
    assert len(found) == len(layer.weights), f"{layer.name}: two weights share a path: {sorted(found)}"
    expected = {path: tuple(shape) for path, shape in weights.items()}
    assert found == expected, f"{layer.name}: weights after build are {found}, expected {expected}"
    return model


def check_ways_to_call(layer, model, inputs, tolerance):
    """Eager, functional, `tf.function` with dynamic shapes, XLA and frozen agree, and the symbolic shapes hold."""
    variables_before = len(layer.variables)
    eager = flat_arrays(call(layer, inputs))
    for array, symbolic in zip(eager, keras.tree.flatten(model.outputs), strict=True):
        fits = tf.TensorShape(symbolic.shape).is_compatible_with(array.shape)
        assert fits, f"{layer.name}: symbolic shape {symbolic.shape}, true shape {array.shape}"
        assert keras.backend.standardize_dtype(symbolic.dtype) == array.dtype.name, (
            f"{layer.name}: symbolic dtype {symbolic.dtype}, true dtype {array.dtype}"
        )
        assert np.all(np.isfinite(array)), f"{layer.name}: output is not finite"

    signature = [tf.TensorSpec(dynamic_shape(array), array.dtype) for array in keras.tree.flatten(inputs)]

    def run(*flat):
        return call(layer, keras.tree.pack_sequence_as(inputs, flat))

    flat_inputs = tuple(tf.constant(array) for array in keras.tree.flatten(inputs))
    ways = {
        "a second eager call": lambda: call(layer, inputs),
        "a functional model": lambda: model(flat_inputs),
        "model.predict": lambda: model.predict_on_batch(flat_inputs),
        "tf.function": lambda: tf.function(run, input_signature=signature)(*flat_inputs),
        "tf.function(jit_compile=True)": lambda: tf.function(run, jit_compile=True)(*flat_inputs),
        "a graph with frozen weights": lambda: call_frozen(run, signature, flat_inputs),
    }
    for way, outputs in ways.items():
        for expected, array in zip(eager, flat_arrays(outputs()), strict=True):
            np.testing.assert_allclose(
                array, expected, rtol=0, atol=tolerance, err_msg=f"{layer.name}: {way} differs from the eager call"
            )
    assert len(layer.variables) == variables_before, f"{layer.name}: a call makes new variables"


def check_keras_file(layer, model, inputs):
    """Saved as `.keras` and loaded without custom objects, outputs are equal to the last bit; frozen stays frozen."""
    flat_inputs = tuple(keras.tree.flatten(inputs))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layer.keras"
        model.save(path)
        loaded = keras.models.load_model(path)
        layer.trainable = False
        model.save(path)
        frozen = keras.models.load_model(path)
    layer.trainable = True
    pairs = zip(flat_arrays(model(flat_inputs)), flat_arrays(loaded(flat_inputs)), strict=True)
    for expected, array in pairs:
        np.testing.assert_array_equal(array, expected, err_msg=f"{layer.name}: a .keras file changes the outputs")
    assert len(loaded.trainable_weights) == len(model.trainable_weights), f"{layer.name}: a .keras file freezes"
    assert not frozen.trainable_weights, f"{layer.name}: frozen, saved and loaded, it is trained again"


def check_mixed_precision(make_layer, layer, inputs, half_tolerance, output_dtype):
    """Under the mixed policies: float32 variables, outputs of the compute dtype, near those of float32."""
    expected = flat_arrays(call(layer, inputs))
    for policy in ("mixed_bfloat16", "mixed_float16"):
        with dtype_policy(policy):
            half = make_layer()
            call(half, inputs)
        assert half.get_config().keys() == layer.get_config().keys(), (
            f"{layer.name}: the policy changes the config's keys"
        )
        dtypes = {variable.dtype for variable in half.trainable_variables}
        assert dtypes <= {"float32"}, f"{layer.name}: variables are {dtypes} under {policy}, expected float32"
        half.set_weights(layer.get_weights())
        for reference, tensor in zip(expected, keras.tree.flatten(call(half, inputs)), strict=True):
            if not tensor.dtype.is_floating:
                continue
            wanted = output_dtype or keras.DTypePolicy(policy).compute_dtype
            assert tensor.dtype.name == wanted, f"{layer.name}: {policy} gives {tensor.dtype.name}, expected {wanted}"
            array = tf.cast(tensor, tf.float32).numpy()
            assert np.all(np.isfinite(array)), f"{layer.name}: output is not finite under {policy}"
            difference = np.max(np.abs(array - reference)) / np.max(np.abs(reference))
            assert difference <= half_tolerance, f"{layer.name}: {policy} is {difference:.3f} away from float32"


def check_gradients(layer, inputs):
    """Every trainable weight and every floating input is connected to the output, with finite gradients."""
    tensors = keras.tree.map_structure(tf.constant, inputs)
    floating = [tensor for tensor in keras.tree.flatten(tensors) if tensor.dtype.is_floating]
    sources = {f"weight {variable.path}": variable.value for variable in layer.trainable_variables}
    sources |= {f"floating input {number}": tensor for number, tensor in enumerate(floating)}
    with tf.GradientTape() as tape:
        tape.watch(floating)
        outputs = [tensor for tensor in keras.tree.flatten(call(layer, tensors)) if tensor.dtype.is_floating]
        loss = tf.add_n([tf.reduce_sum(tensor**2 * varied_like(tensor)) for tensor in outputs])
    for name, gradient in tape.gradient(loss, sources).items():
        assert gradient is not None, f"{layer.name}: no gradient reaches {name}"
        assert np.all(np.isfinite(tf.convert_to_tensor(gradient))), f"{layer.name}: gradient of {name} is not finite"


def check_fit_step(make_layer, inputs):
    """One step of `fit` changes every trainable weight, and they stay finite."""
    layer = make_layer()
    model = functional_model(layer, inputs)
    if not layer.trainable_variables:
        return
    flat_inputs = tuple(tf.constant(array) for array in keras.tree.flatten(inputs))
    targets = keras.tree.map_structure(lambda tensor: varied_like(tensor), model(flat_inputs))
    before = [variable.numpy() for variable in layer.trainable_variables]
    # Adam, since it also moves weights whose gradient is tiny, such as the bias of attention keys (0 but for rounding).
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=keras.tree.map_structure(lambda _: "mse", targets))
    model.fit(tf.data.Dataset.from_tensors((flat_inputs, targets)), shuffle=False, verbose=0)
    for variable, old in zip(layer.trainable_variables, before, strict=True):
        assert np.all(np.isfinite(variable)), f"{layer.name}: {variable.path} is not finite after one step of fit"
        assert np.any(variable.numpy() != old), f"{layer.name}: one step of fit does not change {variable.path}"


def call(layer, inputs):
    """Call with one array, a tuple of positional arguments or a dictionary of keyword arguments."""
    if isinstance(inputs, tuple):
        return layer(*inputs)
    if isinstance(inputs, dict):
        return layer(**inputs)
    return layer(inputs)


def call_frozen(run, signature, flat_inputs):
    """Call as an exported graph does, its variables made constants.

    That is where TensorFlow's optimizer fuses most, and not always right: on x86 `_MklLayerNorm` takes the place of a
    LayerNorm written as x·scale + (beta - mean·scale), with its default epsilon 0.001 whatever the graph said (2.21).
    """
    traced = tf.function(run, input_signature=signature).get_concrete_function()
    return convert_variables_to_constants_v2(traced)(*flat_inputs)


def functional_model(layer, inputs):
    """A functional model of one layer, its inputs a flat tuple with dynamic axes."""
    symbolic = keras.tree.map_structure(
        lambda array: keras.Input(shape=dynamic_shape(array)[1:], dtype=array.dtype.name), inputs
    )
    return keras.Model(tuple(keras.tree.flatten(symbolic)), call(layer, symbolic))


def dynamic_shape(array):
    """The shape with every axis unknown, except the features of a floating input."""
    shape = [None] * array.ndim
    if np.issubdtype(array.dtype, np.floating):
        shape[-1] = array.shape[-1]
    return tuple(shape)


def flat_arrays(outputs):
    """All outputs as a flat list of NumPy arrays."""
    return [np.asarray(tensor) for tensor in keras.tree.flatten(outputs)]


def varied_like(tensor):
    """Fixed numbers between -1 and 1 in the tensor's shape: targets and loss weights that no symmetry cancels."""
    count = tf.size(tensor)
    return tf.cast(tf.reshape(tf.sin(7.0 * tf.cast(tf.range(count), tf.float32) + 1.0), tf.shape(tensor)), tensor.dtype)


def randomize_weights(layer, seed=0):
    """Move every floating weight by seeded noise, so that no bias is 0 and no scale is 1."""
    generator = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        variable.assign(variable.numpy() + 0.1 * generator.normal(size=variable.shape))


@contextlib.contextmanager
def dtype_policy(name):
    """Keras's global dtype policy inside a `with` block."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
