"""The command line: `keras-bert-kit`, also `python -m keras_bert_kit`. It parses, calls the kit, and prints.

Exit code 0 on success, 2 on wrong usage, 1 on failure, with one line on standard error that says what to do. With
`--json` the last line of standard output is one JSON object. Messages and progress go to standard error.
"""

# Each adds its commands.
from keras_bert_kit.cli import (  # noqa: F401
    check_export,
    classification,
    doctor,
    fill_mask,
    pretrain,
    pretraining,
    vocabulary,
    weights,
)
from keras_bert_kit.cli.command import main

__all__ = ["main"]
