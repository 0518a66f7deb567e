"""The models: TF-Hub's dictionary, the lesson's functional code, saving, freezing, and wrong inputs."""

import subprocess
import sys
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import randomize_weights

from keras_bert_kit.config import BertConfig
from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer

CONFIG = BertConfig(
    vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=12
)
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make_inputs(batch=3, sequence=7, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.ones((batch, sequence), dtype="int64")
    mask[0, -2:] = 0
    types = np.zeros_like(mask)
    types[:, sequence // 2 :] = 1
    return {
        "input_word_ids": rng.integers(0, 30, (batch, sequence)) * mask,
        "input_mask": mask,
        "input_type_ids": types * mask,
    }


def make_encoder(**options):
    encoder = BertEncoder(CONFIG, **options)
    randomize_weights(encoder)
    return encoder


def equal(one, other, atol=0.0):
    flat = zip(keras.tree.flatten(one), keras.tree.flatten(other), strict=True)
    for a, b in flat:
        np.testing.assert_allclose(np.asarray(tf.cast(a, tf.float32)), np.asarray(tf.cast(b, tf.float32)), atol=atol)


def test_the_encoder_gives_tf_hubs_dictionary():
    outputs = make_encoder()(make_inputs())
    assert outputs.keys() == {"pooled_output", "default", "sequence_output", "encoder_outputs"}
    assert outputs["pooled_output"].shape == (3, 16) and outputs["default"] is outputs["pooled_output"]
    assert [x.shape for x in outputs["encoder_outputs"]] == [(3, 7, 16)] * 2
    equal(outputs["sequence_output"], outputs["encoder_outputs"][-1])


def test_hidden_states_and_attention_scores_when_asked_for():
    encoder, inputs = make_encoder(), make_inputs()
    outputs = encoder(inputs, return_hidden_states=True, return_attention_scores=True)
    equal(outputs["hidden_states"][1:], outputs["encoder_outputs"])
    equal(outputs["hidden_states"][0], encoder.embeddings(inputs["input_word_ids"], inputs["input_type_ids"]))
    for scores in outputs["attention_scores"]:
        assert scores.shape == (3, 4, 7, 7)
        np.testing.assert_allclose(tf.reduce_sum(scores, -1), 1.0, atol=1e-6)
        assert np.all(scores.numpy()[0, :, :, -2:] == 0)


def test_eager_graph_xla_and_functional_calls_agree():
    encoder, inputs = make_encoder(), make_inputs()
    expected = encoder(inputs)
    symbolic = {key: keras.Input((None,), dtype="int32", name=key) for key in inputs}
    ways = (tf.function(encoder), tf.function(encoder, jit_compile=True), keras.Model(symbolic, encoder(symbolic)))
    for way in ways:
        equal(way(inputs), expected, atol=1e-5)


def test_padding_changes_nothing():
    encoder, inputs = make_encoder(), make_inputs(batch=1, sequence=7)
    short = {key: value[:, :5] for key, value in inputs.items()}
    equal(encoder(inputs)["sequence_output"][:, :5], encoder(short)["sequence_output"], atol=1e-6)


def test_pooling_over_tokens_leaves_padding_out():
    encoder, inputs = make_encoder(), make_inputs(batch=1)
    symbolic = {key: keras.Input((None,), dtype="int32", name=key) for key in inputs}
    pooled = keras.layers.GlobalAveragePooling1D()(encoder(symbolic)["sequence_output"])
    short = {key: value[:, :5] for key, value in inputs.items()}
    expected = tf.reduce_mean(encoder(short)["sequence_output"], axis=1)
    for model in (keras.Model(symbolic, pooled), tf.function(keras.Model(symbolic, pooled))):
        equal(model(inputs), expected, atol=1e-6)


def test_the_encoder_without_a_pooler_has_no_pooled_output():
    encoder = make_encoder(add_pooler=False)
    assert encoder(make_inputs()).keys() == {"sequence_output", "encoder_outputs"}
    with pytest.raises(ValueError, match="encoder must have a pooler.*allow_missing"):
        BertClassifier(encoder, 2)
    with pytest.raises(ValueError, match="next_sentence=True needs an encoder with a pooler"):
        BertPretrainer(encoder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda inputs: list(inputs.values()), r"must be a dictionary with the keys input_word_ids.*a list.*dict\(zip"),
        (lambda inputs: inputs["input_word_ids"], "must be a dictionary.*Received: a ndarray|EagerTensor"),
        (lambda inputs: {"input_word_ids": inputs["input_word_ids"]}, "missing: input_mask, input_type_ids"),
        (lambda inputs: {key: x[0] for key, x in inputs.items()}, r"\(batch, sequence\). Received: shape \(7,\)"),
        (
            lambda inputs: inputs | {"input_mask": inputs["input_mask"][:, :6]},
            r"one shape.*\(3, 7\), \(3, 6\), \(3, 7\)",
        ),
        (lambda inputs: inputs | {"input_mask": inputs["input_mask"][:2]}, r"one shape.*\(3, 7\), \(2, 7\), \(3, 7\)"),
    ],
)
def test_wrong_inputs_are_refused(change, message):
    encoder = make_encoder()
    for model in (encoder, BertClassifier(encoder, 2)):
        with pytest.raises(ValueError, match=message):
            model(change(make_inputs()))


