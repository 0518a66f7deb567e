"""`keras-bert-kit doctor`: what this machine has, and whether training on several replicas gives the right numbers."""

from keras_bert_kit.doctor.distribute import check_distribution
from keras_bert_kit.doctor.machine import describe_machine

__all__ = ["check_distribution", "describe_machine"]
