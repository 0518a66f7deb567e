"""Fetches the files of a handle into an empty folder. What comes is looked at by the readers, like any file.

Kaggle and Hugging Face have clients of their own, kagglehub and huggingface_hub, which know how to log in. TF-Hub's
protocol is one HTTP request (https://www.tensorflow.org/hub/hosting), made here. tensorflow_hub 0.16.1, the last one,
cannot be imported beside today's setuptools (84, without pkg_resources), waits for ever for a server that is silent,
and unpacks without a limit while it receives. Here the archive is kept as a file until it is complete, and goes through
`archive.py`.
"""

import fnmatch
import glob
import http.client
import os
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path, PurePosixPath

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.pretrained.archive import is_archive, unpack
from keras_bert_kit.pretrained.handles import COMPRESSED, HUGGING_FACE, KAGGLE, TF_HUB

ARCHIVE = ".archive"

_SILENT_SECONDS = 60  # how long a server may say nothing
_LARGEST_BYTES = 8 << 30  # BERT-large with the moments of Adam has 4 GB
_BLOCK_BYTES = 1 << 20
# Of a repository on Hugging Face: what readers look for, and of the weights in a folder the first kind that is there.
_SIDE_FILES = ("*.json", "*.txt", "saved_model.pb", "keras_metadata.pb", "variables/variables.*", "checkpoint")
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin", "tf_model.h5", "*.weights.h5", "*.ckpt*")
_SECRETS = re.compile(r"(?<=//)[^/@\s]*@|[?]\S*")  # of URLs: user and password, and the query


def fetch(handle, folder):
    """Fetches the files of a handle.

    Args:
        handle: `handles.Handle`.
        folder: `pathlib.Path` of an empty folder. After an error some files may be in it.

    Raises:
        CheckpointError: The client is not installed, the server refuses, is silent or sends something else.
        OSError: The folder cannot be written to.
    """
    by_server = {TF_HUB: _from_tf_hub, KAGGLE: _from_kaggle, HUGGING_FACE: _from_hugging_face}
    by_server[handle.server](handle, folder)
    if links := [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink()]:
        raise CheckpointError(f"A model must hold no links. Received: {', '.join(links)} from {handle.text}.")


def _from_tf_hub(handle, folder):
    url, archive = handle.address + COMPRESSED, folder / ARCHIVE
    with open(archive, "wb") as file:
        for block in _blocks(handle, url):
            file.write(block)
    if not is_archive(archive):
        raise _refused(handle, url, f"{archive.stat().st_size} bytes that are no .tar.gz, .tar or .zip")
    try:
        unpack(archive, folder)
    except CheckpointError as error:
        raise CheckpointError(str(error).replace(str(archive), url)) from None
    archive.unlink()


def _blocks(handle, url):
    """What a server sends, block by block, up to the length that it announced."""
    from tqdm import tqdm

    try:
        with urllib.request.urlopen(url, timeout=_SILENT_SECONDS) as response:
            if url.startswith("https:") and not response.geturl().startswith("https:"):
                raise _refused(handle, url, "a redirection away from https")
            length = response.headers.get("Content-Length", "")
            expected = int(length) if length.isdecimal() else None
            received = 0
            with tqdm(total=expected, unit="B", unit_scale=True, desc=handle.text, disable=None) as bar:
                while block := response.read(_BLOCK_BYTES):
                    received += len(block)
                    if received > _LARGEST_BYTES:
                        raise _refused(handle, url, f"more than {_LARGEST_BYTES >> 30} GB")
                    bar.update(len(block))
                    yield block
    except urllib.error.HTTPError as error:
        raise _refused(handle, url, f"HTTP status {error.code}", error.code) from None
    except (OSError, http.client.HTTPException, UnicodeError) as error:  # the file is written to outside of this
        raise _refused(handle, url, _reason(error)) from None
    if expected is not None and received != expected:
        raise _refused(handle, url, f"{received} of {expected} bytes, then the connection was cut")


