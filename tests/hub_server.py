"""A server on this machine that speaks the protocols of TF-Hub, Hugging Face and Kaggle, and misbehaves on request."""

import contextlib
import hashlib
import http.server
import io
import json
import tarfile
import threading
import time
from urllib.parse import parse_qs, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class HubServer(http.server.ThreadingHTTPServer):
    """Answers from `models`: {name: folder}. On Kaggle the name is owner/model/variation/version.

    Attributes:
        fault: what is wrong: None, an HTTP status, "garbage", "cut" (half of what was announced), "silent" (for a
            second), or a function of the bytes.
        asked: list of (method, path) of the requests so far.
        url: str.
    """

    daemon_threads = True

    def __init__(self, models):
        super().__init__(("127.0.0.1", 0), _Answers)
        self.models, self.fault, self.asked = models, None, []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """A client that hangs up is no fault of the server's."""


@contextlib.contextmanager
def serving(models):
    """Yields a running `HubServer`."""
    server = HubServer(models)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def packed(folder):
    """The tar.gz of a folder, as TF-Hub has it: names begin with "./"."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        archive.add(folder, ".")
    return file.getvalue()


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.command, self.path))
        url = urlsplit(self.path)
        name = url.path.strip("/")
        if parse_qs(url.query).get("tf-hub-format") == ["compressed"] and name in self.server.models:
            return self._send(packed(self.server.models[name]))
        if name.startswith("api/models/"):
            name, *tree = name.removeprefix("api/models/").split(f"/tree/{COMMIT}")
            return self._send_repository(name.partition("/revision/")[0], bool(tree))
        repository, _, file = name.partition(f"/resolve/{COMMIT}/")
        if repository in self.server.models and (self.server.models[repository] / file).is_file():
            return self._send((self.server.models[repository] / file).read_bytes())
        return self._send(b"", 404)

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        self.server.asked.append((self.command, self.path, body))
        name = "/".join(str(body.get(key)) for key in ("ownerSlug", "modelSlug", "instanceSlug", "versionNumber"))
        folder = self.server.models.get(name)
        if folder is None:
            return self._send(b"{}", 404)
        if self.path.endswith("ListModelInstanceVersionFiles"):
            files = [{"name": str(path.relative_to(folder))} for path in folder.rglob("*") if path.is_file()]
            return self._send(json.dumps({"files": files}).encode(), sound=True)
        return self._send((folder / body["path"]).read_bytes())

    def _send_repository(self, name, as_tree):
        if name not in self.server.models:
            return self._send(b"{}", 404, {"X-Error-Code": "RepoNotFound"})
        folder = self.server.models[name]
        paths = [path for path in folder.rglob("*") if path.is_file()]
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in paths}
        if as_tree:
            answer = [{"type": "file", "path": path, "size": size, "oid": COMMIT} for path, size in sizes.items()]
        else:
            files = [{"rfilename": path, "size": size} for path, size in sizes.items()]
            answer = {"id": name, "sha": COMMIT, "siblings": files}
        return self._send(json.dumps(answer).encode(), sound=True)

    def _send(self, content, status=200, headers=None, sound=False):
        """Sends an answer. One that is `sound` is spared all faults but those of the status."""
        fault = self.server.fault
        if isinstance(fault, int):
            content, status = b"no", fault
        elif not sound and fault == "garbage":
            content = b"<html>sign in</html>"
        elif not sound and callable(fault):
            content = fault(content)
        if fault == "silent":
            time.sleep(1)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if fault == "cut" and not sound:
            content, self.close_connection = content[: len(content) // 2], True
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        """Keeps the output of the tests free of requests."""
