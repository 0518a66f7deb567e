"""The encoder block and LayerNorm: checklist, NumPy, half precision."""

import math
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import check_layer

from keras_bert_kit.layers import EncoderBlock, LayerNorm, MultiHeadSelfAttention
from keras_bert_kit.layers.functions import ACTIVATIONS, activation_by_name

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import side

RNG = np.random.default_rng(2)
BLOCK_WEIGHTS = {
    "attention/qkv/kernel": (8, 24),
    "attention/qkv/bias": (24,),
    "attention/output/kernel": (8, 8),
    "attention/output/bias": (8,),
    "attention_norm/gamma": (8,),
    "attention_norm/beta": (8,),
    "intermediate/kernel": (8, 16),
    "intermediate/bias": (16,),
    "output/kernel": (16, 8),
    "output/bias": (8,),
    "output_norm/gamma": (8,),
    "output_norm/beta": (8,),
}


def normalized(x, gamma, beta, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * gamma + beta


def test_layer_norm_passes_the_checklist_and_equals_numpy():
    layer = check_layer(
        lambda: LayerNorm(epsilon=1e-6),
        lambda batch, sequence: RNG.normal(size=(batch, sequence, 8)).astype("float32"),
        weights={"gamma": (8,), "beta": (8,)},
    )
    x = RNG.normal(loc=3.0, size=(4, 8)).astype("float32")
    np.testing.assert_allclose(layer(x), normalized(x, layer.gamma.numpy(), layer.beta.numpy(), 1e-6), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_constant_row_stays_finite_under_the_smallest_epsilon(dtype):
    layer = LayerNorm(epsilon=1e-12, dtype=dtype)
    output = tf.cast(layer(np.full((2, 3, 8), 0.1, "float32")), tf.float32)
    assert np.all(np.isfinite(output))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 1e-3])
def test_layer_norm_keeps_its_epsilon_in_a_frozen_graph(epsilon):
    """TensorFlow's fused kernel has an epsilon of its own; small inputs show whether ours survives."""
    layer, x = LayerNorm(epsilon), 0.01 * RNG.normal(size=(4, 8)).astype("float32")
    layer.build((None, 8))
    gamma, beta = RNG.normal(size=8).astype("float32"), RNG.normal(size=8).astype("float32")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        placeholder = tf.compat.v1.placeholder(tf.float32, (None, 8))
        output = layer.stateless_call([tf.constant(gamma), tf.constant(beta)], [], placeholder)[0]
        frozen = session.run(output, {placeholder: x})
    np.testing.assert_allclose(frozen, normalized(x, gamma, beta, epsilon), atol=1e-5)


def block_inputs(batch, sequence):
    mask = np.ones((batch, sequence), dtype="int32")
    mask[0, -2:] = 0
    return {"inputs": RNG.normal(size=(batch, sequence, 8)).astype("float32"), "mask": mask}


def test_encoder_block_passes_the_checklist_and_equals_numpy():
    layer = check_layer(
        lambda: EncoderBlock(2, 16, "gelu_erf", dropout_rate=0.2, attention_dropout_rate=0.3, epsilon=1e-5),
        block_inputs,
        weights=BLOCK_WEIGHTS,
    )
    weight = {v.path.split("/", 1)[1]: v.numpy() for v in layer.weights if "seed" not in v.path}
    inputs = block_inputs(2, 5)
    x = inputs["inputs"]
    attended = layer.attention(x, mask=inputs["mask"]).numpy()
    x = normalized(x + attended, weight["attention_norm/gamma"], weight["attention_norm/beta"], 1e-5)
    wide = x @ weight["intermediate/kernel"] + weight["intermediate/bias"]
    wide = wide * 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
    x = x + wide @ weight["output/kernel"] + weight["output/bias"]
    expected = normalized(x, weight["output_norm/gamma"], weight["output_norm/beta"], 1e-5)
    np.testing.assert_allclose(layer(**inputs), expected, atol=1e-5)


