"""Training: the optimizer of BERT, with its schedule."""

from keras_bert_kit.training.optimizer import AdamW, WarmUpAndDecay, create_optimizer

__all__ = ["AdamW", "WarmUpAndDecay", "create_optimizer"]
