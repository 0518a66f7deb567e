"""Checksums of the files of a source: compared before anything in them is believed, or computed while they are read."""

from pathlib import Path

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.pretrained.kit_file import KIT_FILE
from keras_bert_kit.pretrained.source import object_in, read_json


def start_checksums(found, expected, pool):
    """Computes the checksums of the files of weights.

    Where some are known beforehand (`expected`, or those in kit.json if the kit wrote the folder), all are compared
    before this function returns. Else they are only for the report, and computed in a thread meanwhile.

    Args:
        found: `Found`.
        expected: str, dictionary from file name to str, or None.
        pool: `concurrent.futures.Executor`.

    Returns:
        Function without arguments that returns the dictionary from file name to checksum.

    Raises:
        CheckpointError: A file is not the one that was recorded.
    """
    recorded = _recorded(found, expected)
    if not recorded:
        futures = {path.name: pool.submit(sha256_of, path) for path in found.weights}
        return lambda: {name: future.result() for name, future in futures.items()}
    checksums = {path.name: sha256_of(path) for path in found.weights}
    checksums |= {name: sha256_of(found.path / name) for name in recorded if (found.path / name).is_file()}
    require_checksums(found.path, recorded, checksums)
    return lambda: checksums


def require_checksums(folder, recorded, checksums):
    """Compares checksums with those that were recorded, both dictionaries from file name to str.

    Raises:
        CheckpointError: A file is another one, or not there.
    """
    for name, digest in recorded.items():
        if checksums.get(name) != digest:
            raise CheckpointError(
                f"{folder / name} must be the file that was recorded, with sha256 {digest}. "
                f"Received: {checksums.get(name, 'no such file')}. It was changed or damaged since; fetch it again."
            )


def _recorded(found, expected):
    """What is known beforehand: {file name: checksum}."""
    recorded = {}
    if (found.path / KIT_FILE).is_file():
        recorded = object_in(read_json(found.path / KIT_FILE), "sha256", found.path / KIT_FILE)
    if isinstance(expected, str):
        if len(found.weights) > 1:
            raise ValueError(
                "sha256 must be a dictionary from file name to checksum where the weights lie in several files. "
                f"Received: one checksum for {', '.join(path.name for path in found.weights)}."
            )
        expected = {found.weights[0].name: expected}
    recorded |= expected or {}
    if elsewhere := [name for name in recorded if Path(name).name != name]:
        raise CheckpointError(f"Checksums must be of files in {found.path}. Received: {', '.join(elsewhere)}.")
    return recorded
