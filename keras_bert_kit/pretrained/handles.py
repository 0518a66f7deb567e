"""Handles: names of models that live on a server, and the folder of the cache that each of them has.

| handle | server |
|---|---|
| `https://tfhub.dev/tensorflow/bert_en_uncased_L-12_H-768_A-12/4` | tfhub.dev; any http(s) URL: TF-Hub's protocol |
| `tensorflow/bert_en_uncased_L-12_H-768_A-12/4` | tfhub.dev |
| `https://www.kaggle.com/models/tensorflow/bert/TensorFlow2/en-uncased-l-12-h-768-a-12/4` | Kaggle |
| `kaggle://tensorflow/bert/tensorFlow2/en-uncased-l-12-h-768-a-12/4` | Kaggle |
| `hf://google-bert/bert-base-uncased`, `hf://google-bert/bert-base-uncased@main` | Hugging Face |

What TF-Hub's families of BERT hold, as their publishers say (https://github.com/tensorflow/hub/issues/465 and 493):

* `google/bert_uncased_L-12_H-768_A-12`, the lesson's, is the original BERT as a module of TF1, with a masked-LM
  signature. Version 1 is the one that is documented; of a version 2 or 3 we found no description. Each is tried as it
  is given, and what comes is read by its content.
* `tensorflow/bert_en_uncased_L-12_H-768_A-12` holds the same weights as a SavedModel of TF2: versions 1 and 2 take a
  list of tensors, 3 and 4 a dictionary.
* `google/small_bert/bert_uncased_L-…` (versions 1 and 2) and `tensorflow/small_bert/bert_en_uncased_L-…` are the 24
  smaller models; `tensorflow/bert_en_uncased_preprocess/3` is for `load_preprocessor`.
"""

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from keras_bert_kit.errors import CheckpointError

TF_HUB, KAGGLE, HUGGING_FACE = "TF-Hub", "Kaggle", "Hugging Face"
TFHUB_DEV = "https://tfhub.dev/"
COMPRESSED = "?tf-hub-format=compressed"  # what TF-Hub's protocol adds to a handle to get an archive

_KAGGLE_HOSTS = ("kaggle.com", "www.kaggle.com")
# Two slashes, or the one that pathlib leaves of them.
_SCHEME = re.compile(r"(https?|kaggle|hf):/{1,2}(.*)", re.DOTALL | re.IGNORECASE)
_BARE = re.compile(r"(?:google|tensorflow)/(?:[\w-]+/)*[\w.-]*bert[\w.-]*/\d+")
_LONGEST = 128  # letters in a part of a handle, which becomes the name of a folder
_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{_LONGEST - 1}}}")


class Handle(NamedTuple):
    """A model on a server.

    Attributes:
        text: str, the handle as it is given in reports and messages.
        server: TF_HUB, KAGGLE or HUGGING_FACE.
        address: str, what is asked for: a URL, or the name that the server's own client takes.
        revision: str or None, the branch, tag or commit on Hugging Face.
        folder: `pathlib.PurePath`, its place in the cache.
    """

    text: str
    server: str
    address: str
    revision: str | None
    folder: Path


def handle_of(source):
    """Returns the `Handle` that a source is, or None for a path.

    A name without scheme is a handle only if no such path exists and it looks like TF-Hub's: it begins with `google/`
    or `tensorflow/`, holds "bert" and ends with a version number.

    Args:
        source: str or `pathlib.Path`.

    Raises:
        CheckpointError: It has the scheme of a handle and is none.
    """
    text = str(source)
    if _BARE.fullmatch(text) and not Path(text).exists():
        return _tf_hub_handle(TFHUB_DEV + text)
    if not (found := _SCHEME.fullmatch(text)):
        return None
    scheme, rest = found[1].lower(), found[2]
    if scheme == "hf":
        return _hugging_face_handle(rest)
    if scheme == "kaggle":
        return _kaggle_handle(rest)
    return _tf_hub_handle(f"{scheme}://{rest}")


def _tf_hub_handle(url):
    host, path = _checked_url(url)
    parts = [part for part in path.split("/") if part]
    if host in _KAGGLE_HOSTS and parts[:1] == ["models"]:
        return _kaggle_handle(
            "/".join(part for part in parts[1:] if part not in ("frameworks", "variations", "versions"))
        )
    if not parts or {".", ".."} & set(parts) or max(map(len, parts)) > _LONGEST:
        raise CheckpointError(
            f"The URL of a model must have a path of ordinary names. Received: {url[:300]!r}. "
            f"Like: {TFHUB_DEV}google/…/1."
        )
    url = f"{url.split(':')[0]}://{host}/{'/'.join(parts)}"
    return Handle(url, TF_HUB, url, None, Path("tf-hub", *(quote(part, safe=" @+=,") for part in (host, *parts))))


def _checked_url(url):
    """The host and the path of a URL that holds nothing else: what else it held might be a secret."""
    try:
        parts = urlsplit(url.removesuffix(COMPRESSED))
        host = parts.hostname + (f":{parts.port}" if parts.port else "")
    except (ValueError, TypeError):
        raise CheckpointError(f"A URL must have a host. Like: {TFHUB_DEV}google/….") from None
    if parts.username or parts.password or parts.query or parts.fragment or re.search(r"[\s\0]", url):
        raise CheckpointError(
            "A URL of a model must hold no user name, password, query or fragment. "
            f"Received: one at {host}{parts.path}. Leave them out; servers that need them are not supported."
        )
    return host, parts.path


def _kaggle_handle(name):
    parts = name.strip("/").split("/")
    if len(parts) != 5 or not all(map(_NAME.fullmatch, parts)) or not parts[4].isdecimal():
        raise CheckpointError(
            "A handle of Kaggle must be kaggle://owner/model/framework/variation/version, or the URL of it. "
            f"Received: {name!r}. Like: kaggle://tensorflow/bert/tensorFlow2/en-uncased-l-12-h-768-a-12/4."
        )
    owner, model, framework, variation, version = parts
    framework = framework[:1].lower() + framework[1:]  # the URL has TensorFlow2, the client takes tensorFlow2
    address = f"{owner}/{model}/{framework}/{variation}/{version}"
    return Handle(f"kaggle://{address}", KAGGLE, address, None, Path("kaggle", *address.split("/")))


def _hugging_face_handle(name):
    repository, _, revision = name.strip("/").partition("@")
    parts = repository.split("/")
    if len(parts) > 2 or not all(map(_NAME.fullmatch, parts)) or ("@" in name and not 0 < len(revision) <= _LONGEST):
        raise CheckpointError(
            f"A handle of Hugging Face must be hf://owner/name or hf://owner/name@revision. Received: {name!r}. "
            "Like: hf://google-bert/bert-base-uncased."
        )
    revision = revision or "main"
    folder = Path("hugging-face", *parts[:-1], f"{parts[-1]}@{quote(revision, safe='')}")
    return Handle(f"hf://{repository}@{revision}", HUGGING_FACE, repository, revision, folder)
