"""shapes_of: from the configuration alone, the shapes that the variables of models have."""

import pytest

from keras_bert_kit.config import BertConfig
from keras_bert_kit.models import (
    BertClassifier,
    BertEncoder,
    BertMultipleChoice,
    BertNextSentence,
    BertPretrainer,
    BertQuestionAnswering,
    BertTokenClassifier,
)
from keras_bert_kit.pretrained.assign import variables_of
from keras_bert_kit.pretrained.heads import HEADS
from keras_bert_kit.pretrained.shapes import shapes_of

CONFIG = BertConfig(
    vocab_size=11,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=5,
    type_vocab_size=3,
)
# Each with the arguments after the encoder.
MODELS = {
    "masked_lm": (BertPretrainer, False),
    "next_sentence": (BertNextSentence,),
    "classifier": (BertClassifier, 4),
    "token_classifier": (BertTokenClassifier, 4),
    "question_answering": (BertQuestionAnswering,),
    "multiple_choice": (BertMultipleChoice,),
}


@pytest.mark.parametrize("head", MODELS)
@pytest.mark.parametrize("pooler", [True, False])
def test_shapes_equal_those_of_the_variables(head, pooler):
    if not pooler and head in ("next_sentence", "classifier", "multiple_choice"):
        return
    encoder = BertEncoder(CONFIG, add_pooler=pooler)
    model, *arguments = MODELS[head]
    variables = variables_of(encoder, model(encoder, *arguments))
    heads = ["pooler", head] if pooler else [head]
    assert shapes_of(CONFIG, heads, 4) == {path: tuple(variable.shape) for path, variable in variables.items()}


def test_every_head_has_shapes():
    assert set(HEADS) == {"pooler", *MODELS}
    for head in HEADS:
        assert len(shapes_of(CONFIG, [head], 4)) > len(shapes_of(CONFIG, []))
