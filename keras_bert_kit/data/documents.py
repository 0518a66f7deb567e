"""From text files to documents, a block of a few megabytes at a time.

    files ──► plan_blocks ──► blocks: which bytes of which files       one pass, which also checks every line
    block ──► read_documents ──► documents: lists of sentences         a few megabytes in memory

A block is what one shard is made of, so it does not depend on how many processes share the work. Two formats of text:

    "sentences"   one sentence a line, an empty line between documents: what Google's script reads
    "plain"       running text: an empty line between paragraphs, two or more between documents

The end of a file ends a document in both.
"""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keras_bert_kit.data.sentences import split_sentences
from keras_bert_kit.errors import DataError

TEXT_FORMATS = ("sentences", "plain")
# Empty lines that divide documents.
_EMPTY_LINES = {"sentences": 1, "plain": 2}
# A longer line is no sentence but an article, of which truncation would leave a few words.
_MAX_LINE_BYTES = {"sentences": 100_000, "plain": 4 << 20}
_ADVICE_ON_LINES = {
    "sentences": 'Break it into sentences, or say text_format="plain", which splits paragraphs into sentences.',
    "plain": "Break it into paragraphs, each on a line of its own.",
}
_BYTE_ORDER_MARK = "\ufeff"


class Part(NamedTuple):
    """Consecutive documents of a file: the bytes from `start` up to `end`."""

    path: str
    start: int
    end: int


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    empty_before: int


Block = tuple[Part, ...]


def plan_blocks(paths, text_format: str = "sentences", block_bytes: int = 4 << 20) -> list[Block]:
    """Divides text files into blocks of whole documents, at least two in each.

    Reads all files once, a line at a time, and checks them. A document longer than `block_bytes` is cut between
    sentences (in plain text between paragraphs) into several, see `count_cut_documents`; a block has up to about three
    times `block_bytes`, since next-sentence pairs need a second document.

    Args:
        paths: the text files, UTF-8 with or without byte-order mark.
        text_format: "sentences" or "plain", see the module.
        block_bytes: size from which on a block is closed.

    Returns:
        The blocks, in the order of the files.

    Raises:
        DataError: a file is missing, cannot be read, is not UTF-8 or has too long a line; there is no document, or one.
        ValueError: an argument is out of range.
    """
    if text_format not in TEXT_FORMATS:
        raise ValueError(f"text_format must be one of {TEXT_FORMATS}. Received: {text_format=}.")
    if block_bytes < 1:
        raise ValueError(f"block_bytes must be 1 or more. Received: {block_bytes=}.")
    paths = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    blocks, parts, num_documents, num_bytes, total = [], [], 0, 0, 0
    for path in paths:
        for start, end in _documents_of(path, text_format, block_bytes):
            if num_documents >= 2 and num_bytes >= block_bytes:
                blocks.append(tuple(parts))
                parts, num_documents, num_bytes = [], 0, 0
            num_documents += 1
            num_bytes += end - start
            total += 1
            # What a cut divided stays two parts: no empty line would show where one document ends.
            if parts and parts[-1].path == path and parts[-1].end < start:
                parts[-1] = parts[-1]._replace(end=end)
            else:
                parts.append(Part(path, start, end))
    if num_documents == 1 and blocks:
        blocks[-1] += tuple(parts)
    elif parts:
        blocks.append(tuple(parts))
    _require_two_documents(total - count_cut_documents(blocks), paths, text_format)
    return blocks


def count_cut_documents(blocks: list[Block]) -> int:
    """Counts the cuts in documents that were too long for a block."""
    parts = [part for block in blocks for part in block]
    return sum(a.path == b.path and a.end == b.start for a, b in zip(parts, parts[1:], strict=False))


