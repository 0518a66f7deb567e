"""Training: strategy, losses, the loop, the optimizer of BERT, checkpoints, and what a person sees."""

from keras_bert_kit.training.adamw import AdamW
from keras_bert_kit.training.evaluation import Evaluator
from keras_bert_kit.training.lamb import Lamb
from keras_bert_kit.training.loop import History, Trainer
from keras_bert_kit.training.losses import CrossEntropy, PretrainingLoss
from keras_bert_kit.training.optimizer import create_optimizer, steps_of
from keras_bert_kit.training.schedule import WarmUpAndDecay
from keras_bert_kit.training.strategy import make_strategy
from keras_bert_kit.training.variables import describe_variables

__all__ = [
    "AdamW",
    "CrossEntropy",
    "Evaluator",
    "History",
    "Lamb",
    "PretrainingLoss",
    "Trainer",
    "WarmUpAndDecay",
    "create_optimizer",
    "describe_variables",
    "make_strategy",
    "steps_of",
]
