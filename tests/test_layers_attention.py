"""Attention against a NumPy implementation, its masks, and the checklist that every layer passes."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import check_layer

from keras_bert_kit.layers import MultiHeadSelfAttention, scaled_dot_product_attention

RNG = np.random.default_rng(1)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def random_heads(batch=2, heads=3, sequence=5, head_size=4):
    return [RNG.normal(size=(batch, heads, sequence, head_size)).astype("float32") for _ in range(3)]


def test_attention_equals_numpy():
    query, key, value = random_heads()
    scores = softmax(query @ key.swapaxes(-1, -2) / 2.0)
    output, found = scaled_dot_product_attention(query, key, value, return_attention_scores=True)
    np.testing.assert_allclose(found, scores, atol=1e-6)
    np.testing.assert_allclose(output, scores @ value, atol=1e-6)
    assert not isinstance(scaled_dot_product_attention(query, key, value), tuple)


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_masks_of_every_rank_hide_the_same_keys(rank):
    query, key, value = random_heads()
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype="int32")
    shapes = {2: mask, 3: np.repeat(mask[:, None], 5, axis=1), 4: np.repeat(mask[:, None, None], 5, axis=2)}
    output, scores = scaled_dot_product_attention(query, key, value, shapes[rank], return_attention_scores=True)
    assert np.all(scores.numpy()[0, :, :, 3:] == 0)
    alone = scaled_dot_product_attention(query[:1], key[:1, :, :3], value[:1, :, :3])
    np.testing.assert_allclose(output[:1], alone, atol=1e-6)


def test_a_causal_mask_can_be_used():
    query, key, value = random_heads()
    causal = np.tril(np.ones((2, 5, 5), dtype=bool))
    _, scores = scaled_dot_product_attention(query, key, value, causal, return_attention_scores=True)
    assert np.all(np.triu(scores.numpy(), k=1) == 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_row_masked_out_entirely_stays_finite(dtype):
    query, key, value = (tf.cast(x, dtype) for x in random_heads())
    mask = np.array([[1, 1, 1, 1, 0], [0, 0, 0, 0, 0]])
    output = tf.cast(scaled_dot_product_attention(query, key, value, mask), tf.float32)
    assert np.all(np.isfinite(output))
    alone = tf.cast(scaled_dot_product_attention(query[:1], key[:1], value[:1], mask[:1]), tf.float32)
    np.testing.assert_allclose(output[:1], alone, atol=1e-3)


def test_dropout_is_applied_to_the_scores_in_training_alone():
    layer = MultiHeadSelfAttention(num_heads=3, dropout_rate=0.999)
    inputs = RNG.normal(size=(2, 5, 12)).astype("float32")
    assert np.mean(layer(inputs, training=True).numpy() == 0) > 0.8  # nothing is left of most heads' values
    assert not np.any(layer(inputs, training=False).numpy() == 0)


def inputs_of(batch, sequence):
    mask = np.ones((batch, sequence), dtype="int32")
    mask[0, -2:] = 0
    return {"inputs": RNG.normal(size=(batch, sequence, 12)).astype("float32"), "mask": mask}


def test_multi_head_self_attention_passes_the_checklist():
    shapes = {"qkv/kernel": (12, 36), "qkv/bias": (36,), "output/kernel": (12, 12), "output/bias": (12,)}
    layer = check_layer(
        lambda: MultiHeadSelfAttention(num_heads=3, dropout_rate=0.1, initializer_range=0.5), inputs_of, weights=shapes
    )
    # The same numbers in NumPy, from the layer's own weights.
    inputs = inputs_of(2, 5)
    x, mask = inputs["inputs"], inputs["mask"][:, None, None, :]
    kernel, bias, output_kernel, output_bias = (weight.numpy() for weight in layer.weights[:4])
    query, key, value = (
        part.reshape(2, 5, 3, 4).transpose(0, 2, 1, 3) for part in np.split(x @ kernel + bias, 3, axis=-1)
    )
    scores = softmax(np.where(mask == 1, query @ key.swapaxes(-1, -2) / 2.0, -np.inf))
    expected = (scores @ value).transpose(0, 2, 1, 3).reshape(2, 5, 12) @ output_kernel + output_bias
    output, found = layer(**inputs, return_attention_scores=True)
    np.testing.assert_allclose(output, expected, atol=1e-5)
    np.testing.assert_allclose(found, scores, atol=1e-5)


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ValueError, match="num_heads must divide the hidden size.*num_heads=5, hidden size=12"):
        MultiHeadSelfAttention(num_heads=5)(np.zeros((1, 2, 12), "float32"))
    with pytest.raises(ValueError, match="num_heads=0"):
        MultiHeadSelfAttention(num_heads=0)(np.zeros((1, 2, 12), "float32"))
    with pytest.raises(ValueError, match=r"must have the axes \(batch, sequence, hidden\). Received: shape \(2, 12\)"):
        MultiHeadSelfAttention(num_heads=2)(np.zeros((2, 12), "float32"))


def test_a_mask_that_keras_carries_reaches_attention():
    tokens = np.array([[3, 4, 5, 0, 0]])
    embedded = keras.layers.Embedding(9, 8, mask_zero=True)(tokens)
    attention = MultiHeadSelfAttention(num_heads=2, initializer_range=0.5)
    _, scores = attention(embedded, return_attention_scores=True)
    assert np.all(scores.numpy()[..., 3:] == 0)
    np.testing.assert_allclose(attention(embedded)[:, :3], attention(embedded[:, :3]), atol=1e-6)
