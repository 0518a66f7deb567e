"""Training: the optimizer of BERT with its schedule, seeds, and what a person sees meanwhile."""

from keras_bert_kit.training.optimizer import AdamW, WarmUpAndDecay, create_optimizer
from keras_bert_kit.training.progress import ProgressBar
from keras_bert_kit.training.seeds import set_seed

__all__ = ["AdamW", "ProgressBar", "WarmUpAndDecay", "create_optimizer", "set_seed"]
