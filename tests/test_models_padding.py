"""Padding left out of the computation: the numbers of tokens and all gradients are those of the whole batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import randomize_weights

from keras_bert_kit import BertClassifier, BertConfig, BertEncoder, BertPretrainer

LENGTHS = [9, 3, 1, 12, 0]  # the longest is the longest that the model takes; one row holds nothing


def make_encoder(dtype="float32"):
    keras.utils.set_random_seed(1)
    config = BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=12,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    encoder = BertEncoder(config, dtype=dtype)
    randomize_weights(encoder)
    return encoder


def make_inputs(lengths=LENGTHS, sequence=12):
    rng = np.random.default_rng(2)
    mask = (np.arange(sequence) < np.array(lengths)[:, None]).astype("int32")
    words, types = rng.integers(1, 30, mask.shape), rng.integers(0, 2, mask.shape)
    return {"input_word_ids": words * mask, "input_mask": mask, "input_type_ids": types * mask}


def gradients_of(encoder, inputs, **options):
    mask = inputs["input_mask"][..., None].astype("float32")
    with tf.GradientTape() as tape:
        outputs = encoder(inputs, **options)
        loss = tf.reduce_sum(tf.sin(outputs["sequence_output"]) * mask)
        loss += tf.reduce_sum(outputs["pooled_output"][:-1] ** 2)  # not that of the empty row
    return tape.gradient(loss, [variable.value for variable in encoder.trainable_variables])


@pytest.mark.parametrize("training", [False, True])
def test_tokens_have_the_numbers_of_the_whole_batch(training):
    encoder, inputs = make_encoder(), make_inputs()
    whole = encoder(inputs, training=False)
    found = encoder(inputs, training=training, only="tokens")
    assert found.keys() == {"sequence_output", "pooled_output", "default"}
    mask = inputs["input_mask"] == 1
    sequence = found["sequence_output"].numpy()
    np.testing.assert_allclose(sequence[mask], whole["sequence_output"].numpy()[mask], atol=2e-6)
    assert sequence.shape == (5, 12, 16) and not sequence[~mask].any()
    np.testing.assert_allclose(found["pooled_output"][:-1], whole["pooled_output"][:-1], atol=2e-6)


@pytest.mark.parametrize("training", [False, True])
def test_the_last_block_may_compute_the_first_token_alone(training):
    encoder, inputs = make_encoder(), make_inputs()
    variables = [variable.value for variable in encoder.trainable_variables]
    found = {}
    for only in (None, "pooled_output"):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, training=training, only=only)
            loss = tf.reduce_sum(tf.sin(outputs["pooled_output"][:-1]))
        found[only] = outputs["pooled_output"][:-1], tape.gradient(loss, variables)
    assert outputs.keys() == {"pooled_output"}
    np.testing.assert_allclose(found[None][0], found["pooled_output"][0], atol=2e-6)
    for variable, one, other in zip(
        encoder.trainable_variables, found[None][1], found["pooled_output"][1], strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=variable.path)


@pytest.mark.parametrize("training", [False, True])
def test_the_last_block_may_compute_some_positions_alone(training):
    encoder, inputs = make_encoder(), make_inputs()
    at = np.array([[0, 8, 3, 3], [2, 0, 1, 11], [0, 0, 0, 0], [11, 5, 4, 0], [0, 1, 2, 3]])
    present = np.take_along_axis(inputs["input_mask"], at, axis=1)[..., None]  # the others are padding
    variables = [variable.value for variable in encoder.trainable_variables]
    found = []
    for options in ({}, {"at": at}):
        with tf.GradientTape() as tape:
            rows = encoder(inputs, training=training, **options)["sequence_output"]
            rows = rows if options else tf.gather(rows, at, batch_dims=1)
            loss = tf.reduce_sum(tf.sin(rows) * present)
        found.append((rows * present, tape.gradient(loss, variables, unconnected_gradients="zero")))
    (whole, expected), (picked, gradients) = found
    np.testing.assert_allclose(picked, whole, atol=2e-6)
    for variable, one, other in zip(encoder.trainable_variables, gradients, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=variable.path)


def test_of_packed_rows_positions_see_their_own_sequence():
    encoder, inputs = make_encoder(), make_inputs([12, 7])
    inputs["input_sequence_ids"] = np.repeat([[1, 2], [1, 2]], [5, 7], axis=1) * inputs["input_mask"]
    at = np.array([[0, 5, 11], [4, 6, 0]])
    whole = encoder(inputs)["sequence_output"]
    found = encoder(inputs, at=at)["sequence_output"]
    np.testing.assert_allclose(found, tf.gather(whole, at, batch_dims=1), atol=2e-6)


def test_pretraining_learns_the_same_from_the_positions_that_heads_look_at():
    model = BertPretrainer(make_encoder())
    inputs = make_inputs([12, 7]) | {"masked_lm_positions": np.array([[3, 11, 0], [1, 6, 6]])}
    packed = inputs | {"input_sequence_ids": np.repeat([[1, 2], [1, 2]], [5, 7], axis=1) * inputs["input_mask"]}
    packed["next_sentence_positions"] = np.array([[0, 5], [0, 0]])
    for batch in (inputs, packed):
        found = []
        for training in (False, True):
            with tf.GradientTape() as tape:
                outputs = model(batch, training=training)
                loss = sum(tf.reduce_sum(tf.sin(outputs[name])) for name in ("mlm_logits", "nsp_logits"))
            found.append((outputs, tape.gradient(loss, [variable.value for variable in model.trainable_variables])))
        (evaluated, expected), (trained, gradients) = found
        assert trained.keys() == evaluated.keys() - {"sequence_output"}
        for name, tensor in trained.items():
            np.testing.assert_allclose(tensor, evaluated[name], atol=2e-6, err_msg=name)
        for variable, one, other in zip(model.trainable_variables, gradients, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=variable.path)


@pytest.mark.parametrize("model_class", [BertPretrainer, lambda encoder: BertClassifier(encoder, 2)])
def test_a_batch_of_nothing_but_padding_has_finite_answers_and_gradients(model_class):
    """As a replica, or a part of a batch, may get it at the end of the data."""
    model, inputs = model_class(make_encoder()), make_inputs([0, 0]) | {"masked_lm_positions": np.zeros((2, 1), int)}
    with tf.GradientTape() as tape:
        outputs = tf.nest.flatten(model(inputs, training=True))
        loss = tf.add_n([tf.reduce_sum(tensor) for tensor in outputs])
    found = [*outputs, *tape.gradient(loss, [variable.value for variable in model.trainable_variables])]
    assert all(np.isfinite(tensor).all() for tensor in found if tensor is not None)


def test_a_batch_in_which_no_word_is_masked_is_learned_from():
    """Whole words may leave a short text without one; the next sentence is still there."""
    model = BertPretrainer(make_encoder())
    inputs = make_inputs([12, 7]) | {"masked_lm_positions": np.zeros((2, 0), "int32")}
    for training in (False, True):
        outputs = model(inputs, training=training)
        assert outputs["mlm_logits"].shape == (2, 0, 30) and outputs["nsp_logits"].shape == (2, 2)
        assert np.isfinite(outputs["nsp_logits"]).all()


@pytest.mark.parametrize("only", ["tokens", "pooled_output"])
def test_where_shapes_must_be_static_padding_is_computed_too(only, monkeypatch):
    encoder, inputs = make_encoder(), make_inputs()
    expected = encoder(inputs, only=only)
    monkeypatch.setattr(f"{BertEncoder.__module__}._needs_static_shapes", lambda: True)
    found = encoder(inputs, only=only)
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name][:-1], tensor[:-1], atol=2e-6, err_msg=name)


def test_gradients_are_those_of_the_whole_batch():
    encoder, inputs = make_encoder(), make_inputs()
    whole = gradients_of(encoder, inputs, training=False)
    for training in (False, True):
        found = gradients_of(encoder, inputs, training=training, only="tokens")
        for variable, one, other in zip(encoder.trainable_variables, found, whole, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=variable.path)


@pytest.mark.parametrize("model_class", [BertClassifier, BertPretrainer])
def test_every_way_to_call_gives_the_same(model_class):
    model = model_class(make_encoder(), **({"num_classes": 3} if model_class is BertClassifier else {}))
    inputs = make_inputs() | ({} if model_class is BertClassifier else {"masked_lm_positions": [[0, 1]] * 5})
    inputs = {name: tf.constant(value, tf.int32) for name, value in inputs.items()}
    expected = [tensor[:-1] for tensor in keras.tree.flatten(model(inputs, training=True))]
    for jit_compile in (False, True):
        found = tf.function(model, jit_compile=jit_compile)(inputs, training=True)
        for one, other in zip(keras.tree.flatten(found), expected, strict=True):
            np.testing.assert_allclose(one[:-1], other, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("mixed_bfloat16", 0.05)])
def test_a_text_has_the_same_answer_in_any_company(dtype, tolerance):
    classifier = BertClassifier(make_encoder(dtype), 3)
    together = classifier(make_inputs())
    for number, length in enumerate(LENGTHS[:-1]):
        alone = {name: value[number : number + 1, :length] for name, value in make_inputs().items()}
        np.testing.assert_allclose(classifier(alone)[0], together[number], atol=tolerance)


def test_of_packed_rows_the_first_text_is_classified():
    classifier, inputs = BertClassifier(make_encoder(), 3), make_inputs([12, 7])
    inputs["input_sequence_ids"] = np.repeat([[1, 2], [1, 2]], [5, 7], axis=1) * inputs["input_mask"]
    alone = {name: value[:, :5] for name, value in inputs.items() if name != "input_sequence_ids"}
    np.testing.assert_allclose(classifier(inputs), classifier(alone), atol=1e-6)


def test_only_must_be_something_that_there_is():
    with pytest.raises(ValueError, match=r"only must be None, 'tokens'.*Received: only='pooled', an encoder with a"):
        make_encoder()(make_inputs(), only="pooled")
    bare = BertEncoder(make_encoder().config, add_pooler=False)
    with pytest.raises(ValueError, match="Received: only='pooled_output', an encoder without a pooler"):
        bare(make_inputs(), only="pooled_output")
    with pytest.raises(ValueError, match="only and at exclude each other.*Received: only='tokens'"):
        make_encoder()(make_inputs(), only="tokens", at=np.zeros((5, 1)))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)at must lie in \[0.*12.*sequence.*13"):
        make_encoder()(make_inputs(), at=np.full((5, 1), 13))
    model = BertPretrainer(make_encoder())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)masked_lm_positions must lie in \[0.*12"):
        model(make_inputs() | {"masked_lm_positions": np.full((5, 1), 13)}, training=True)
