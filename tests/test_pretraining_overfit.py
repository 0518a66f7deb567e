"""A BERT of two layers learns a page by heart: Google's README has 0.985 and 1.0 for the same text."""

import keras
import pytest

from keras_bert_kit import BertConfig, BertTokenizer
from keras_bert_kit.data import PretrainingBatches, PretrainingSettings, write_pretraining_data
from keras_bert_kit.recipes import new_pretrainer, pretrain_bert


@pytest.mark.slow
def test_masked_words_and_next_sentences_of_the_sample_text_are_learned(shared, tmp_path):
    tokenizer = BertTokenizer.from_vocab_file(shared / "data/vocab/uncased_vocab.txt")
    settings = PretrainingSettings(masking="static", dupe_factor=5, seed=12345)
    text = shared / "data/pretrain_text/bert_sample_text.txt"
    write_pretraining_data(text, tokenizer, tmp_path / "data", settings, processes=1, report=lambda _: None)
    batches = PretrainingBatches(tmp_path / "data", batch_size=32)
    sizes = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)
    dropout = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    keras.utils.set_random_seed(0)
    model = new_pretrainer(BertConfig(tokenizer.vocab_size, max_position_embeddings=128, **sizes, **dropout))
    history = pretrain_bert(model, [batches], [240], batches, learning_rate=2e-3, validate_every=240)
    _, results = history.validations[-1]
    print(results)
    assert results["mlm_accuracy"] >= 0.98
    assert results["nsp_accuracy"] == 1.0
