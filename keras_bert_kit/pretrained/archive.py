"""Unpacks `.tar.gz` and `.zip` archives that nobody vouches for.

Every name is looked at before its file is made. An archive with a path that leads out of it, a link, a device or a
file twice is refused, and so is one that grows far beyond its own size. Nothing is written outside of the folder given.
"""

import gzip
import os
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from keras_bert_kit.errors import CheckpointError

_MEGABYTE = 1 << 20
# Weights hardly shrink when they are compressed: float32 numbers that once were float16 by half. Text does, by more.
_GROWTH, _SPARE_BYTES = 4, 64 * _MEGABYTE
_LARGEST_HEADER_BYTES = _MEGABYTE
_MOST_FILES = 1000
_SIDE_FILES = ("__MACOSX", ".DS_Store")  # and all that start with ._: what a Mac adds

_FAULTS = (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError)


def is_archive(path):
    """Says, by content, whether a file is an archive that `unpack` takes."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        start = file.read(512)
    return start[:2] == b"\x1f\x8b" or start[257:262] == b"ustar" or zipfile.is_zipfile(path)


def unpack(path, folder):
    """Unpacks an archive into an empty folder.

    Args:
        path: `pathlib.Path` of the archive: a tar file, compressed by gzip or not, or a zip file.
        folder: `pathlib.Path` of the folder.

    Returns:
        Number of side files of a Mac that were skipped.

    Raises:
        CheckpointError: The archive is damaged, or holds what no model has. `folder` may then hold some of its files.
    """
    budget = _Budget(_GROWTH * path.stat().st_size + _SPARE_BYTES)
    skipped = 0
    try:
        members = _zip_members(path) if zipfile.is_zipfile(path) else _tar_members(path, budget)
        for count, (name, kind, file) in enumerate(members):
            parts = _checked_parts(name, kind)
            if count >= _MOST_FILES:
                raise ValueError(f"it holds more than {_MOST_FILES} files")
            if file is None:  # a folder
                continue
            if any(part in _SIDE_FILES or part.startswith("._") for part in parts):
                skipped, target = skipped + 1, Path(os.devnull)
            else:
                target = folder.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch(exist_ok=False)
            with file, open(target, "wb") as out:
                while block := file.read(_MEGABYTE):
                    budget.spend(len(block))
                    out.write(block)
    except _FAULTS as error:
        raise CheckpointError(
            f"An archive must hold the files of a model, and nothing that could do harm. Received: {str(path)!r}: "
            f"{error}. Nothing was written elsewhere. Fetch it again, or unpack it where you trust it."
        ) from None
    return skipped


def _checked_parts(name, kind):
    """The parts of a member's path, if it is one that may be written."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or set(name) & set("\\:\0"):
        raise ValueError(f"the path {name!r} leads out of the archive")
    if kind not in ("file", "folder"):
        raise ValueError(f"{name!r} is a {kind}")
    if kind == "file" and not path.parts:
        raise ValueError(f"{name!r} is no name of a file")
    return path.parts


def _zip_members(path):
    """Triples of the name, the kind, and the opened file (None for a folder) of each member of a zip file."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            mode = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir():
                yield member.filename, "folder", None
            elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                yield member.filename, "file compressed otherwise than zip programs do", None  # a bomb goes off at once
            elif mode in (0, stat.S_IFREG):
                yield member.filename, "file", archive.open(member)
            else:
                yield member.filename, "link or device", None


def _tar_members(path, budget):
    """The same for a tar file, which is read once from start to end."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else open(path, "rb") as file:
        stream = _Limited(file)
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            while True:
                stream.left = _LARGEST_HEADER_BYTES  # names and headers; then the file, as far as the budget goes
                member = archive.next()
                if member is None:
                    break
                stream.left = budget.left + _LARGEST_HEADER_BYTES
                if member.isdir():
                    yield member.name, "folder", None
                elif member.isreg() and not member.issparse():
                    yield member.name, "file", archive.extractfile(member)
                else:
                    yield member.name, "link, device or sparse file", None
        while block := file.read(_MEGABYTE):  # to the end, where gzip has its checksum
            budget.spend(len(block))


class _Budget:
    """How many bytes an archive may still grow to."""

    def __init__(self, total):
        self.total = self.left = total

    def spend(self, count):
        self.left -= count
        if self.left < 0:
            raise ValueError(f"it grows beyond {self.total} bytes, more than {_GROWTH} times its size")


class _Limited:
    """A stream of which no more than `left` bytes can be read."""

    def __init__(self, file):
        self._file = file
        self.left = _LARGEST_HEADER_BYTES

    def read(self, size):
        self.left -= size
        if self.left < 0:
            raise ValueError("a header is larger than any name of a file")
        return self._file.read(size)
