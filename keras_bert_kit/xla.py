"""`compiled`: several operations as one loop over memory."""

import functools

import tensorflow as tf


def compiled(function, reduce_retracing=True):
    """Compiles a function of tensors by XLA, once for each shape; on a GPU it runs as it is, untried with XLA there.

    Args:
        function: function of tensors and of Python numbers; the latter are constants in what is compiled.
        reduce_retracing: bool, see `tf.function`. Not for functions that take handles of resources, which have shapes.
    """
    compiled_function = tf.function(function, jit_compile=True, reduce_retracing=reduce_retracing, autograph=False)

    @functools.wraps(function)
    def call(*arguments):
        return (function if tf.config.list_physical_devices("GPU") else compiled_function)(*arguments)

    return call