@pytest.mark.parametrize("name", ["input_mask", "input_word_ids", "input_type_ids"])
def test_inputs_of_different_shapes_are_refused_in_graphs_too(name):
    """A mask one token shorter gave other probabilities, and fewer masks than texts gave fewer answers."""
    inputs, model = make_inputs(), BertClassifier(make_encoder(), 2)
    signature = {key: tf.TensorSpec((None, None), tf.int32) for key in inputs}
    answer = tf.function(lambda inputs: model(inputs, training=False), input_signature=[signature])
    inputs = {key: tf.cast(tensor, tf.int32) for key, tensor in inputs.items()}
    assert answer(inputs).shape == (3, 2)
    for wrong in (inputs[name][:, 1:], inputs[name][:2]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have one shape, an entry for each token"):
            answer(inputs | {name: wrong})


def test_models_are_built_on_an_encoder():
    loaded = SimpleNamespace(encoder=make_encoder())
    for make in (lambda given: BertClassifier(given, 2), BertPretrainer):
        with pytest.raises(
            ValueError, match=r"encoder must be a BertEncoder. Received: a SimpleNamespace. Give its .enc"
        ):
            make(loaded)
        with pytest.raises(ValueError, match="Received: a str. load_pretrained"):
            make("all-MiniLM-L6-v2")


def test_a_sequence_longer_than_the_table_is_refused():
    assert make_encoder()(make_inputs(sequence=12))["sequence_output"].shape == (3, 12, 16)
    with pytest.raises(ValueError, match="max_position_embeddings=12. Received: 13 tokens"):
        make_encoder()(make_inputs(sequence=13))


def test_the_classifier_gives_logits_and_learns():
    keras.utils.set_random_seed(1)
    model, inputs = BertClassifier(make_encoder(), 3, ["a", "b", "c"]), make_inputs(batch=6)
    assert model(inputs).shape == (6, 3) and model(inputs).dtype == tf.float32
    model.compile(keras.optimizers.Adam(1e-2), LOSS, metrics=["accuracy"])
    history = model.fit(inputs, np.arange(6) % 3, epochs=12, verbose=0).history
    assert history["loss"][-1] < history["loss"][0] / 2


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        keras.losses.sparse_categorical_crossentropy,
        keras.losses.SparseCategoricalCrossentropy(),
    ],
)
def test_a_loss_that_takes_logits_for_probabilities_is_refused(loss):
    """The default of Keras' losses, which gave a loss of 5.9 without a word."""
    model, inputs = BertClassifier(make_encoder(), 2), make_inputs()
    model.compile("adam", loss)
    for use in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="The loss must take logits.*which takes probabilities"):
            use(inputs, np.array([0, 1, 0]), verbose=0)
    model.compile("adam", LOSS)
    model.fit(inputs, np.array([0, 1, 0]), verbose=0)


@pytest.mark.parametrize(("num_classes", "names"), [(1, None), (3, ["a", "b"]), (2, ["a", "a"]), (2, ["a", "b", "c"])])
def test_class_names_must_fit(num_classes, names):
    with pytest.raises(ValueError, match=f"that many different names. Received: num_classes={num_classes}"):
        BertClassifier(make_encoder(), num_classes, names)


