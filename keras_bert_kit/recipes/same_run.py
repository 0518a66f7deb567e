"""`require_same_run`: a run goes on with the settings, the texts and the source that it began with."""

import hashlib
import json

from keras_bert_kit.training.settings import require_same_settings
from keras_bert_kit.training.strategy import is_chief

_SETTINGS = "settings.json"  # what `require_same_settings` writes
_DIGITS = 16  # of a fingerprint: enough to tell texts apart, and few enough to read


def require_same_run(folder, strategy, settings, fingerprints):
    """Compares a run with the one whose checkpoints are in a folder; the first process of a new one writes it down.

    Args:
        folder: `pathlib.Path` of the checkpoints.
        strategy: `tf.distribute.Strategy`.
        settings: dictionary that JSON can hold.
        fingerprints: dictionary from what it is of to a fingerprint or None. Runs that earlier versions of the kit
            began have none written down: they go on without.

    Raises:
        CheckpointError: The run began with others; the message lists both.
    """
    path = folder / _SETTINGS
    fingerprints = {f"fingerprint of {name}": value for name, value in fingerprints.items()}
    if path.is_file():
        begun = path.read_text(encoding="utf-8")
        fingerprints = {name: value for name, value in fingerprints.items() if f'"{name}"' in begun}
    elif not is_chief(strategy):
        return  # of several workers, one writes
    require_same_settings(folder, settings | fingerprints)


def fingerprint_of_examples(examples):
    """Differs where texts, labels or their order differ: str.

    Args:
        examples: `Examples`.
    """
    digest = hashlib.sha256()
    for row in zip(examples.texts, examples.labels, strict=True):
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()[:_DIGITS]


def fingerprint_of_source(bert):
    """Differs where the files differ that weights were loaded from: str. Training in place does not change it.

    Args:
        bert: what `load_pretrained` returned.
    """
    checksums = sorted(bert.report.sha256.values())
    return hashlib.sha256(json.dumps(checksums).encode()).hexdigest()[:_DIGITS]
