"""TF Serving's REST API (https://www.tensorflow.org/tfx/serving/api_rest), with what Python brings."""

import base64
import http.client
import io
import json
import time
import urllib.error
import urllib.parse
import urllib.request

from keras_bert_kit.errors import ServingError
from keras_bert_kit.serving.calls import failure

_BLOCK_BYTES = 1 << 20
# 502 and 504 are also what a proxy says when the server behind it cannot be reached or is too slow.
_CODES = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class RestTransport:
    """Asks a server over HTTP. Every call opens a connection of its own, so that threads may share the object.

    Args:
        address: str, "http://host:port" or "https://host/prefix".
    """

    def __init__(self, address):
        self.address = address

    def run(self, call, deadline):
        """Sends one call.

        Args:
            call: `Call`.
            deadline: float, by `time.monotonic()`.

        Returns:
            dict from the name of an output to nested lists.

        Raises:
            PassingError: no connection, an interrupted one, no answer in time, or the server says to come back.
            ServingError: any other answer.
        """
        request = urllib.request.Request(self._url(call), _body(call), {"Content-Type": "application/json"})
        try:
            status, content = _send(request, deadline)
        except TimeoutError as error:
            raise failure("DEADLINE_EXCEEDED", str(error), call, self.address) from error
        except (OSError, http.client.HTTPException) as error:
            late = isinstance(getattr(error, "reason", None), TimeoutError)  # urllib wraps what happens on connecting
            code = "DEADLINE_EXCEEDED" if late else "UNAVAILABLE"
            raise failure(code, f"{type(error).__name__}: {error}", call, self.address) from error
        if status != 200:
            raise failure(_CODES.get(status, f"HTTP status {status}"), _error_of(content), call, self.address)
        try:
            return json.loads(content)["outputs"]
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise ServingError(
                f"{self.address} must answer with JSON that holds 'outputs'. Received: {content[:100]!r}. "
                "Check that the address is that of TF Serving's REST port."
            ) from error

    def close(self):
        """Does nothing: no connection stays open."""

    def _url(self, call):
        version = "" if call.version is None else f"/versions/{call.version}"
        return f"{self.address}/v1/models/{urllib.parse.quote(call.model, safe='')}{version}:predict"


def _body(call):
    inputs = {name: [_json_of(text) for text in texts] for name, texts in call.inputs.items()}
    return json.dumps({"signature_name": call.signature, "inputs": inputs}, ensure_ascii=False).encode()


def _json_of(text):
    """JSON holds text only; TF Serving has a form of its own for bytes that are not UTF-8."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(text).decode()}


def _send(request, deadline):
    """Returns status and content of the answer."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("no time is left")
    try:
        response = urllib.request.build_opener(_Http, _Https).open(request, timeout=seconds)
    except urllib.error.HTTPError as error:
        response = error  # an answer too, with a status and words of its own
    with response:
        return response.status, _read(response)


class _Limited:
    """An HTTP connection whose every read waits for what is left of the time, and not for all of it again."""

    def __init__(self, host, timeout, **kwargs):
        super().__init__(host, timeout=timeout, **kwargs)
        self.deadline = time.monotonic() + timeout

    def response_class(self, sock, **kwargs):
        """What `http.client` makes of a socket to read an answer, its headers too."""
        response = http.client.HTTPResponse(sock, **kwargs)
        response.fp = io.BufferedReader(_LimitedReads(response.fp.detach(), sock, self.deadline))
        return response


class _LimitedReads(io.RawIOBase):
    """The reads of a socket up to a deadline."""

    def __init__(self, raw, sock, deadline):
        self.raw, self.sock, self.deadline = raw, sock, deadline

    def readable(self):
        return True

    def readinto(self, buffer):
        seconds = self.deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("no time is left")
        self.sock.settimeout(seconds)
        return self.raw.readinto(buffer)

    def close(self):
        self.raw.close()
        super().close()


class _HttpConnection(_Limited, http.client.HTTPConnection):
    pass


class _HttpsConnection(_Limited, http.client.HTTPSConnection):
    pass


class _Http(urllib.request.HTTPHandler):
    def http_open(self, request):
        return self.do_open(_HttpConnection, request)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, request):
        return self.do_open(_HttpsConnection, request)


def _read(response):
    """Reads an answer, however slowly it drips in."""
    content = bytearray()
    try:
        while block := response.read1(_BLOCK_BYTES):
            content += block
    except TimeoutError as error:
        raise TimeoutError(f"{len(content)} bytes of the answer came in time") from error
    if response.length:  # what was announced and did not come
        raise http.client.IncompleteRead(bytes(content), response.length)
    return bytes(content)


def _error_of(content):
    """The words in TF Serving's {"error": words}, or the beginning of whatever a proxy sends."""
    try:
        return str(json.loads(content)["error"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return content.decode(errors="replace")
