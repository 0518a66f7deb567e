"""Whole jobs in one call, made of the kit's parts: fine-tune a classifier and evaluate it, pre-train a BERT.

Each is a screen of code that can be copied into a notebook and changed there.
"""
# ruff: noqa: F401

from keras_bert_kit.recipes.classification import (
    Evaluation,
    default_learning_rate,
    evaluate_classifier,
    evaluation_dataset,
    finetune_classifier,
    packer_for,
)
from keras_bert_kit.recipes.plan import Plan
from keras_bert_kit.recipes.pretraining import (
    PretrainingPlan,
    default_pretraining_rate,
    new_pretrainer,
    pretrain_bert,
    pretrainer_of,
)
