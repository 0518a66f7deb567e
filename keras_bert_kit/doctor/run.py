"""A small training run whose result is known to be the same on any number of replicas.

It runs in processes of its own, since logical CPUs and workers are settled when TensorFlow starts:
`python -m keras_bert_kit.doctor.run '{"replicas": 2, …}'` writes the weights it ends with.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from keras_bert_kit.config import BertConfig
from keras_bert_kit.data import ShuffledBatches
from keras_bert_kit.models import BertClassifier, BertEncoder
from keras_bert_kit.training import CrossEntropy, Trainer, make_strategy

EXAMPLES, LENGTH, BATCH_SIZE = 43, 12, 8  # the last batch of an epoch holds 3


def run(out, replicas=1, workers=False, accumulation_steps=1, steps=12, clip=0.05, rate=0.5):
    """Trains a BERT of two layers by SGD, and writes its weights at the start and at the end into an `.npz` file."""
    kind = "multi_worker" if workers else "mirrored" if replicas > 1 else "cpu"
    strategy = make_strategy(kind, replicas if kind == "mirrored" else None)
    keras.utils.set_random_seed(1)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with strategy.scope():
        model = BertClassifier(BertEncoder(config), num_classes=3)
        optimizer = keras.optimizers.SGD(rate, global_clipnorm=clip)
    start = [weight.numpy() for weight in model.weights]
    trainer = Trainer(model, optimizer, CrossEntropy(), strategy=strategy, accumulation_steps=accumulation_steps)
    trainer.fit(_batches(), steps)
    end = [weight.numpy() for weight in model.weights]
    np.savez(out, **{f"start_{i}": a for i, a in enumerate(start)}, **{f"end_{i}": a for i, a in enumerate(end)})


def _batches():
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 50, (EXAMPLES, LENGTH)).astype("int32")
    mask = (np.arange(LENGTH) < rng.integers(3, LENGTH + 1, (EXAMPLES, 1))).astype("int32")
    labels = tf.constant(rng.integers(0, 3, EXAMPLES).astype("int32"))
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": np.zeros_like(ids)}
    inputs = {name: tf.constant(array) for name, array in inputs.items()}

    def batch_at(rows):
        return {name: tf.gather(array, rows) for name, array in inputs.items()}, tf.gather(labels, rows)

    return ShuffledBatches(EXAMPLES, BATCH_SIZE, batch_at, seed=3)


if __name__ == "__main__":
    run(**json.loads(sys.argv[1]))
