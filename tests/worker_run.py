"""One worker of several: `TF_CONFIG=… python worker_run.py FOLDER STEPS ACCUMULATION WEIGHTS.npz`, for tests.

Without TF_CONFIG, the same run in one process on one replica.
"""

import os
import sys

import numpy as np
import tensorflow as tf
from training_models import token_data, token_model

from keras_bert_kit.data import ShuffledBatches
from keras_bert_kit.training import AdamW, CrossEntropy, Trainer, make_strategy


def main(folder, steps, accumulation_steps, out):
    strategy = make_strategy("multi_worker" if "TF_CONFIG" in os.environ else "cpu")
    with strategy.scope():
        model, optimizer = token_model(), AdamW(1e-2, global_clipnorm=0.2)
    arrays = tuple(map(tf.constant, token_data(43)))
    batches = ShuffledBatches(43, 8, lambda rows: tuple(tf.gather(array, rows) for array in arrays), seed=3)
    trainer = Trainer(model, optimizer, CrossEntropy(), strategy=strategy, accumulation_steps=int(accumulation_steps))
    held_out = tf.data.Dataset.from_tensor_slices(token_data(9, seed=1)).batch(4)
    options = dict(validation_dataset=held_out, validate_every=50, checkpoint_dir=folder, save_every=5)
    history = trainer.fit(batches, int(steps), **options)
    results = [value for _, results in history.validations[-1:] for value in results.values()]
    np.savez(out, *[weight.numpy() for weight in model.weights], results=results)


if __name__ == "__main__":
    main(*sys.argv[1:])
