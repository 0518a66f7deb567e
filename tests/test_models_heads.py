"""Models with one head: tokens, answers, choices, next sentence. Shapes, losses, saving, and wrong inputs."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import randomize_weights
from test_models import CONFIG, LOSS, equal, make_encoder, make_inputs

from keras_bert_kit.models import (
    BertEncoder,
    BertMultipleChoice,
    BertNextSentence,
    BertPretrainer,
    BertQuestionAnswering,
    BertTokenClassifier,
    add_tokens,
)

MODELS = {
    "token_classifier": lambda encoder: BertTokenClassifier(encoder, 5, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"], 0.3),
    "question_answering": BertQuestionAnswering,
    "multiple_choice": lambda encoder: BertMultipleChoice(encoder, dropout_rate=0.3),
    "next_sentence": BertNextSentence,
}


def make_model(name, **options):
    model = MODELS[name](make_encoder(**options))
    randomize_weights(model)
    return model


def make_choices(batch=2, choices=3, sequence=7):
    flat = make_inputs(batch * choices, sequence)
    return {key: tensor.reshape(batch, choices, sequence) for key, tensor in flat.items()}


def inputs_for(name):
    return make_choices() if name == "multiple_choice" else make_inputs()


def cross_entropies(logits, labels):
    """NumPy's -log softmax at the labels, in nats; labels below 0 give a number that means nothing."""
    logits = np.asarray(logits, np.float64)
    log_sums = np.log(np.exp(logits).sum(-1))
    return log_sums - np.take_along_axis(logits, np.maximum(labels, 0)[..., None], -1)[..., 0]


def test_shapes_and_dtypes():
    assert make_model("token_classifier")(make_inputs()).shape == (3, 7, 5)
    answers = make_model("question_answering")(make_inputs())
    assert {key: tensor.shape for key, tensor in answers.items()} == {"start_logits": (3, 7), "end_logits": (3, 7)}
    assert make_model("multiple_choice")(make_choices()).shape == (2, 3)
    assert make_model("next_sentence")(make_inputs()).shape == (3, 2)


@pytest.mark.parametrize("name", MODELS)
def test_eager_graph_xla_and_functional_calls_agree_with_unknown_axes(name):
    model, inputs = make_model(name), inputs_for(name)
    rank = inputs["input_mask"].ndim
    symbolic = {key: keras.Input((None,) * (rank - 1), dtype="int32", name=key) for key in inputs}
    signature = [{key: tf.TensorSpec((None,) * rank, "int32") for key in inputs}]
    graph = tf.function(model, input_signature=signature)
    for way in (graph, tf.function(model, jit_compile=True), keras.Model(symbolic, model(symbolic))):
        equal(way({key: tf.constant(x, "int32") for key, x in inputs.items()}), model(inputs), atol=1e-5)
    equal(model.predict(inputs, verbose=0), model(inputs), atol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("name", MODELS)
def test_configs_and_keras_files_keep_every_model(name, policy, tmp_path):
    model, inputs = make_model(name, dtype=policy), inputs_for(name)
    assert all(tensor.dtype == tf.float32 for tensor in keras.tree.flatten(model(inputs)))
    assert type(model).from_config(model.get_config()).get_config() == model.get_config()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model) and loaded.dtype_policy.name == policy
    equal(loaded(inputs), model(inputs))
    for attribute in ("class_names", "dropout_rate"):
        assert getattr(loaded, attribute, None) == getattr(model, attribute, None)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("token_classifier", np.tile([0, 1, 2, 3, 4, -100, 0], (3, 1))),
        ("question_answering", {"start_logits": np.array([0, 2, 3]), "end_logits": np.array([0, 4, 3])}),
        ("multiple_choice", np.array([2, 0])),
        ("next_sentence", np.array([0, 1, 1])),
    ],
)
def test_every_model_learns_by_fit(name, labels):
    keras.utils.set_random_seed(1)
    model, inputs = make_model(name), inputs_for(name)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
    model.compile(keras.optimizers.Adam(1e-2), keras.tree.map_structure(lambda _: loss, labels))
    before = [variable.numpy() for variable in model.trainable_variables]
    history = model.fit(inputs, labels, epochs=15, verbose=0).history["loss"]
    assert history[-1] < history[0] / 2
    for variable, old in zip(model.trainable_variables, before, strict=True):
        assert np.any(variable.numpy() != old), f"{variable.path} does not learn"
    pooler = {variable.path for variable in model.encoder.pooler.variables}
    uses_it = name in ("multiple_choice", "next_sentence")
    assert bool(pooler & {variable.path for variable in model.trainable_variables}) == uses_it


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_padding_and_ignored_labels_of_a_token_classifier_count_neither_in_the_loss_nor_in_metrics(policy):
    model, inputs = make_model("token_classifier", dtype=policy), make_inputs()
    labels = np.random.default_rng(0).integers(0, 5, (3, 7))
    labels[:, 0] = -100
    symbolic = {key: keras.Input((None,), dtype="int32", name=key) for key in inputs}
    counts = (inputs["input_mask"] == 1) & (labels != -100)
    logits = model(inputs)
    for one in (model, keras.Model(symbolic, model(symbolic))):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
        one.compile("sgd", loss, weighted_metrics=["accuracy"])
        for weights in ({}, {"sample_weight": labels != -100}):
            result = one.evaluate(inputs, labels, verbose=0, return_dict=True, **weights)
            np.testing.assert_allclose(result["loss"], cross_entropies(logits, labels)[counts].mean(), atol=5e-3)
        right = np.argmax(logits, axis=-1) == labels
        np.testing.assert_allclose(result["accuracy"], right[counts].mean(), atol=1e-6)


