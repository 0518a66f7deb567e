"""A training run in a process of its own: `python training_run.py FOLDER STEPS`, for tests that kill it.

Every second step writes a checkpoint, so that a good part of the time a checkpoint is being written.
"""

import sys

import tensorflow as tf
from training_models import token_data, token_model

from keras_bert_kit.data import ShuffledBatches
from keras_bert_kit.training import CrossEntropy, Trainer, create_optimizer


def train(folder, steps):
    arrays = tuple(map(tf.constant, token_data(43)))
    batches = ShuffledBatches(43, 8, lambda rows: tuple(tf.gather(array, rows) for array in arrays), seed=3)
    held_out = tf.data.Dataset.from_tensor_slices(token_data(9, seed=1)).batch(4)
    optimizer = create_optimizer(1e-2, num_train_steps=300, num_warmup_steps=30)
    trainer = Trainer(token_model(dropout=0.3), optimizer, CrossEntropy(), seed=5)
    print("ready", flush=True)
    return trainer.fit(
        batches, steps, validation_dataset=held_out, validate_every=50, checkpoint_dir=folder, save_every=2
    )


if __name__ == "__main__":
    train(sys.argv[1], int(sys.argv[2]))
