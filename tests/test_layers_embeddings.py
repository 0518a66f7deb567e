"""Embeddings: checklist, NumPy, dense gradients, and ids or lengths outside of the tables."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import check_layer

from keras_bert_kit.layers import (
    BertEmbeddings,
    SinusoidalPositionEncoding,
    TokenAndPositionEmbedding,
    sinusoidal_position_encoding,
)

RNG = np.random.default_rng(3)


def ids_of(batch, sequence, below):
    return (np.arange(batch * sequence, dtype="int32") % below).reshape(batch, sequence)


def bert_embeddings(**options):
    return BertEmbeddings(11, 8, max_position_embeddings=7, epsilon=1e-6, initializer_range=0.5, **options)


def test_bert_embeddings_pass_the_checklist_and_equal_numpy():
    layer = check_layer(
        bert_embeddings,
        lambda batch, sequence: (ids_of(batch, sequence, below=11), ids_of(batch, sequence, below=2)),
        weights={
            "word_embeddings": (11, 8),
            "position_embeddings": (7, 8),
            "type_embeddings": (2, 8),
            "layer_norm/gamma": (8,),
            "layer_norm/beta": (8,),
        },
    )
    words, types = ids_of(3, 6, below=11), ids_of(3, 6, below=2)
    word_table, position_table, type_table, gamma, beta = (weight.numpy() for weight in layer.weights[:5])
    x = word_table[words] + position_table[:6] + type_table[types]
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6) * gamma + beta
    np.testing.assert_allclose(layer(words, types), x, atol=1e-5)


def test_positions_pass_the_checklist():
    ids = {"input_word_ids": 11, "input_type_ids": 2, "positions": 4}
    layer = check_layer(
        bert_embeddings,
        lambda batch, sequence: {name: ids_of(batch, sequence, below=limit) for name, limit in ids.items()},
        weights={
            "word_embeddings": (11, 8),
            "position_embeddings": (7, 8),
            "type_embeddings": (2, 8),
            "layer_norm/gamma": (8,),
            "layer_norm/beta": (8,),
        },
    )
    words = ids_of(2, 3, below=11)
    np.testing.assert_array_equal(layer(words, positions=np.array([[0, 1, 2]] * 2)), layer(words))


def test_type_ids_may_be_left_out():
    layer, words = bert_embeddings(), ids_of(2, 5, below=11)
    np.testing.assert_array_equal(layer(words), layer(words, np.zeros_like(words)))


def test_gradients_of_repeated_words_are_summed():
    layer, words = bert_embeddings(), np.array([[3, 3, 3, 4]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(words)[..., 0])
    gradient = tape.gradient(loss, layer.word_embeddings.value)
    assert isinstance(gradient, tf.Tensor) and gradient.shape == (11, 8)
    assert set(np.flatnonzero(np.abs(gradient.numpy()).sum(-1))) == {3, 4}


@pytest.mark.parametrize("way", ["eager", "graph"])
@pytest.mark.parametrize(
    ("words", "types", "message"),
    [
        ([[1, 11]], [[0, 0]], r"(?s)input_word_ids must lie in \[0.*11.*word table.*from.*1.*to.*11"),
        ([[1, -1]], [[0, 0]], r"(?s)input_word_ids must lie in \[0.*-1"),
        ([[1, 2]], [[0, 2]], r"(?s)input_type_ids must lie in \[0.*2.*type table"),
    ],
)
def test_ids_outside_of_the_table_are_refused(way, words, types, message):
    layer = bert_embeddings()
    layer.build()
    call = layer if way == "eager" else tf.function(layer)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(tf.constant(words), tf.constant(types))


def test_the_last_position_works_and_one_more_is_refused():
    layer = bert_embeddings()
    assert layer(np.zeros((1, 7), "int32")).shape == (1, 7, 8)
    with pytest.raises(ValueError, match="not be longer than max_position_embeddings=7. Received: 8 tokens"):
        layer(np.zeros((1, 8), "int32"))
    dynamic = tf.function(layer, input_signature=[tf.TensorSpec((None, None), tf.int32)])
    assert dynamic(np.zeros((1, 7), "int32")).shape == (1, 7, 8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)not be longer than max_position_embeddings=7.*8"):
        dynamic(np.zeros((1, 8), "int32"))


def test_token_and_position_embedding_passes_the_checklist_and_equals_numpy():
    layer = check_layer(
        lambda: TokenAndPositionEmbedding(11, 7, 8, mask_zero=False),
        lambda batch, sequence: ids_of(batch, sequence, below=11),
        weights={"token_embeddings": (11, 8), "position_embeddings": (7, 8)},
    )
    words = ids_of(2, 5, below=11)
    tokens, positions = (weight.numpy() for weight in layer.weights)
    np.testing.assert_allclose(layer(words), tokens[words] + positions[:5], atol=1e-6)
    with pytest.raises(ValueError, match="not be longer than sequence_length=7. Received: 8"):
        layer(ids_of(1, 8, below=11))


def test_padding_is_masked_through_to_pooling():
    """A text gives the same answer with and without padding, which the lesson's own layers did not promise."""
    inputs = keras.Input((None,), dtype="int32")
    embedded = TokenAndPositionEmbedding(11, 7, 8)(inputs)
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling1D()(embedded))
    np.testing.assert_allclose(model(np.array([[1, 2, 3, 0, 0]])), model(np.array([[1, 2, 3]])), atol=1e-6)


def test_sinusoidal_position_encoding_passes_the_checklist_and_equals_the_formula():
    layer = check_layer(
        SinusoidalPositionEncoding,
        lambda batch, sequence: RNG.normal(size=(batch, sequence, 8)).astype("float32"),
        weights={},
    )
    expected = np.zeros((6, 8))
    for position in range(6):
        for pair in range(4):
            angle = position / 10000 ** (2 * pair / 8)
            expected[position, 2 * pair : 2 * pair + 2] = np.sin(angle), np.cos(angle)
    np.testing.assert_allclose(sinusoidal_position_encoding(6, 8), expected, atol=1e-6)
    np.testing.assert_allclose(layer(np.ones((1, 6, 8), "float32"))[0], 1 + expected, atol=1e-6)
