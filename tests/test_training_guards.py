"""What the loop says before a run that would learn nothing."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from training_models import CLASSES, batches, token_data, token_model

from keras_bert_kit import BertClassifier, BertConfig, BertEncoder, freeze
from keras_bert_kit.errors import TrainingError
from keras_bert_kit.training import AdamW, CrossEntropy, Trainer, create_optimizer, describe_variables
from keras_bert_kit.training.guards import StuckLoss, check_batch, check_schedule
from keras_bert_kit.training.schedule import WarmUpAndDecay


def test_a_schedule_counted_in_examples_is_warned_of():
    """The lesson's: 120,000 examples, 938 steps, a warm-up of 36,000; the rate never passes 3 % of 3e-5."""
    with pytest.warns(UserWarning, match="looks like a count of examples: the rate will only reach 7.82e-07"):
        check_schedule(WarmUpAndDecay(3e-5, 120_000, 36_000), 938, batch_size=128)


def test_a_schedule_that_ends_before_the_run_is_warned_of():
    with pytest.warns(UserWarning, match="num_train_steps=10, steps=30. The rate is 0 from step 10 on"):
        check_schedule(WarmUpAndDecay(3e-5, 10, 1), 30, batch_size=8)


def test_a_warm_up_longer_than_the_run_is_warned_of():
    with pytest.warns(UserWarning, match="The warm-up is longer than the run: the rate will only reach 1e-05"):
        check_schedule(WarmUpAndDecay(3e-5, 1000, 300), 100, batch_size=32)


def test_the_trainer_looks_at_the_schedule():
    trainer = Trainer(token_model(), create_optimizer(1e-2, 1, 0), CrossEntropy())
    with pytest.warns(UserWarning, match="num_train_steps=1, steps=3"):
        trainer.fit(batches(*token_data(9), 3), 3)


def test_fitting_schedules_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_schedule(WarmUpAndDecay(3e-5, 938, 94), 938, batch_size=128)
        check_schedule(WarmUpAndDecay(3e-5, 938, 94), 100, batch_size=32)  # a part of the run
        check_schedule(0.1, 938, batch_size=128)


@pytest.mark.parametrize("label", [CLASSES, -1, 7])
def test_labels_out_of_range_are_refused_before_training(label):
    inputs, labels = token_data(9)
    labels[4, 2] = label
    model = token_model()
    before = [weight.numpy() for weight in model.weights]
    with pytest.raises(TrainingError, match=rf"from 0 to 2, or -100 for no target. Received: \[{label}\]"):
        Trainer(model, keras.optimizers.SGD(0.1), CrossEntropy()).fit(batches(inputs, labels, 9), 3)
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def test_probabilities_are_warned_of():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "softmax")])
    with pytest.warns(UserWarning, match="outputs that are probabilities"):
        check_batch(model, tf.ones((2, 4)), tf.constant([0, 1]))


def test_outputs_without_labels_may_be_anything():
    start = keras.Input((4,))
    outputs = {"logits": keras.layers.Dense(3)(start), "odds": keras.layers.Dense(3, "softmax")(start)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_batch(keras.Model(start, outputs), tf.ones((2, 4)), {"logits": tf.constant([0, 1])}) is None


def test_rows_without_tokens_are_warned_of():
    inputs = {"input_mask": keras.Input((4,), dtype="int32", name="input_mask"), "x": keras.Input((4,), name="x")}
    model = keras.Model(inputs, keras.layers.Dense(3)(inputs["x"]))
    batch = {"input_mask": tf.constant([[1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]), "x": tf.ones((3, 4))}
    with pytest.warns(UserWarning, match="Received: 1 rows with an input_mask of zeros"):
        check_batch(model, batch, tf.constant([0, 1, 2]))


def test_a_loss_at_chance_is_warned_of_once_and_others_pass():
    stuck, learning = StuckLoss(4, patience_steps=10), StuckLoss(4, patience_steps=10)
    with pytest.warns(UserWarning, match="Received: 1.3863 on average over the last 10 steps, at step 10, .*guessing"):
        for step in range(1, 11):
            stuck.see(step, np.log(4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(1, 31):
            learning.see(step, np.log(4.0) * (1 - step / 40))


def table(model, optimizer):
    lines = describe_variables(model, optimizer).splitlines()
    assert lines[0].split() == ["layer", "variables", "numbers", "trained", "decayed", "rate"]
    return [line.split() for line in lines[1:]]


def test_the_table_of_variables():
    model, optimizer = token_model(), AdamW(1e-2, weight_decay=0.1)
    optimizer.set_rate_factors([(model.weights[0], 0.25)])
    optimizer.build(model.trainable_variables)
    bias, kernel = [row[1:] for row in table(model, optimizer)]
    assert kernel == ["1", "15", "yes", "yes", "0.25"] and bias == ["1", "3", "yes", "no", "1"]
    model.layers[-1].trainable = False
    assert [row[1:] for row in table(model, optimizer)] == [["2", "18", "no", "no", "-"]]


def test_the_table_needs_an_optimizer_that_is_built():
    with pytest.raises(ValueError, match="must be built.* Received: one that is not"):
        describe_variables(token_model(), AdamW(1e-2))


def test_layers_alike_share_a_line_of_the_table():
    sizes = dict(vocab_size=100, hidden_size=16, num_hidden_layers=12, num_attention_heads=2, intermediate_size=32)
    model, optimizer = BertClassifier(BertEncoder(BertConfig(**sizes)), 4), AdamW(1e-4)
    freeze(model, layers=[0])
    optimizer.build(model.trainable_variables)
    rows = table(model, optimizer)
    assert [row[0] for row in rows] == ["embeddings"] * 2 + ["block_0"] + ["block_1"] * 2 + ["pooler"] * 2 + [
        "logits"
    ] * 2
    assert rows[3][1:] == ["to", "block_11", "88", "1,936", "yes", "no", "1"]
    assert rows[2] == ["block_0", "12", "2,224", "no", "no", "-"]
