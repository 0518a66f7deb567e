"""Folders and files that are whole or absent: written beside their place, flushed to the disk, then renamed into it."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path


@contextlib.contextmanager
def folder_written_beside(path):
    """Yields an empty folder next to `path`, and renames it to `path` when the block ends without an error.

    After an error, or a kill at any moment, `path` is as it was. What a kill leaves is a folder `.tmp-…` beside it.

    Args:
        path: The folder to make. It must not exist, or be empty.

    Raises:
        FileExistsError: Something is there already.
        OSError: The place cannot be written to.
    """
    path = Path(path)
    require_free(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".tmp-{path.name}-", dir=path.parent))
    beside.chmod(0o755)  # mkdtemp makes folders that only their owner may read; a server runs as someone else
    try:
        yield beside
        flush(beside)
        require_free(path)
        if path.exists():
            path.rmdir()
        beside.rename(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    _flush_one(path.parent)


@contextlib.contextmanager
def file_written_beside(path):
    """Yields the path of a new file next to `path`, and renames it to `path` when the block ends without an error.

    After an error, or a kill at any moment, `path` is as it was. What a kill leaves is a file `.tmp-…` beside it.

    Args:
        path: `pathlib.Path` of the file to make or to replace; its folder is there.
    """
    beside = path.with_name(f".tmp-{os.getpid()}-{path.name}")
    try:
        yield beside
        _flush_one(beside)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _flush_one(path.parent)


def require_free(path):
    """Checks, before long work, that a folder can be made at `path` and nothing would be overwritten there.

    Raises:
        FileExistsError: `path` is a file, or a folder with something in it.
        PermissionError: The folder it would be made in cannot be written to.
        NotADirectoryError: A part of the path is a file.
    """
    require_writable(path.parent)
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise FileExistsError(
            f"The output folder must not exist yet, or be empty. Received: {str(path)!r}. "
            "Nothing was changed; choose another folder, or move this one away."
        )


def require_writable(folder):
    """Checks that files can be made in a folder, or the folder itself where it does not exist yet.

    Raises:
        PermissionError: No right to write there.
        NotADirectoryError: A part of the path is a file.
    """
    nearest = next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())
    received = f"Received: {str(folder)!r},"
    if not nearest.is_dir():
        raise NotADirectoryError(f"The output folder must lie in a folder. {received} a file is at {str(nearest)!r}.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(
            f"The output folder must be writable. {received} no permission to write to {str(nearest)!r}."
        )


def flush(folder):
    """Flushes every file and folder below `folder` to the disk."""
    for path in [*folder.rglob("*"), folder]:
        _flush_one(path)


def _flush_one(path):
    if os.name == "nt" and path.is_dir():  # Windows cannot open folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path):
    """Returns the SHA-256 checksum of a file, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
