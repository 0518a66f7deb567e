"""`ServingClient`: the answers of a model that TF Serving serves, as `Predictor` gives them.

texts ──► batches of similar length ──► REST or gRPC ──► checked ──► Predictions, in the order of the texts
predictions.py                          rest.py, grpc_api.py         calls.py: failures, and asking again
"""

import json
import re
import time
from numbers import Integral, Real
from urllib.parse import urlsplit

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import ServingError
from keras_bert_kit.serving.calls import Call, ask
from keras_bert_kit.serving.grpc_api import GrpcTransport
from keras_bert_kit.serving.predictions import answer_in_batches, prediction_of, require_batch_size, signature_for
from keras_bert_kit.serving.rest import RestTransport
from keras_bert_kit.serving.signatures import INPUTS

# TF Serving takes more; proxies before it often take 4 MB, gRPC's own default.
LARGEST_REQUEST_BYTES = 2 << 20
LARGEST_TIMEOUT_SECONDS = 86_400  # sockets do not take any number

_TRANSPORTS = {"http": RestTransport, "https": RestTransport, "grpc": GrpcTransport, "grpcs": GrpcTransport}
_ADDRESS = re.compile(r"(https?://[^/@\s?#]+(/[^@\s?#]*)?|grpcs?://[^/@\s?#]+:\d+/?)")
_ANY = np.array([b""], object)  # TF Serving wants an input for every signature