def test_the_loss_of_question_answering_is_that_of_both_positions():
    model, inputs = make_model("question_answering"), make_inputs()
    labels = {"start_logits": np.array([0, 2, -100]), "end_logits": np.array([0, 4, -100])}
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)
    model.compile("sgd", {"start_logits": loss, "end_logits": loss})
    outputs = model(inputs)
    expected = sum(cross_entropies(outputs[key], labels[key])[:2].mean() for key in labels)
    np.testing.assert_allclose(model.evaluate(inputs, labels, verbose=0, return_dict=True)["loss"], expected, atol=1e-5)


def test_each_choice_is_read_by_itself():
    model, inputs = make_model("multiple_choice"), make_choices(choices=4)
    logits = model(inputs)
    for number in range(4):
        one = {key: tensor[:, number : number + 1] for key, tensor in inputs.items()}
        equal(model(one), logits[:, number : number + 1], atol=1e-6)
    with pytest.raises(ValueError, match=r"must have the axes \(batch, choices, sequence\). Received: shape \(3, 7\)"):
        model(make_inputs())


def test_the_next_sentence_head_alone_is_that_of_the_pretrainer():
    encoder = make_encoder()
    pretrainer, model = BertPretrainer(encoder), BertNextSentence(encoder)
    randomize_weights(pretrainer)
    model.head.set_weights(pretrainer.next_sentence_head.get_weights())
    outputs = pretrainer(make_inputs() | {"masked_lm_positions": np.zeros((3, 1), "int32")})
    equal(model(make_inputs()), outputs["nsp_logits"], atol=1e-6)


@pytest.mark.parametrize("name", ["multiple_choice", "next_sentence"])
def test_heads_on_the_pooled_output_need_a_pooler(name):
    with pytest.raises(ValueError, match="encoder must have a pooler.*allow_missing"):
        MODELS[name](make_encoder(add_pooler=False))


def test_class_names_of_tokens_must_fit():
    with pytest.raises(ValueError, match="that many different names. Received: num_classes=2, class_names=.'O'"):
        BertTokenClassifier(make_encoder(), 2, ["O"])


def test_a_frozen_encoder_stays_as_it_is_while_the_head_learns():
    encoder, inputs = make_encoder(add_pooler=False), make_inputs()
    encoder.trainable = False
    model = BertTokenClassifier(encoder, 2)
    before = [weight.numpy() for weight in encoder.weights]
    model.compile("sgd", LOSS)
    model.fit(inputs, inputs["input_type_ids"], verbose=0)
    equal([weight.value for weight in encoder.weights], before)
    assert [weight.path.split("/")[-1] for weight in model.trainable_weights] == ["kernel", "bias"]


def test_new_tokens_for_a_token_classifier():
    from keras_bert_kit.text import BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(letter) for letter in range(ord("a"), ord("z")))]
    model = MODELS["token_classifier"](BertEncoder(CONFIG))
    tokenizer, larger, ids = add_tokens(BertTokenizer(words), model, ["abc"])
    assert larger.class_names == model.class_names and larger.encoder.config.vocab_size == tokenizer.vocab_size == 31
    equal(larger(make_inputs()), model(make_inputs()))
    assert ids == {"abc": 30}
