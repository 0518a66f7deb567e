import keras
import pytest
import tensorflow as tf

from keras_bert_kit.data import Examples, ShuffledBatches, classification_dataset
from keras_bert_kit.data.autotune import without_autotune
from keras_bert_kit.training import CrossEntropy, evaluation, loop
from keras_bert_kit.training.evaluation import Evaluator


def is_off(dataset):
    return dataset.options().autotune.enabled is False


def test_the_elements_stay_and_what_somebody_chose_stays():
    dataset = tf.data.Dataset.range(7).map(lambda x: 2 * x, num_parallel_calls=tf.data.AUTOTUNE)
    off = without_autotune(dataset)
    assert is_off(off) and not is_off(dataset)
    assert list(off.as_numpy_iterator()) == [0, 2, 4, 6, 8, 10, 12]
    options = tf.data.Options()
    options.autotune.enabled = True
    options.deterministic = False
    chosen = dataset.with_options(options)
    assert without_autotune(chosen) is chosen


def test_what_keras_fits_is_without():
    examples = Examples(["a", "b"], ["x", "y"])
    assert is_off(classification_dataset(examples, lambda texts: {"texts": texts}, ("x", "y"), 2))


@pytest.mark.parametrize(
    "dataset", [tf.data.Dataset.range(3), ShuffledBatches(3, 1, lambda indices: indices)], ids=["dataset", "batches"]
)
def test_what_the_trainer_trains_on_is_without(dataset):
    assert is_off(loop._from_position(dataset, loop._State()))


def test_what_is_evaluated_is_without(monkeypatch):
    seen = []
    monkeypatch.setattr(evaluation, "share_batches", lambda dataset, _: seen.append(dataset) or dataset)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    Evaluator(model, CrossEntropy())(tf.data.Dataset.from_tensors((tf.ones([3, 2]), tf.zeros([3], tf.int32))))
    assert is_off(*seen)
