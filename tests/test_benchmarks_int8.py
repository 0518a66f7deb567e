"""benchmarks/int8.py puts the kit's export in int8 beside the others."""

import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from layer_checks import randomize_weights

import keras_bert_kit as kbk
from keras_bert_kit.serving import calibration, check

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import int8

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "news", "sport", "cup", "bank"]
TEXTS = [f"{a} {b} {c}" for a in WORDS[5:] for b in WORDS[5:] for c in WORDS[5:]]


@pytest.mark.skipif(not calibration.has_kernel(), reason="TensorFlow has no int8 product here (no oneDNN)")
@pytest.mark.filterwarnings("ignore:.*tf.compat.v1.saved_model.load")
@pytest.mark.slow
def test_the_contenders_are_of_the_same_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)
    config = {"vocab_size": len(WORDS), "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}

    def model_and_packer(options, shape, dtype):
        keras.utils.set_random_seed(0)
        model = kbk.BertClassifier(kbk.BertEncoder(kbk.BertConfig(**config, num_attention_heads=2), dtype=dtype), 3)
        randomize_weights(model)
        return model, kbk.BertPacker(kbk.BertTokenizer(WORDS), None, max_sequence_length=64)

    monkeypatch.setattr(int8, "model_and_packer", model_and_packer)
    contenders, class_names = int8.contenders_of(SimpleNamespace(constants=True), None, TEXTS, tmp_path)
    assert list(contenders) == ["float32", "int8", "bfloat16, variables", "bfloat16, constants"]
    answers = {name: answer(TEXTS) for name, answer in contenders.items()}
    for answer in answers.values():
        np.testing.assert_allclose(answer, answers["float32"], atol=0.1)
    assert np.abs(answers["int8"] - answers["float32"]).max() > 1e-5 and len(class_names) == 3
