"""The joint loss of pre-training: against PyTorch and NumPy, one replica against two, and what the loop shows of it."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit import BertConfig, BertEncoder, BertPretrainer
from keras_bert_kit.errors import TrainingError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.training import Evaluator, PretrainingLoss, Trainer, make_strategy
from keras_bert_kit.training.guards import StuckLoss, check_batch
from keras_bert_kit.training.losses import _cross_entropy

VOCABULARY, LENGTH, PREDICTIONS = 40, 12, 5


def pretrainer(next_sentence=True):
    """A BERT small enough to train for a few steps, the same each time, without dropout."""
    keras.utils.set_random_seed(3)
    sizes = dict(vocab_size=VOCABULARY, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    config = BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.3)
    return BertPretrainer(BertEncoder(config), next_sentence=next_sentence)


def masked_batch(rows, seed=0):
    """Inputs and labels of random text, with 1 to 5 masked words a row: more in later rows."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(6, LENGTH + 1, rows)
    mask = (np.arange(LENGTH) < lengths[:, None]).astype("int32")
    there = np.arange(PREDICTIONS) < np.linspace(1, PREDICTIONS, rows).astype(int)[:, None]
    inputs = {
        "input_word_ids": rng.integers(1, VOCABULARY, (rows, LENGTH)).astype("int32") * mask,
        "input_mask": mask,
        "input_type_ids": (np.arange(LENGTH) > 3).astype("int32") * mask,
        "masked_lm_positions": np.where(there, rng.integers(1, 6, there.shape), 0).astype("int32"),
    }
    labels = {
        "mlm_logits": np.where(there, rng.integers(0, VOCABULARY, there.shape), -100).astype("int32"),
        "nsp_logits": rng.integers(0, 2, rows).astype("int32"),
    }
    return inputs, labels


def dataset(data, batch_size):
    return tf.data.Dataset.from_tensor_slices(data).batch(batch_size)


def numpy_means(labels, logits):
    """Mean cross-entropy and accuracy over the targets, in float64."""
    labels, logits = np.asarray(labels).reshape(-1), np.asarray(logits, "float64").reshape(-1, np.shape(logits)[-1])
    labels, logits = labels[labels != -100], logits[labels != -100]
    top = logits.max(axis=-1)
    losses = top + np.log(np.exp(logits - top[:, None]).sum(axis=-1)) - logits[np.arange(len(labels)), labels]
    return losses.mean(), (logits.argmax(axis=-1) == labels).mean()


@pytest.mark.parametrize("name", ["pretraining_gelu", "pretraining_gelu_new"])
def test_the_losses_of_pytorch(shared, name):
    """`BertForPreTraining` computes every position; here those with a label are gathered, with fillers beside them."""
    folder = shared / "fixtures/hf" / name
    golden, model = np.load(folder / "goldens.npz"), load_pretrained(folder).pretrainer
    theirs = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
    inputs = {ours: golden[key].astype("int32") for ours, key in theirs.items()}
    nsp = golden["next_sentence_label"].astype("int32")
    masked = golden["labels"] != -100
    order = np.argsort(~masked, axis=1, kind="stable")[:, : masked.sum(axis=1).max()]
    gathered = inputs | {"masked_lm_positions": np.where(np.take_along_axis(masked, order, 1), order, 0)}
    everywhere = inputs | {"masked_lm_positions": np.tile(np.arange(16), (3, 1))}
    for inputs, mlm in ((gathered, np.take_along_axis(golden["labels"], order, 1)), (everywhere, golden["labels"])):
        data = dataset((inputs, {"mlm_logits": mlm.astype("int32"), "nsp_logits": nsp}), 2)
        results = Evaluator(model, PretrainingLoss())(data)
        assert results["loss"] == pytest.approx(float(golden["loss"]), abs=1e-5)
        mlm_loss, mlm_accuracy = numpy_means(golden["labels"], golden["prediction_logits"])
        nsp_loss, nsp_accuracy = numpy_means(nsp, golden["seq_relationship_logits"])
        assert results["mlm_loss"] == pytest.approx(mlm_loss, abs=1e-5)
        assert results["nsp_loss"] == pytest.approx(nsp_loss, abs=1e-5)
        assert (results["mlm_accuracy"], results["nsp_accuracy"]) == pytest.approx((mlm_accuracy, nsp_accuracy))
        assert results["mlm_perplexity"] == pytest.approx(np.exp(mlm_loss), rel=1e-4)


