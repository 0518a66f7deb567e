"""benchmarks/int8.py measures a model that computes what the kit's does, but for the rounding of int8."""

import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from layer_checks import randomize_weights
from tensorflow.python.framework import kernels

import keras_bert_kit as kbk

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import int8_layers

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "news", "sport", "cup", "bank"]
TEXTS = ["news sport cup", "bank", "cup cup sport news bank", "sport news"]

pytestmark = pytest.mark.skipif(
    not kernels.get_registered_kernels_for_op(int8_layers.OP).kernel,
    reason=f"TensorFlow has no kernel for {int8_layers.OP} here (builds without oneDNN lack it)",
)


def new_classifier(activation):
    keras.utils.set_random_seed(0)
    config = kbk.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        hidden_act=activation,
    )
    model = kbk.BertClassifier(kbk.BertEncoder(config), 3)
    randomize_weights(model)
    return model, kbk.BertPacker(kbk.BertTokenizer(WORDS), None, max_sequence_length=64)


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh"])
def test_logits_are_those_of_float32_but_for_rounding(activation):
    model, pack = new_classifier(activation)
    inputs = pack(TEXTS)
    exact = model(inputs).numpy()
    largest = int8_layers.largest_inputs(model, pack, TEXTS, batch_size=2)
    assert len(largest) == 8 and min(largest.values()) > 0
    np.testing.assert_array_equal(model(inputs), exact)  # calibration leaves the model as it was
    int8_layers.to_int8(model, largest)
    rounded = tf.function(model)(inputs).numpy()
    error = np.abs(rounded - exact).max() / np.abs(exact).max()
    assert 1e-5 < error < 0.05


@pytest.mark.filterwarnings("ignore:.*tf.compat.v1.saved_model.load")
def test_the_saved_model_answers_the_same(tmp_path):
    import int8

    model, pack = new_classifier("gelu_erf")
    int8_layers.to_int8(model, int8_layers.largest_inputs(model, pack, TEXTS))
    answer = int8.answers_of(int8_layers.save_int8(model, pack, tmp_path / "int8"))
    expected = tf.nn.softmax(tf.function(model)(pack(TEXTS)))
    np.testing.assert_allclose(answer(TEXTS), expected, atol=2e-2)