def _from_kaggle(handle, folder):
    try:
        import kagglehub
        from kagglehub import exceptions
    except ImportError as error:
        raise _missing_client(handle, "kagglehub", error) from None
    faults = [fault for fault in vars(exceptions).values() if isinstance(fault, type) and issubclass(fault, Exception)]
    try:
        path = kagglehub.model_download(handle.address, output_dir=str(folder))
    except (OSError, ValueError, EOFError, *faults) as error:
        url = f"https://www.kaggle.com/models/{handle.address}"
        raise _refused(handle, url, _reason(error), _status(error)) from None
    if Path(path) != folder:  # in notebooks of Kaggle and Colab the files are there already, in a folder of its own
        shutil.copytree(path, folder, dirs_exist_ok=True)
    shutil.rmtree(folder / ".complete", ignore_errors=True)


def _from_hugging_face(handle, folder):
    try:
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise _missing_client(handle, "huggingface_hub", error) from None
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    try:
        repository = HfApi(endpoint=endpoint).model_info(handle.address, revision=handle.revision, files_metadata=True)
        files = {file.rfilename: file for file in repository.siblings}
        names = wanted_files(list(files))
        snapshot_download(
            handle.address,
            revision=repository.sha,
            local_dir=folder,
            allow_patterns=[glob.escape(name) for name in names],
            endpoint=endpoint,
        )
    except (
        OSError,
        ValueError,
        RuntimeError,
        *HfHubHTTPError.__bases__,
    ) as error:  # the bases: errors of its transport
        raise _refused(handle, f"{endpoint}/{handle.address}", _reason(error), _status(error)) from None
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if damaged := [name for name in names if not _is_whole(folder / name, files[name])]:
        raise _refused(handle, f"{endpoint}/{handle.address}", f"files that are cut or changed: {', '.join(damaged)}")


def _is_whole(path, listed):
    """Whether a file has the size, and the checksum if there is one, that the list of the repository says."""
    if not path.is_file() or listed.size not in (None, path.stat().st_size):
        return False
    return not listed.lfs or sha256_of(path) == listed.lfs.sha256


def wanted_files(names):
    """Chooses the files of a repository that readers need: of weights that are there in several forms, one form.

    Args:
        names: list of str, all files, as paths with "/".

    Returns:
        list of str.
    """
    paths = [PurePosixPath(name) for name in names]
    paths = [path for path in paths if not path.is_absolute() and ".." not in path.parts]
    wanted = [path for path in paths if any(fnmatch.fnmatchcase(str(path), pattern) for pattern in _SIDE_FILES)]
    for folder in dict.fromkeys(path.parent for path in paths):
        here = [path for path in paths if path.parent == folder]
        kinds = ([path for path in here if fnmatch.fnmatchcase(path.name, pattern)] for pattern in _WEIGHTS)
        wanted += next(filter(None, kinds), [])
    return list(dict.fromkeys(map(str, wanted)))


def _missing_client(handle, package, error):
    return CheckpointError(
        f"{handle.text} needs the package {package} to be fetched. Received: {error}. "
        f"Install it: pip install {package}. Or download the model in a browser, and give the folder."
    )


def _refused(handle, url, received, status=None):
    """The error for an answer that is no model."""
    moved = " Models of tfhub.dev live on kaggle.com/models now." if handle.server == TF_HUB else ""
    steps = {
        401: "It needs a login, or does not exist: log in with the server's own client, or check the name.",
        403: "It needs a login or terms to be accepted: do that with the server's own client or on its page.",
        404: f"Check the name and the version.{moved}",
    }
    step = steps.get(status, "Check the network and try again.")
    return CheckpointError(
        f"{handle.text} must be a model that can be fetched. Received: {received}, from {url}. {step} "
        "Or download the model in a browser, and give the folder or the archive."
    )


def _status(error):
    """The HTTP status that an error of a client is about, or None."""
    return getattr(getattr(error, "response", None), "status_code", None)


def _reason(error):
    """What an error says in one line, without what may be a secret in its URLs."""
    if status := _status(error):
        return f"HTTP status {status}"
    line = (str(error).strip().splitlines() or [""])[0]
    line = _SECRETS.sub("", line)
    return f"{type(error).__name__} ({line[:200]})"
