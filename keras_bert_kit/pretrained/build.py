"""The models for a source of weights, made before they are filled."""

import dataclasses

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
from keras_bert_kit.pretrained.report import LoadReport
from keras_bert_kit.text import BertTokenizer


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """What `load_pretrained` returns. The models share one encoder; each is None if the source has no such head.

    Attributes:
        encoder: `BertEncoder`.
        tokenizer: `BertTokenizer`, or None if the source has no vocabulary.
        config: `BertConfig`.
        report: `LoadReport`.
        pretrainer: `BertPretrainer`, with the masked-LM head, and the next-sentence head if that is there too.
        next_sentence: `BertNextSentence`, where the next-sentence head is there without the masked-LM head.
        classifier: `BertClassifier`.
        token_classifier: `BertTokenClassifier`.
        question_answering: `BertQuestionAnswering`.
        multiple_choice: `BertMultipleChoice`.
    """

    encoder: BertEncoder
    tokenizer: BertTokenizer | None
    config: BertConfig
    report: LoadReport
    pretrainer: BertPretrainer | None = None
    next_sentence: BertNextSentence | None = None
    classifier: BertClassifier | None = None
    token_classifier: BertTokenClassifier | None = None
    question_answering: BertQuestionAnswering | None = None
    multiple_choice: BertMultipleChoice | None = None


def models_for(read, new_pooler, dtype):
    """Makes the models for the heads of a `Source`, to be filled: only heads and pooler start random.

    Args:
        read: `Source`.
        new_pooler: bool, whether there is a pooler that the source does not have.
        dtype: str or dtype policy, or None for Keras' global one.

    Returns:
        Pair of a `BertEncoder` and a dictionary from attributes of `Pretrained` to the models that share it.
    """
    encoder = BertEncoder(
        read.config, add_pooler="pooler" in read.heads or new_pooler, dtype=dtype, empty=True, name="bert"
    )
    names, rate, models = read.class_names, read.dropout_rate, {}
    if "masked_lm" in read.heads:
        models["pretrainer"] = BertPretrainer(
            encoder, "next_sentence" in read.heads, read.head_activation, read.head_epsilon, name="pretrainer"
        )
    elif "next_sentence" in read.heads:
        models["next_sentence"] = BertNextSentence(encoder, name="next_sentence")
    if "classifier" in read.heads:
        models["classifier"] = BertClassifier(encoder, len(names), names, rate, name="classifier")
    if "token_classifier" in read.heads:
        models["token_classifier"] = BertTokenClassifier(encoder, len(names), names, rate, name="token_classifier")
    if "question_answering" in read.heads:
        models["question_answering"] = BertQuestionAnswering(encoder, name="question_answering")
    if "multiple_choice" in read.heads:
        models["multiple_choice"] = BertMultipleChoice(encoder, rate, name="multiple_choice")
    return encoder, models
