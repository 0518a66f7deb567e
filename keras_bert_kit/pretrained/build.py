"""The models for a source of weights, made before they are filled."""

import dataclasses

from keras_bert_kit.config import BertConfig
from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer
from keras_bert_kit.pretrained.report import LoadReport
from keras_bert_kit.text import BertTokenizer


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """What `load_pretrained` returns. The models share one encoder.

    Attributes:
        encoder: `BertEncoder`.
        tokenizer: `BertTokenizer`, or None if the source has no vocabulary.
        config: `BertConfig`.
        report: `LoadReport`.
        pretrainer: `BertPretrainer`, or None if the source has no masked-LM head.
        classifier: `BertClassifier`, or None if the source has no classification head.
    """

    encoder: BertEncoder
    tokenizer: BertTokenizer
    config: BertConfig
    report: LoadReport
    pretrainer: BertPretrainer | None
    classifier: BertClassifier | None


def models_for(read, new_pooler, dtype):
    """The encoder, the pretrainer and the classifier for a `Source`, with random weights; two of them may be None."""
    encoder = BertEncoder(read.config, add_pooler="pooler" in read.heads or new_pooler, dtype=dtype, name="bert")
    pretrainer = classifier = None
    if "masked_lm" in read.heads:
        pretrainer = BertPretrainer(
            encoder, "next_sentence" in read.heads, read.head_activation, read.head_epsilon, name="pretrainer"
        )
    if "classifier" in read.heads:
        names = read.class_names
        classifier = BertClassifier(encoder, len(names), names, read.dropout_rate, name="classifier")
    return encoder, pretrainer, classifier