def test_padding_does_not_change_the_other_tokens():
    block = EncoderBlock(2, 16, initializer_range=0.5)
    x = RNG.normal(size=(1, 6, 8)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 0, 0]])
    np.testing.assert_allclose(block(x, mask=mask)[:, :4], block(x[:, :4]), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_row_masked_out_entirely_stays_finite(dtype):
    block = EncoderBlock(2, 16, dtype=dtype)
    x = RNG.normal(size=(2, 4, 8)).astype("float32")
    mask = np.array([[1, 1, 1, 0], [0, 0, 0, 0]])
    both = tf.cast(block(x, mask=mask), tf.float32)
    assert np.all(np.isfinite(both))
    np.testing.assert_allclose(both[:1], tf.cast(block(x[:1], mask=mask[:1]), tf.float32), atol=1e-3)


def test_dropout_acts_in_training_only():
    block = EncoderBlock(2, 16, dropout_rate=0.5)
    x = RNG.normal(size=(1, 4, 8)).astype("float32")
    assert np.array_equal(block(x), block(x, training=False))
    assert not np.array_equal(block(x, training=True), block(x, training=True))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("gelu_erf", lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2)))),
        ("gelu_tanh", lambda x: x * 0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        ("relu", lambda x: max(x, 0.0)),
        ("silu", lambda x: x / (1 + math.exp(-x))),
        ("tanh", math.tanh),
    ],
)
def test_activations(name, function):
    x = np.linspace(-4, 4, 41)
    np.testing.assert_allclose(activation_by_name(name)(tf.constant(x)), [function(value) for value in x], atol=1e-9)


def test_a_bare_gelu_is_refused():
    assert "gelu" not in ACTIVATIONS
    with pytest.raises(ValueError, match=r"activation must be one of gelu_erf.*A bare 'gelu' does not say which"):
        EncoderBlock(2, 16, activation="gelu")


def test_the_attention_layer_inside_is_the_public_one():
    block = EncoderBlock(2, 16)
    block.build((None, None, 8))
    assert type(block.attention) is MultiHeadSelfAttention


@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradient_checkpointing_changes_no_gradient(jit_compile):
    """With dropout: what is computed a second time must drop what was dropped the first time."""
    inputs = tf.constant(np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32"))
    found = []
    for on in (False, True):
        keras.utils.set_random_seed(0)
        block = EncoderBlock(num_heads=2, intermediate_size=16, dropout_rate=0.4, attention_dropout_rate=0.4)
        block.build((None, None, 8))
        block.gradient_checkpointing = on

        @tf.function(jit_compile=jit_compile)
        def gradients(block=block):
            with tf.GradientTape() as tape:
                outputs = block(inputs, mask=tf.constant([[1, 1, 1, 1, 0]] * 2), training=True)
                loss = tf.reduce_sum(tf.square(outputs) * inputs)
            return [loss, *tape.gradient(loss, [weight.value for weight in block.trainable_weights])]

        found.append([gradients(), gradients()])
    for plain, checkpointed in zip(*found, strict=True):
        for one, other in zip(plain, checkpointed, strict=True):
            np.testing.assert_allclose(other, one, atol=1e-5)
    assert abs(float(found[0][0][0] - found[0][1][0])) > 1e-3, "the second call must drop other values"


@pytest.mark.slow
def test_gradient_checkpointing_saves_memory():
    """Greatest memory of a training step, in fresh processes."""
    if side.peak_bytes() is None:
        pytest.skip("this system does not say how much memory a process has had")
    code = """
import sys
import numpy as np, side, tensorflow as tf
import keras_bert_kit as kbk
sizes = dict(vocab_size=100, hidden_size=128, num_hidden_layers=12, num_attention_heads=4, intermediate_size=512)
config = kbk.BertConfig(**sizes)
model = kbk.BertClassifier(kbk.BertEncoder(config), 2)
model.encoder.gradient_checkpointing = sys.argv[1] == "on"
ids = np.random.default_rng(0).integers(5, 100, (32, 128)).astype("int32")
inputs = {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": 0 * ids}
batches = tf.data.Dataset.from_tensor_slices((inputs, ids[:, 0] % 2)).batch(32)
before = side.peak_bytes()
kbk.Trainer(model, kbk.AdamW(1e-4), kbk.CrossEntropy()).fit(batches, 3)
print(side.peak_bytes() - before)
"""
    grown, environment = [], os.environ | {"PYTHONPATH": os.path.dirname(side.__file__)}
    for switch in ("off", "on"):
        command = [sys.executable, "-c", code, switch]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        grown.append(int(done.stdout.splitlines()[-1]))
    assert grown[1] < 0.7 * grown[0], grown
