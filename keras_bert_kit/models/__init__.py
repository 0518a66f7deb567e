"""Models: the encoder, and what is built on it. Each is a `keras.Model` that takes a dictionary of int tensors."""

from keras_bert_kit.models.add_tokens import add_tokens
from keras_bert_kit.models.classifier import BertClassifier
from keras_bert_kit.models.depth import freeze, layers_by_depth, rates_by_depth, unfreeze
from keras_bert_kit.models.encoder import ENCODER_INPUTS, BertEncoder, require_inputs
from keras_bert_kit.models.multiple_choice import BertMultipleChoice
from keras_bert_kit.models.next_sentence import BertNextSentence
from keras_bert_kit.models.pretrainer import BertPretrainer
from keras_bert_kit.models.question_answering import BertQuestionAnswering
from keras_bert_kit.models.token_classifier import BertTokenClassifier
from keras_bert_kit.models.with_encoder import ModelWithEncoder

__all__ = [
    "ENCODER_INPUTS",
    "BertClassifier",
    "BertEncoder",
    "BertMultipleChoice",
    "BertNextSentence",
    "BertPretrainer",
    "BertQuestionAnswering",
    "BertTokenClassifier",
    "ModelWithEncoder",
    "add_tokens",
    "freeze",
    "layers_by_depth",
    "rates_by_depth",
    "require_inputs",
    "unfreeze",
]
