"""BERT for TensorFlow and Keras 3. The public API, in the order of the pipeline:

text ──► ids ──► batches ──► encoder ──► head ──► loss ──► update ──► SavedModel ──► answers

text        BertTokenizer, BertPacker, learn_vocabulary, write_vocabulary, text_statistics, faster
data        read_examples, read_sample, read_tfds, Examples, class_names_of, classification_dataset,
            classification_batches, ShuffledBatches, write_pretraining_data, PretrainingSettings, PretrainingBatches
layers      MultiHeadSelfAttention, EncoderBlock, BertEmbeddings, Pooler, MaskedLMHead, NextSentenceHead,
            TokenAndPositionEmbedding, SinusoidalPositionEncoding, scaled_dot_product_attention
models      BertConfig, SIZES, BertEncoder, BertClassifier, BertPretrainer, BertTokenClassifier, BertQuestionAnswering,
            BertMultipleChoice, BertNextSentence, add_tokens, freeze, unfreeze, rates_by_depth
files       load_pretrained, load_preprocessor, save_pretrained
training    Trainer, Evaluator, History, CrossEntropy, PretrainingLoss, AdamW, Lamb, WarmUpAndDecay, create_optimizer,
            steps_of, describe_variables, make_strategy
recipes     finetune_classifier, evaluate_classifier, pretrain_bert, new_pretrainer
serving     export_for_serving, Predictor, ServingClient, predictor_handler
to look at  fill_mask, plot_attention, plot_training
errors      KitError and below it ConfigError, VocabularyError, DataError, CheckpointError, ExportError, ServingError,
            TrainingError

`help(keras_bert_kit.load_pretrained)` and so on say more.
"""
# ruff: noqa: F401, I001

import keras_bert_kit.startup

from keras_bert_kit.version import __version__
from keras_bert_kit.errors import CheckpointError, ConfigError, DataError, ExportError, KitError, ServingError
from keras_bert_kit.errors import TrainingError, VocabularyError
from keras_bert_kit.config import SIZES, BertConfig
from keras_bert_kit.text import BertPacker, BertTokenizer
from keras_bert_kit.text import faster, learn_vocabulary, text_statistics, write_vocabulary
from keras_bert_kit.data import Examples, class_names_of, read_examples, read_sample, read_tfds
from keras_bert_kit.data import ShuffledBatches, classification_batches, classification_dataset
from keras_bert_kit.data import PretrainingBatches, PretrainingSettings, write_pretraining_data
from keras_bert_kit.layers import scaled_dot_product_attention
from keras_bert_kit.layers import BertEmbeddings, EncoderBlock, MultiHeadSelfAttention
from keras_bert_kit.layers import MaskedLMHead, NextSentenceHead, Pooler
from keras_bert_kit.layers import SinusoidalPositionEncoding, TokenAndPositionEmbedding
from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer
from keras_bert_kit.models import BertMultipleChoice, BertNextSentence, BertQuestionAnswering, BertTokenClassifier
from keras_bert_kit.models import add_tokens, freeze, rates_by_depth, unfreeze
from keras_bert_kit.pretrained import load_preprocessor, load_pretrained, save_pretrained
from keras_bert_kit.training import AdamW, Lamb, WarmUpAndDecay, create_optimizer, steps_of
from keras_bert_kit.training import CrossEntropy, Evaluator, History, PretrainingLoss, Trainer
from keras_bert_kit.training import describe_variables, make_strategy
from keras_bert_kit.recipes import evaluate_classifier, finetune_classifier, new_pretrainer, pretrain_bert
from keras_bert_kit.serving import Predictor, ServingClient, export_for_serving, predictor_handler
from keras_bert_kit.fill_mask import fill_mask
from keras_bert_kit.plots import plot_attention, plot_training
