"""Finds out, by content, which program wrote a source of weights.

Each format is a module with `find(folder)`, which says whether the folder is one of its kind and which files hold the
weights, `read(folder)`, which yields a `Source`, and `FILES`, what such a folder holds.
"""

import contextlib
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from keras_bert_kit.errors import CheckpointError, KitError
from keras_bert_kit.pretrained import google_tf1, hugging_face, keras_hub, read_preprocessor, tf1_hub, tf_hub, tf_models
from keras_bert_kit.pretrained.archive import is_archive, unpack
from keras_bert_kit.pretrained.cache import fetched
from keras_bert_kit.pretrained.handles import handle_of

# In this order: a folder that holds two kinds is read as the first of them.
FORMATS = {
    "Hugging Face": hugging_face,
    "keras-hub": keras_hub,
    "TF-Hub preprocessing": read_preprocessor,
    "TF-Hub SavedModel": tf_hub,
    "TF-Hub module of TF1": tf1_hub,
    "TF-Models checkpoint": tf_models,
    "original BERT": google_tf1,
}


class Found(NamedTuple):
    """A source whose kind is known.

    Attributes:
        kind: str, for people.
        path: `pathlib.Path`, what the format's `read` takes.
        weights: list of `pathlib.Path`, the files that hold the weights.
        format: the module of the format.
        notes: tuple of str for the report, on how it was found.
        origin: str, the handle and its folder in the cache, or None for what lies in a path.
    """

    kind: str
    path: object
    weights: list
    format: object
    notes: tuple = ()
    origin: str | None = None


@contextlib.contextmanager
def located(source):
    """Yields what was found in a source: a folder, a handle, or an archive, unpacked for the time of the block.

    Args:
        source: str or `pathlib.Path`, a path or a handle (see `handles.py`).

    Returns:
        Context manager of a `Found`.

    Raises:
        CheckpointError: See `find_source`; the archive is refused, or holds no model or several; or the handle cannot
            be fetched.
    """
    path = Path(source)
    if handle := handle_of(source):
        yield _found_in_the_cache(handle)
        return
    if not is_archive(path):
        yield find_source(path)
        return
    with tempfile.TemporaryDirectory(prefix="keras_bert_kit-", ignore_cleanup_errors=True) as folder:
        try:
            skipped = unpack(path, Path(folder))
            found = _the_one_below(Path(folder))
            notes = [f"unpacked from an archive, the model in {str(found.path.relative_to(folder))!r}"]
            notes += [f"{skipped} side files of a Mac in the archive were ignored"] if skipped else []
            yield found._replace(kind=f"{found.kind}, in an archive", notes=tuple(notes))
        except KitError as error:  # the folder is gone when the message is read: it names the archive instead
            raise type(error)(str(error).replace(folder, str(path))) from None


def _found_in_the_cache(handle):
    folder = fetched(handle, check=_require_readable)
    try:
        found = _the_one_below(folder)
    except KitError as error:
        raise type(error)(
            f"{error} This is the folder of {handle.text} in the cache. If it is damaged, delete it; the next load "
            "fetches it again."
        ) from None
    return found._replace(origin=f"{handle.text}, in the cache at {folder}")


def _require_readable(folder):
    """Checks that a folder holds one model whose headers, configuration and vocabulary can be read."""
    found = _the_one_below(folder)
    if found.format is read_preprocessor:
        read_preprocessor.read_preprocessor(found.path, "google")
    else:
        found.format.read(found.path)


def _the_one_below(folder):
    """The only model in a folder or below it."""
    found, faults, waiting = [], [], [folder]
    while waiting:
        here = waiting.pop()
        try:
            one = _found_in(here)
        except CheckpointError as error:
            faults.append(error)
            continue
        if one:
            found.append(one)
        else:
            waiting += sorted(path for path in here.iterdir() if path.is_dir())
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(sorted(str(one.path.relative_to(folder)) for one in found))
        raise CheckpointError(
            f"An archive or a handle must hold one model. Received: {names} in {folder}. Unpack it, and load one."
        )
    if faults:
        raise faults[0]
    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    inside = ", ".join(files[:12]) or "nothing"
    raise CheckpointError(f"{str(folder)!r} must hold a BERT. Found: {inside}. {kinds()}")


def _found_in(folder):
    for module in FORMATS.values():
        if found := module.find(folder):
            return Found(*found, format=module)
    return None


def find_source(folder):
    """Finds the format of a folder.

    Args:
        folder: `pathlib.Path`.

    Returns:
        `Found`.

    Raises:
        CheckpointError: No such folder, or none of the formats is in it; the message lists what can be read.
    """
    if not folder.is_dir():
        what = "a file" if folder.exists() else "no such path"
        raise CheckpointError(
            f"source must be a folder with {hugging_face.CONFIG}, {hugging_face.VOCABULARY} and weights, or of another "
            f"kind that is read. Received: {str(folder)!r} ({what}). {_hint_of_a_handle(folder)}{kinds()}"
        )
    if found := _found_in(folder):
        return found
    raise CheckpointError(f"{hugging_face.incomplete(folder)} Or give a folder of another kind. {kinds()}")


def _hint_of_a_handle(path):
    """What to write instead of a name that Transformers would look for on Hugging Face."""
    if path.exists() or not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name := path.as_posix()):
        return ""
    handle = name if "/" in name else f"OWNER/{name}"
    return f"If it is a model on Hugging Face, write 'hf://{handle}'. "


def kinds():
    """Returns a sentence that lists the kinds of sources and their files."""
    formats = "; ".join(f"{name} ({module.FILES})" for name, module in FORMATS.items())
    return (
        f"What is read: {formats}; or a .tar.gz or .zip of one; or a handle of TF-Hub, Kaggle or Hugging Face "
        "(hf://owner/name)."
    )
