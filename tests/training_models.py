"""A model small enough to know its gradients in closed form, data for it, and its training in NumPy."""

import keras
import numpy as np
import tensorflow as tf

FEATURES, CLASSES, LENGTH = 5, 3, 6


def token_data(num_examples, seed=0):
    """Inputs (examples, length, features) and labels (examples, length), of which a varying share are -100."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(num_examples, LENGTH, FEATURES)).astype("float32")
    labels = rng.integers(0, CLASSES, (num_examples, LENGTH)).astype("int32")
    missing = rng.random(size=labels.shape) < np.linspace(0.0, 0.9, num_examples)[:, None]
    return inputs, np.where(missing, -100, labels).astype("int32")


def token_model(dropout=0.0, dtype="float32"):
    """A dense layer on every token, with known start values."""
    inputs = keras.Input((LENGTH, FEATURES))
    dropped = keras.layers.Dropout(dropout, dtype=dtype)(inputs)
    start = keras.initializers.RandomNormal(seed=1)
    logits = keras.layers.Dense(CLASSES, kernel_initializer=start, dtype=dtype)(dropped)
    return keras.Model(inputs, logits, name="tokens")


def batches(inputs, labels, batch_size):
    """A data set in the order of the arrays, with a short last batch."""
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(batch_size)


def numpy_sgd(weights, arrays, batch_size, steps, rate, clip):
    """Weights after some steps of SGD with clipping by global norm, in float64; the loss of each step; its norm."""
    kernel, bias = (weight.astype("float64") for weight in weights)
    inputs, labels = arrays
    starts = [start for _ in range(steps) for start in range(0, len(inputs), batch_size)][:steps]
    losses, norms = [], []
    for start in starts:
        x, y = inputs[start : start + batch_size].reshape(-1, FEATURES), labels[start : start + batch_size].ravel()
        x, y = x[y != -100].astype("float64"), y[y != -100]
        logits = x @ kernel + bias
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = odds / odds.sum(axis=1, keepdims=True)
        losses.append(-np.log(probabilities[np.arange(len(y)), y]).mean())
        wrong = (probabilities - np.eye(CLASSES)[y]) / len(y)
        gradients = x.T @ wrong, wrong.sum(axis=0)
        norms.append(np.sqrt(sum(np.sum(np.square(gradient)) for gradient in gradients)))
        factor = rate * clip / max(norms[-1], clip)
        kernel, bias = kernel - factor * gradients[0], bias - factor * gradients[1]
    return (kernel, bias), losses, norms
