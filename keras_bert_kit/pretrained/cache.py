"""The cache: a folder for each handle, which is whole or absent.

A model is fetched into a folder beside its place, looked through, flushed to the disk and renamed. Whatever happens
before the rename, the cache is as it was; of two processes that fetch the same model, the one that comes second takes
what the first one left. What a kill leaves behind is called `.tmp-…`, is never read, and goes with the next fetch.

The cache is `~/.cache/keras_bert_kit`, or where the environment variable KERAS_BERT_KIT_CACHE says. A folder of it can
be copied to another machine, and is an ordinary source for `load_pretrained`.
"""

import os
import shutil
import time
from pathlib import Path

from keras_bert_kit.errors import CheckpointError, KitError
from keras_bert_kit.files import folder_written_beside
from keras_bert_kit.network import offline_by
from keras_bert_kit.pretrained.fetch import fetch

CACHE = "KERAS_BERT_KIT_CACHE"

# A server that is silent for a minute is given up, so a folder nobody wrote to for an hour belongs to no fetch.
_ABANDONED_SECONDS = 3600


def cache_folder():
    """Returns the `pathlib.Path` of the cache, which need not exist."""
    if folder := os.environ.get(CACHE):
        return Path(folder).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "keras_bert_kit").absolute()


def fetched(handle, check):
    """Returns the folder of a handle's files, and fetches them if they are not in the cache.

    Args:
        handle: `handles.Handle`.
        check: function of a folder that raises a `KitError` if it does not hold what is wanted.

    Returns:
        `pathlib.Path` of a folder in the cache.

    Raises:
        CheckpointError: The files cannot be fetched, or are not what is wanted; the cache is as it was.
    """
    place = cache_folder() / handle.folder
    if place.is_dir():
        return place
    if said := offline_by():
        raise CheckpointError(
            f"{handle.text} must be in the cache while {said} is set. Missing: the folder {str(place)!r}. Load it once "
            f"where there is a network and copy that folder here, or unset {said}."
        )
    _remove_abandoned(place)
    try:
        with folder_written_beside(place) as beside:
            try:
                fetch(handle, beside)
                check(beside)
            except KitError as error:
                reason = str(error).replace(str(beside), handle.text)
                raise type(error)(f"{reason} Nothing was kept in the cache, {str(place)!r}.") from None
    except OSError as error:
        if not place.is_dir():  # it is there if another process was faster
            raise CheckpointError(
                f"The cache must be a folder that can be written to. Received: {str(place)!r}: {error}. "
                f"Free some room, or set {CACHE} to another folder."
            ) from None
    return place


def _remove_abandoned(place):
    for folder in place.parent.glob(f".tmp-{place.name}-*"):
        try:
            last_write = max(path.lstat().st_mtime for path in [folder, *folder.rglob("*")])
        except FileNotFoundError:  # another process is at work in it
            continue
        if time.time() - last_write > _ABANDONED_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
