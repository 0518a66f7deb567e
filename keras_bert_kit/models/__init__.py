"""Models: the encoder, and what is built on it. Each is a `keras.Model` that takes a dictionary of int tensors."""

from keras_bert_kit.models.add_tokens import add_tokens
from keras_bert_kit.models.classifier import BertClassifier
from keras_bert_kit.models.encoder import ENCODER_INPUTS, BertEncoder, require_inputs
from keras_bert_kit.models.pretrainer import BertPretrainer

__all__ = ["ENCODER_INPUTS", "BertClassifier", "BertEncoder", "BertPretrainer", "add_tokens", "require_inputs"]
