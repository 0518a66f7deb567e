"""Models of keras-hub in memory, to ours and back: equal outputs. Needs keras-hub, so these run with `-m peers`."""

import dataclasses
import sys

import numpy as np
import pytest
from fake_weights import VOCABULARY

from keras_bert_kit.config import BertConfig
from keras_bert_kit.models import BertEncoder
from keras_bert_kit.pretrained.keras_hub_models import from_keras_hub, to_keras_hub

peers = pytest.mark.peers

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
OURS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}
THEIRS = dict(zip(("token_ids", "padding_mask", "segment_ids"), OURS.values(), strict=True))
CONFIG = BertConfig(
    vocab_size=len(VOCABULARY),
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=24,
    hidden_act="gelu_tanh",
    max_position_embeddings=32,
    initializer_range=0.3,
)


@pytest.fixture
def keras_hub():
    return pytest.importorskip("keras_hub", reason="compares with keras-hub, which is not installed")


def backbone_of(keras_hub):
    return keras_hub.models.BertBackbone(
        vocabulary_size=len(VOCABULARY),
        num_layers=3,
        num_heads=4,
        hidden_dim=16,
        intermediate_dim=24,
        dropout=0.2,
        max_sequence_length=32,
    )


def require_equal_outputs(encoder, backbone):
    ours, theirs = encoder(OURS), backbone(THEIRS)
    for key in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(ours[key], theirs[key], atol=1e-5)


@peers
def test_a_backbone_to_ours_and_back(keras_hub):
    backbone = backbone_of(keras_hub)
    tokenizer = keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True)
    bert = from_keras_hub(backbone, tokenizer)
    require_equal_outputs(bert.encoder, backbone)
    assert bert.tokenizer.vocabulary == VOCABULARY and bert.tokenizer.lowercase
    assert bert.config.hidden_dropout_prob == 0.2 and bert.report.source == f"keras_hub {backbone.name}"
    back = to_keras_hub(bert.encoder)
    require_equal_outputs(bert.encoder, back)
    for mine, theirs in zip(back.weights, backbone.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert from_keras_hub(backbone).tokenizer is None


@peers
def test_an_encoder_to_keras_hub_and_back(keras_hub):
    encoder = BertEncoder(CONFIG)
    backbone = to_keras_hub(encoder)
    require_equal_outputs(encoder, backbone)
    back = from_keras_hub(backbone).encoder
    for ours, again in zip(encoder.trainable_variables, back.trainable_variables, strict=True):
        np.testing.assert_array_equal(ours, again)
    assert dataclasses.replace(back.config, initializer_range=0.3) == CONFIG


@peers
def test_a_task_brings_its_head_and_tokenizer(keras_hub):
    preprocessor = keras_hub.models.BertTextClassifierPreprocessor(
        keras_hub.models.BertTokenizer(VOCABULARY, lowercase=False), sequence_length=8
    )
    task = keras_hub.models.BertTextClassifier(backbone_of(keras_hub), num_classes=3, preprocessor=preprocessor)
    bert = from_keras_hub(task)
    np.testing.assert_allclose(bert.classifier(OURS), task(THEIRS), atol=1e-5)
    assert bert.classifier.num_classes == 3 and not bert.tokenizer.lowercase


@peers
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "gelu_erf"}, "hidden_act: 'gelu_erf', not 'gelu_tanh'"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps: 1e-05, not 1e-12"),
        ({"attention_probs_dropout_prob": 0.0}, "attention_probs_dropout_prob: 0.0, not 0.1"),
    ],
)
def test_what_a_backbone_cannot_hold_is_refused(keras_hub, change, message):
    with pytest.raises(ValueError, match=f"Received: {message}. It would compute something else"):
        to_keras_hub(BertEncoder(dataclasses.replace(CONFIG, **change)))


@peers
def test_an_encoder_without_pooler_is_refused(keras_hub):
    with pytest.raises(ValueError, match="Received: a pooler: False, not True"):
        to_keras_hub(BertEncoder(CONFIG, add_pooler=False))


def test_what_to_install_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(ImportError, match=r"to_keras_hub needs keras-hub. Run: pip install 'keras_bert_kit.keras-hub"):
        to_keras_hub(BertEncoder(CONFIG))
