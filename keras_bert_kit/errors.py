"""The exceptions that users of the kit may want to catch.

Every message says what must hold, what was received, and what to do. Wrong arguments of a layer are a plain
`ValueError`, as everywhere in Keras; these seven are for what comes from outside (files, folders, texts) and for runs.
"""


class KitError(Exception):
    """Base of the exceptions below: `except kbk.KitError` catches what a file or a folder did wrong."""


class ConfigError(KitError, ValueError):
    """A model configuration is incomplete, contradictory, or has unknown keys."""


class VocabularyError(KitError, ValueError):
    """A vocabulary lacks a special token, is empty, or cannot be read."""


class DataError(KitError, ValueError):
    """A data file has no usable rows, a wrong column, or labels that do not fit."""


class CheckpointError(KitError, ValueError):
    """Pretrained weights are missing, damaged, of another shape, or of a kind that is not supported."""


class ExportError(KitError, RuntimeError):
    """A model could not be exported, or an exported model is not what its folder promises."""


class ServingError(KitError, RuntimeError):
    """A model server cannot be reached, refuses, or answers something else than it should."""


class TrainingError(KitError, RuntimeError):
    """A training run cannot go on: the loss is not finite, or the data and the model do not fit."""
