"""A small classifier and packer for the tests of serving/, with weights large enough that answers differ."""

import keras
from fake_weights import VOCABULARY

from keras_bert_kit.config import BertConfig
from keras_bert_kit.models import BertClassifier, BertEncoder
from keras_bert_kit.text import BertPacker, BertTokenizer

CLASS_NAMES = ("World", "Übrige", "科技")  # in no alphabetical order


def small_pack(sequence_length=16, vocabulary=VOCABULARY, **tokenizer_settings):
    tokenizer = BertTokenizer(vocabulary, **tokenizer_settings)
    return BertPacker(tokenizer, sequence_length, max_sequence_length=32)


def small_classifier(model_class=BertClassifier, seed=0, dtype="float32", **config):
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = {"vocab_size": len(VOCABULARY), "max_position_embeddings": 32, "initializer_range": 0.5, **sizes, **config}
    keras.utils.set_random_seed(seed)
    encoder = BertEncoder(BertConfig(**config), dtype=dtype)
    return model_class(encoder, len(CLASS_NAMES), CLASS_NAMES)