def test_cross_entropy_and_its_gradient_are_tensorflows():
    """Far from 0 and from each other too, where a probability is 0 in float32; and without any row."""
    rng = np.random.default_rng(0)
    logits = tf.constant(np.concatenate([rng.normal(size=(6, 30)), 300 * rng.normal(size=(6, 30))]), tf.float32)
    labels = tf.constant(rng.integers(0, 30, 12), tf.int32)
    theirs = tf.nn.sparse_softmax_cross_entropy_with_logits
    weights = tf.range(12.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        ours, expected = _cross_entropy(labels, logits), theirs(labels, logits)
        totals = tf.reduce_sum(ours * weights), tf.reduce_sum(expected * weights)
    np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(tape.gradient(totals[0], logits), tape.gradient(totals[1], logits), atol=1e-6)
    assert _cross_entropy(labels[:0], logits[:0]).shape == (0,)


def test_zero_means_that_b_follows_a():
    """FC37: label 0, and column 0 of the logits."""
    sure = {"mlm_logits": tf.zeros((2, 1, 9)), "nsp_logits": tf.constant([[20.0, -20.0], [20.0, -20.0]])}
    loss = PretrainingLoss()
    for label, expected in ((0, 0.0), (1, 40.0)):
        labels = {"mlm_logits": tf.constant([[3], [-100]]), "nsp_logits": tf.constant([label, label])}
        assert float(loss.sums(labels, sure)["nsp_loss"]) / 2 == pytest.approx(expected, abs=1e-6)
        right, count = loss.metrics(labels, sure)["nsp_accuracy"]
        assert float(right / count) == (label == 0)


def trained(replicas, **options):
    strategy = make_strategy("mirrored", replicas) if replicas > 1 else make_strategy("cpu")
    with strategy.scope():
        model, optimizer = pretrainer(), keras.optimizers.SGD(0.1, global_clipnorm=1.0)
    trainer = Trainer(model, optimizer, PretrainingLoss(), strategy=strategy, **options)
    return trainer, trainer.fit(dataset(masked_batch(11), 4), 20)


@pytest.fixture(scope="module")
def one_replica():
    return trained(1)


@pytest.mark.parametrize(("replicas", "accumulation_steps"), [(2, 1), (1, 2)])
def test_unequal_shares_of_a_batch_give_the_same_weights(one_replica, replicas, accumulation_steps):
    """The rows of the second replica have more masked words, and the last batch has three rows."""
    many, history = trained(replicas, accumulation_steps=accumulation_steps)
    for ours, theirs in zip(many.model.weights, one_replica[0].model.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-6)
    for ours, theirs in zip(history.records, one_replica[1].records, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-5)


def test_what_a_step_logs(one_replica):
    records = one_replica[1].records
    for record in records:
        assert record["loss"] == pytest.approx(record["mlm_loss"] + record["nsp_loss"], abs=1e-5)
        assert record["mlm_perplexity"] == pytest.approx(np.exp(record["mlm_loss"]), rel=1e-5)
        assert 0 <= record["mlm_accuracy"] <= 1 and 0 <= record["nsp_accuracy"] <= 1
    assert records[-1]["mlm_loss"] < records[0]["mlm_loss"]


@pytest.mark.parametrize("replicas", [1, 2])
def test_evaluation_is_exact(replicas):
    strategy = make_strategy("mirrored", replicas) if replicas > 1 else make_strategy("cpu")
    with strategy.scope():
        model = pretrainer()
    inputs, labels = masked_batch(11)
    results = Evaluator(model, PretrainingLoss(), strategy)(dataset((inputs, labels), 5))
    outputs = model(inputs)
    for task in ("mlm", "nsp"):
        loss, accuracy = numpy_means(labels[f"{task}_logits"], outputs[f"{task}_logits"])
        assert results[f"{task}_loss"] == pytest.approx(loss, abs=1e-5)
        assert results[f"{task}_accuracy"] == pytest.approx(accuracy, abs=1e-7)
    assert results["loss"] == pytest.approx(results["mlm_loss"] + results["nsp_loss"], abs=1e-12)
    assert results["mlm_perplexity"] == pytest.approx(np.exp(results["mlm_loss"]), rel=1e-6)


def test_masked_words_alone():
    """Labels of the next sentence may be in the data; a model without that head is trained on words."""
    inputs, labels = masked_batch(4)
    trainer = Trainer(pretrainer(next_sentence=False), keras.optimizers.SGD(0.1), PretrainingLoss(next_sentence=False))
    history = trainer.fit(dataset((inputs, labels), 4), 2, validation_dataset=dataset((inputs, labels), 4))
    assert "nsp_loss" not in history.records[0]
    assert set(history.validations[0][1]) == {"loss", "mlm_loss", "mlm_accuracy", "mlm_perplexity"}


def test_what_a_person_sees_and_that_the_best_perplexity_is_the_lowest(capsys):
    data = dataset(masked_batch(4), 4)
    trainer = Trainer(pretrainer(), keras.optimizers.SGD(0.1), PretrainingLoss(), steps_per_call=5)
    history = trainer.fit(data, 10, validation_dataset=data, validate_every=5, monitor="mlm_perplexity")
    assert history.best == min(results["mlm_perplexity"] for _, results in history.validations)
    *_, step, evaluation = capsys.readouterr().err.splitlines()
    assert "mlm_accuracy" in step and "nsp_accuracy" in step and "mlm_perplexity" in evaluation


@pytest.mark.parametrize(
    ("name", "label", "message"),
    [
        ("mlm_logits", VOCABULARY, "Labels of mlm_logits must be class numbers from 0 to 39.*Received: .40."),
        ("nsp_logits", 2, "Labels of nsp_logits must be class numbers from 0 to 1.*Received: .2."),
    ],
)
def test_labels_out_of_range_are_refused(name, label, message):
    inputs, labels = masked_batch(4)
    labels[name].flat[0] = label
    with pytest.raises(TrainingError, match=message):
        Trainer(pretrainer(), keras.optimizers.SGD(0.1), PretrainingLoss()).fit(dataset((inputs, labels), 4), 1)


def test_a_loss_near_chance_is_no_alarm():
    """The next sentence stays at ln(2) for thousands of steps, and the words begin at ln(vocabulary)."""
    stuck = StuckLoss(check_batch(pretrainer(), *next(iter(dataset(masked_batch(4), 4)))), patience_steps=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(10):
            stuck.see(step, np.log(VOCABULARY) + (step % 2) * np.log(2))


def test_a_model_or_data_without_next_sentence_is_refused():
    inputs, labels = masked_batch(4)
    loss = PretrainingLoss()
    with pytest.raises(ValueError, match=r"outputs of the model must be .*mlm_logits, nsp_logits. Received: .*"):
        Evaluator(pretrainer(next_sentence=False), loss)(dataset((inputs, labels), 4))
    with pytest.raises(ValueError, match=r"labels must be a dictionary .*Received: \('mlm_logits',\)"):
        loss.counts({"mlm_logits": labels["mlm_logits"]})
    with pytest.raises(ValueError, match="Received: EagerTensor"):
        loss.counts(tf.constant([1]))
