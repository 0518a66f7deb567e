"""Pooler, masked-LM head (tied, gathered positions only) and next-sentence head."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import check_layer

from keras_bert_kit.layers import BertEmbeddings, MaskedLMHead, NextSentenceHead, Pooler

RNG = np.random.default_rng(4)


def hidden(batch, sequence):
    return RNG.normal(size=(batch, sequence, 8)).astype("float32")


def test_pooler_passes_the_checklist_and_equals_numpy():
    layer = check_layer(Pooler, hidden, weights={"dense/kernel": (8, 8), "dense/bias": (8,)})
    x = hidden(3, 5)
    expected = np.tanh(x[:, 0] @ layer.dense.kernel.numpy() + layer.dense.bias.numpy())
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_pooler_of_rows_that_hold_several_texts():
    layer = check_layer(
        Pooler,
        lambda batch, sequence: (hidden(batch, sequence), np.array([[0, 2]] * batch, "int32")),
        weights={"dense/kernel": (8, 8), "dense/bias": (8,)},
    )
    x = hidden(2, 5)
    expected = np.stack([layer(x), layer(x[:, 3:])], axis=1)
    np.testing.assert_allclose(layer(x, np.array([[0, 3], [0, 3]])), expected, atol=1e-6)


def test_next_sentence_head_passes_the_checklist_and_equals_numpy():
    layer = check_layer(
        NextSentenceHead,
        lambda batch, sequence: hidden(batch, sequence)[:, 0],
        weights={"dense/kernel": (8, 2), "dense/bias": (2,)},
        output_dtype="float32",
    )
    x = hidden(3, 1)[:, 0]
    np.testing.assert_allclose(layer(x), x @ layer.dense.kernel.numpy() + layer.dense.bias.numpy(), atol=1e-5)


def embeddings(dtype=None):
    layer = BertEmbeddings(11, 8, max_position_embeddings=7, initializer_range=0.5, dtype=dtype, name="embeddings")
    layer.build()
    return layer


def make_model(dtype=None):
    """Embeddings and a head that is tied to them, in a functional model, as a user would build it."""
    words, positions = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    shared = embeddings(dtype)
    head = MaskedLMHead(shared, "gelu_tanh", initializer_range=0.5, dtype=dtype, name="mlm")
    return keras.Model([words, positions], head(shared(words), positions)), shared, head


WORDS, POSITIONS = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]), np.array([[1, 3], [0, 4]])


def test_masked_lm_head_equals_numpy_at_the_positions_asked_for():
    _, shared, head = make_model()
    head.bias.assign(RNG.normal(size=11))
    x = hidden(2, 5)
    gathered = np.take_along_axis(x, POSITIONS[..., None], axis=1)
    wide = gathered @ head.dense.kernel.numpy() + head.dense.bias.numpy()
    wide = wide * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    wide = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-12)
    expected = wide @ shared.word_embeddings.numpy().T + head.bias.numpy()
    for call in (head, tf.function(head), tf.function(head, jit_compile=True)):
        np.testing.assert_allclose(call(x, POSITIONS), expected, atol=1e-5)


def test_the_word_table_is_tied_before_and_after_saving(tmp_path):
    model, _, _ = make_model()
    model.save(tmp_path / "tied.keras")
    loaded = keras.models.load_model(tmp_path / "tied.keras")
    np.testing.assert_array_equal(loaded([WORDS, POSITIONS]), model([WORDS, POSITIONS]))
    for one in (model, loaded):
        assert one.get_layer("mlm").embeddings is one.get_layer("embeddings")
        assert sum("word_embeddings" in weight.path for weight in one.weights) == 1


def test_one_fit_step_moves_the_table_from_both_ends():
    model, shared, head = make_model()
    before = shared.word_embeddings.numpy()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    model.fit([WORDS[:1], POSITIONS[:1]], np.array([[1, 2]]), verbose=0)
    changed = np.abs(shared.word_embeddings.numpy() - before).sum(-1)
    assert np.all(changed > 0)  # by the softmax every row, though only five words were read
    assert np.any(head.bias.numpy() != 0)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32_under_mixed_precision(dtype):
    model, shared, head = make_model(dtype)
    logits = model([WORDS, POSITIONS])
    assert logits.dtype == tf.float32 and np.all(np.isfinite(logits))
    assert {variable.dtype for variable in head.trainable_variables} == {"float32"}
    full, _, _ = make_model()
    full.set_weights(model.get_weights())
    np.testing.assert_allclose(logits, full([WORDS, POSITIONS]), atol=0.2)


def test_positions_outside_of_the_sequence_are_refused():
    _, _, head = make_model()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)masked_lm_positions must lie in \[0.*5"):
        head(hidden(2, 5), np.array([[1, 5], [0, 0]]))