def test_a_frozen_encoder_stays_as_it_is_while_the_head_learns():
    encoder, inputs = make_encoder(), make_inputs()
    encoder.trainable = False
    model = BertClassifier(encoder, 2)
    before = [weight.numpy() for weight in encoder.weights]
    model.compile("sgd", LOSS)
    model.fit(inputs, np.array([0, 1, 0]), verbose=0)
    equal([weight.value for weight in encoder.weights], before)
    assert [weight.path.split("/")[-1] for weight in model.trainable_weights] == ["kernel", "bias"]


def test_the_pretrainer_gives_both_logits_and_shares_the_encoder():
    encoder = make_encoder()
    model = BertPretrainer(encoder)
    inputs = make_inputs() | {"masked_lm_positions": np.array([[1, 2], [0, 6], [3, 3]])}
    outputs = model(inputs)
    assert outputs["mlm_logits"].shape == (3, 2, 30) and outputs["nsp_logits"].shape == (3, 2)
    equal(outputs["sequence_output"], encoder(make_inputs())["sequence_output"])
    assert "nsp_logits" not in BertPretrainer(encoder, next_sentence=False)(inputs)
    with pytest.raises(ValueError, match="missing: masked_lm_positions"):
        model(make_inputs())


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_keras_files_keep_every_model(policy, tmp_path):
    encoder = make_encoder(dtype=policy)
    positions = {"masked_lm_positions": np.array([[1, 2], [0, 6], [3, 3]])}
    for model in (encoder, BertClassifier(encoder, 3, ["x", "y", "z"]), BertPretrainer(encoder)):
        model.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
        equal(loaded(make_inputs() | positions), model(make_inputs() | positions))
        assert loaded.dtype_policy.name == policy
        model.save_weights(tmp_path / "model.weights.h5")
        loaded.set_weights([0 * weight for weight in model.get_weights()])
        loaded.load_weights(tmp_path / "model.weights.h5")
        equal(loaded(make_inputs() | positions), model(make_inputs() | positions))


def test_mixed_precision_keeps_float32_logits_near_those_of_float32():
    model = BertClassifier(make_encoder(), 3)
    for policy in ("mixed_bfloat16", "mixed_float16"):
        half = BertClassifier(BertEncoder(CONFIG, dtype=policy), 3)
        half.set_weights(model.get_weights())
        logits = half(make_inputs())
        assert logits.dtype == tf.float32 and {weight.dtype for weight in half.weights} == {"float32"}
        equal(logits, model(make_inputs()), atol=0.1)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_row_masked_out_entirely_leaves_the_others_alone(policy):
    encoder, inputs = make_encoder(dtype=policy), make_inputs(batch=2)
    inputs["input_mask"][1] = 0
    both = encoder(inputs)["sequence_output"]
    assert np.all(np.isfinite(tf.cast(both, tf.float32)))
    equal(both[:1], encoder({key: x[:1] for key, x in inputs.items()})["sequence_output"], atol=1e-3)


@pytest.mark.slow
def test_fit_on_two_replicas_equals_fit_on_one():
    """In a fresh process, since the number of logical CPUs is settled once."""
    code = """
import contextlib, keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from keras_bert_kit.config import BertConfig
from keras_bert_kit.models import BertClassifier, BertEncoder
from keras_bert_kit.training import AdamW
config = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
ids = np.random.default_rng(0).integers(0, 30, (8, 6))
inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
weights = []
for strategy in (None, tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])):
    keras.utils.set_random_seed(0)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = BertClassifier(BertEncoder(config), 3)
        model.compile(AdamW(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensor_slices((inputs, np.arange(8) % 3)).batch(8).repeat(5)
    model.fit(data, verbose=0, shuffle=False)
    weights.append(model.get_weights())
# A key's bias has no gradient but rounding, which Adam blows up: columns D to 2D of each qkv bias are left out.
for one, two in zip(*weights):
    if one.shape == (48,):
        one, two = np.delete(one, slice(16, 32)), np.delete(two, slice(16, 32))
    np.testing.assert_allclose(one, two, atol=1e-5)
print("equal")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "equal", done.stderr[-3000:]