class ServingClient:
    """Answers texts by a model that `export_for_serving` wrote and TF Serving serves.

    After a failure that may pass (the server or the network is not there, or too slow: UNAVAILABLE, DEADLINE_EXCEEDED,
    HTTP 502 to 504), it asks again, with longer and longer pauses, until `timeout` seconds have passed. May be used by
    several threads at once. Closes its connection at the end of a `with` block.

    Args:
        address: str. "http://host:8501" or "https://host/prefix" for REST, which needs no other package;
            "grpc://host:8500" or "grpcs://host:443" for gRPC, which needs `pip install 'keras_bert_kit[serving]'`.
        model: str, the name the model is served by.
        version: int. Default: the one that the server takes, which is the largest number it has.
        timeout: float, seconds for one `predict` or `metadata`, all batches, attempts and pauses together; a day at
            most. Over REST, finding the host, connecting and the TLS handshake may take as long again.
        retries: int, how often a request is sent again.

    Raises:
        ValueError: an argument is not of that form.
        ImportError: gRPC's package is absent.

    Example:

    >>> client = ServingClient("http://localhost:8501", model="ag_news")
    >>> client.predict(["Shares rise after the merger", "Home team wins"])[1].label
    'Sports'
    """

    def __init__(self, address, model, version=None, timeout=60.0, retries=5):
        if not _is_address(address):
            # Not repeated: it may hold a password.
            raise ValueError("address must be like http://host:8501 or grpc://host:8500. Received: something else.")
        if not model or not isinstance(model, str) or set("/:") & set(model):
            raise ValueError(f"model must be the name of a served model, without / and :. Received: model={model!r}.")
        if not (version is None or (isinstance(version, Integral) and version is not True and 0 <= version < 2**63)):
            raise ValueError(f"version must be a number from 0 to 2**63 - 1, or None. Received: version={version!r}.")
        if not (isinstance(timeout, Real) and 0 < timeout <= LARGEST_TIMEOUT_SECONDS):
            raise ValueError(
                f"timeout must be a number of seconds above 0, at most {LARGEST_TIMEOUT_SECONDS:,} (a day). "
                f"Received: timeout={timeout!r}."
            )
        if not (isinstance(retries, Integral) and retries >= 0):
            raise ValueError(f"retries must be a whole number, 0 or more. Received: retries={retries!r}.")
        self.model, self.version, self.timeout, self.retries = model, version, timeout, retries
        self._transport = _TRANSPORTS[address.split(":")[0]](address.rstrip("/"))
        self._class_names = None
        self._closed = False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Closes the connection; nothing can be asked afterwards."""
        self._closed = True
        self._transport.close()

    def predict(self, texts, batch_size=32):
        """Answers texts, in their order.

        Unless the client has a `version`, it asks for the class names again behind the answers: another version may
        have taken over. If they are others than before, it asks for all answers again.

        Args:
            texts: str (one text), list of str, NumPy array or tensor of strings of rank 1. Empty text is a text. Or a
                tuple of two such, the two segments, as for `BertPacker`: the signature `pairs` answers.
            batch_size: int, texts in one request. A request is kept below 2 MB of text, as far as texts are.

        Returns:
            list of `Prediction`, one for each text; empty for an empty list.

        Raises:
            ValueError: something is not a string (None, NaN: its position is named), or the rank is above 1.
            ServingError: the server cannot be reached, does not have the model, or answers something else than one
                finite row for each text.
        """
        signature, segments = signature_for(texts)
        deadline = time.monotonic() + self.timeout

        def answer(*batch):
            outputs = self._ask(signature, dict(zip(INPUTS[signature], batch, strict=True)), deadline)
            return _rows(outputs, len(batch[0]))

        require_batch_size(batch_size)
        if not len(segments[0]):
            return []
        class_names = self._class_names or self._metadata(deadline)["class_names"]
        while True:
            rows = answer_in_batches(segments, answer, batch_size, LARGEST_REQUEST_BYTES)
            before = class_names
            if self.version is None:
                class_names = self._metadata(deadline)["class_names"]
            self._class_names = class_names
            if class_names == before:
                return [_prediction(*row, class_names) for row in rows]

    def metadata(self):
        """What the served model says of itself.

        Returns:
            dict: `kit_version` str, `config` dict, `vocabulary_sha256` str, `class_names` tuple of str,
            `weights_source` str; and `requires` str, where the model needs more than core TensorFlow.

        Raises:
            ServingError: as `predict`; or the model has no such signature.
        """
        return self._metadata(time.monotonic() + self.timeout)

    def _metadata(self, deadline):
        outputs = self._ask("metadata", {"request": _ANY}, deadline)
        try:
            texts = {
                name: [tf.compat.as_str(text) for text in np.ravel(value).tolist()] for name, value in outputs.items()
            }
            single = {name: texts[name][0] for name in ("kit_version", "vocabulary_sha256", "weights_source")}
            if "requires" in texts:
                single["requires"] = texts["requires"][0]
            return {**single, "config": json.loads(texts["config"][0]), "class_names": tuple(texts["class_names"])}
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise _unusable(f"{str(outputs)[:200]} of the signature 'metadata'") from error

    def _ask(self, signature, inputs, deadline):
        if self._closed:
            raise ServingError("A ServingClient must be open. Received: one that was closed. Make another one.")
        call = Call(self.model, self.version, signature, inputs)
        return ask(self._transport, call, deadline, self.retries)


def _is_address(address):
    """Whether it has the form of one, with a port below 65536 and a host that can be looked up."""
    if not _ADDRESS.fullmatch(str(address)):
        return False
    try:
        parts = urlsplit(address)
        return bool(parts.hostname.encode("idna")) and parts.port != 0 and parts.path.isascii()
    except ValueError:  # of the port, of brackets, of IDNA
        return False


def _rows(outputs, number):
    """List of pairs, label and probabilities, float32 (classes,), if that is what a server sent."""
    try:
        labels = [tf.compat.as_str(label) for label in outputs["label"]]
        probabilities = np.array(outputs["probabilities"], np.float32)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise _unusable(str(outputs)[:200]) from error
    if probabilities.ndim != 2 or not len(labels) == len(probabilities) == number:
        shape = f"{len(labels)} labels and probabilities of shape {probabilities.shape}"
        raise _unusable(f"{shape} for {number} texts")
    if not np.isfinite(probabilities).all():
        raise _unusable(f"{np.size(probabilities) - np.isfinite(probabilities).sum()} probabilities that are NaN")
    if probabilities.min(initial=0) < 0 or not np.allclose(probabilities.sum(axis=1), 1, atol=1e-3):
        raise _unusable("probabilities below 0, or that do not sum to 1")
    return list(zip(labels, probabilities, strict=True))


def _prediction(label, probabilities, class_names):
    """A `Prediction`, if the label is that of a largest probability. Equally large ones may be in another order."""
    fits = len(probabilities) == len(class_names) and label in class_names
    if not fits or probabilities[class_names.index(label)] < probabilities.max() - 1e-6:
        raise _unusable(f"the label {label!r} for {len(probabilities)} probabilities of the classes {class_names}")
    return prediction_of(probabilities, class_names)


def _unusable(received):
    return ServingError(
        f"A served model must answer each text with one of its labels and finite probabilities. Received: {received}. "
        "Serve a model that export_for_serving of this version of the kit wrote."
    )