def read_documents(block: Block, text_format: str = "sentences") -> list[list[str]]:
    """Reads the documents of a block, each a list of sentences.

    Raises:
        DataError: a file cannot be read, or is no longer what it was when the blocks were planned.
    """
    documents = []  # each a list of paragraphs, each a list of lines
    for part in block:
        for number, line in enumerate(_lines(part.path, text_format, part.start, part.end)):
            if number == 0 or line.empty_before >= _EMPTY_LINES[text_format]:
                documents.append([[]])
            elif line.empty_before > 0:
                documents[-1].append([])
            documents[-1][-1].append(line.text)
    if text_format == "plain":
        return [[s for lines in paragraphs for s in split_sentences(" ".join(lines))] for paragraphs in documents]
    return [lines for (lines,) in documents]


def _documents_of(path: str, text_format: str, longest: int) -> Iterator[tuple[int, int]]:
    """Yields first and last byte of each document; those of the pieces, without a gap, of one that is cut."""
    start = end = None
    for line in _lines(path, text_format):
        if start is None:
            start = line.start
        elif line.empty_before >= _EMPTY_LINES[text_format]:
            yield start, end
            start = line.start
        elif _may_cut(line, text_format, line.start - start, longest) and line.end - start > longest:
            yield start, line.start
            start = line.start
        end = line.end
    if start is not None:
        yield start, end


def _may_cut(line: _Line, text_format: str, num_bytes: int, longest: int) -> bool:
    """Whether a document may be cut before this line: not within a paragraph, unless that is endless."""
    return text_format == "sentences" or line.empty_before > 0 or num_bytes > 2 * longest


def _lines(path: str, text_format: str, start: int = 0, end: int | None = None) -> Iterator[_Line]:
    """Yields the lines that have text, each with the number of empty lines before it."""
    limit = _MAX_LINE_BYTES[text_format]
    position, empty_before = start, 0
    with _open(path) as file:
        file.seek(start)
        number = 0
        while (end is None or position < end) and (data := file.readline(limit + 1)):
            number += 1
            if len(data) > limit:
                raise DataError(
                    f"{path}: a line of text_format={text_format!r} must have at most {limit:,} bytes. "
                    f"Received: a longer one in {_place(number, start)}. {_ADVICE_ON_LINES[text_format]}"
                )
            text = _decoded(data, path, _place(number, start))
            if text:
                yield _Line(position, position + len(data), text, empty_before)
            empty_before = 0 if text else empty_before + 1
            position += len(data)


def _decoded(data: bytes, path: str, place: str) -> str:
    try:
        return data.decode().strip().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: the text must be UTF-8. Received: byte 0x{data[error.start]:02X} in {place}, byte "
            f"{error.start + 1} of the line. Convert the file to UTF-8."
        ) from error


def _place(number: int, start: int) -> str:
    return f"line {number}" if start == 0 else f"line {number} after byte {start}"


def _open(path: str):
    try:
        file = open(path, "rb")
    except FileNotFoundError as error:
        folder = Path(path).parent
        siblings = [sibling.name for sibling in folder.iterdir()] if folder.is_dir() else []
        nearest = difflib.get_close_matches(Path(path).name, siblings, n=1)
        meant = f"Did you mean {nearest[0]!r}?" if nearest else "Check the path, and put quotes around one with spaces."
        raise DataError(f"{path}: there is no such file. {meant}") from error
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read: {error.strerror}.") from error
    if not file.seekable():
        file.close()
        raise DataError(f"{path}: the text must be a file, which is read twice. Received: a pipe. Write it to a file.")
    return file


def _require_two_documents(num_documents: int, paths: list[str], text_format: str):
    """Refuses a corpus in which no sentence has one of another document to be paired with."""
    if num_documents >= 2:
        return
    shown = ", ".join(map(repr, paths[:5])) + (", ..." if len(paths) > 5 else "")
    if num_documents == 0:
        raise DataError(f"There must be text to pre-train on. Received: no line with text in {shown or 'no file'}.")
    divider, other = {
        "sentences": ("an empty line", 'for running text say text_format="plain"'),
        "plain": ("two empty lines", 'for one sentence a line say text_format="sentences"'),
    }[text_format]
    raise DataError(
        f"Next-sentence pairs need at least two documents, since half of the second sentences come from another one. "
        f"Received: one document, in {shown}. Put {divider} between documents; {other}."
    )
