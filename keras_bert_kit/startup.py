"""What has to happen before anything else of the kit is imported; imported first by `__init__.py`.

* Run as a command, TensorFlow's start-up lines would stand between ours. TensorFlow 2.21 writes them while it is being
  imported, whatever TF_CPP_MIN_LOG_LEVEL says, so they are caught on their way; if the import fails, they are shown. In
  a program that imports the kit nothing is changed.
* The layers are TensorFlow code, so Keras has to run on TensorFlow.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path


@contextlib.contextmanager
def standard_error_held_back():
    """Holds back what is written to standard error, by C++ code too, and shows it only if there is an exception."""
    original = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        except BaseException:
            held_back.seek(0)
            os.write(original, held_back.read())
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)


if sys.argv and Path(sys.argv[0]).stem in ("keras-bert-kit", "-m"):  # "-m": while Python looks for the module to run
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with standard_error_held_back():
        import tensorflow  # noqa: F401

import keras  # noqa: E402

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        "keras_bert_kit needs Keras' TensorFlow backend. "
        f"Received: {keras.backend.backend()!r}. Set KERAS_BACKEND=tensorflow before Python starts."
    )
