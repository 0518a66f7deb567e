"""`without_autotune`: iterators that end when their data ends."""

import tensorflow as tf


def without_autotune(dataset):
    """Turns the autotuning of `tf.data` off, unless the data set says that it must be on.

    Autotuning is a thread that looks at the pipeline again and again, each time after twice the pause, up to a minute.
    When an iterator ends, TensorFlow 2.21 may wait until the pause is over: half of the passes over an epoch of six
    seconds took ten. What is left to autotuning is then as parallel as the machine has cores.

    Args:
        dataset: `tf.data.Dataset`.

    Returns:
        `tf.data.Dataset` with the same elements.
    """
    if dataset.options().autotune.enabled is not None:
        return dataset
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
