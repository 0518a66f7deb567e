"""TF Serving's two doors, in the test process: real protocol messages, a real exported SavedModel, faults on demand.

    with serve("http", ServedModel(version)) as address, ServingClient(address, model="news") as client: ...

Status codes and words are those of tensorflow_serving/model_servers (http_server.cc, http_rest_api_handler.cc) and
servables/tensorflow/predict_util.cc.
"""

import base64
import contextlib
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import tensorflow as tf

PROTOCOLS = ("http", "grpc")
_HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class Refusal(Exception):
    """What a server answers instead of tensors: name of a gRPC status code, and words."""


class ServedModel:
    """Versions of one model, and the faults that the next requests meet, first come first served.

    A fault is a function from outputs to other outputs, or one of: the name of a status code, a number (seconds that
    the answer takes longer), "malformed", "cut", "no json" (HTTP only).
    """

    def __init__(self, *versions, name="news"):
        self.name = name
        self.signatures = {int(path.name): signatures_of(path) for path in versions}
        self.faults, self.requests = [], []
        self.hurry = threading.Event()  # set: nothing is slow any more

    def answer(self, name, version, signature, inputs):
        """Outputs as {name: array}, and the fault that the protocol has to play, or None."""
        self.requests.append((signature, inputs))
        version = max(self.signatures) if version is None else version
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, str) and fault.isupper():
            raise Refusal(fault, f"this is {fault}")
        if name != self.name or version not in self.signatures:
            raise Refusal("NOT_FOUND", f"Servable not found for request: Specific({name}, {version})")
        if signature not in self.signatures[version]:
            raise Refusal("FAILED_PRECONDITION", f'Serving signature key "{signature}" not found.')
        serve = self.signatures[version][signature]
        if (missing := set(serve.structured_input_signature[1])) != set(inputs):
            raise Refusal("INVALID_ARGUMENT", f"input size does not match signature: {missing}")
        outputs = {name: tensor.numpy() for name, tensor in serve(**inputs).items()}
        if isinstance(fault, int | float):
            self.hurry.wait(fault)
        if callable(fault):
            outputs, fault = fault(outputs), None
        return outputs, fault


def signatures_of(path):
    """The signatures of a version, as a dictionary."""
    return dict(tf.saved_model.load(str(path)).signatures)


@contextlib.contextmanager
def serve(protocol, model, port=0):
    """Yields the address of a server."""
    with _http_server(model, port) if protocol == "http" else _grpc_server(model, port) as port:
        yield f"{protocol}://127.0.0.1:{port}"


@contextlib.contextmanager
def _http_server(model, port):
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads, server.block_on_close = True, False  # a slow answer does not hold up the end
    server.model = model
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = re.fullmatch(r"/v1/models/([^/:]+)(?:/versions/(\d+))?:predict", self.path)
        status, fault = 200, None
        try:
            if not path:
                raise Refusal("INVALID_ARGUMENT", f"Malformed request: POST {self.path}")
            outputs, fault = self._outputs(*path.groups(), json.loads(body))
            content = json.dumps({"outputs": {name: _as_json(value) for name, value in outputs.items()}})
        except Refusal as refusal:
            code, words = refusal.args
            status, content = _HTTP_STATUS[code], json.dumps({"error": words})
        if fault == "malformed":
            content = content[: len(content) // 2]
        if fault == "no json":
            content = "<html>welcome</html>"
        self._send(status, content.encode(), cut=fault == "cut")

    def _outputs(self, name, version, body):
        inputs = {name: np.array([_from_json(text) for text in texts]) for name, texts in body["inputs"].items()}
        inputs = {name: tf.constant(texts.tolist(), tf.string) for name, texts in inputs.items()}
        return self.server.model.answer(name, version and int(version), body["signature_name"], inputs)

    def _send(self, status, content, cut):
        with contextlib.suppress(OSError):  # the client may have gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            self.close_connection = True


def _from_json(text):
    return base64.b64decode(text["b64"]) if isinstance(text, dict) else text.encode()


def _as_json(value):
    """Floats with the digits that float32 needs, NaN as NaN, as TF Serving writes them."""
    if value.dtype == object:
        return [_as_json(row) if isinstance(row, np.ndarray) else row.decode() for row in value]
    return json.loads(np.array2string(value, separator=",", threshold=value.size + 1).replace("nan", "NaN"))


@contextlib.contextmanager
def _grpc_server(model, port):
    import grpc
    from tensorflow_serving.apis import prediction_service_pb2_grpc

    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", -1)])
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(_service(model), server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


def _service(model):
    import grpc
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            spec = request.model_spec
            version = spec.version.value if spec.HasField("version") else None
            inputs = {name: tf.constant(tf.make_ndarray(tensor)) for name, tensor in request.inputs.items()}
            try:
                outputs, fault = model.answer(spec.name, version, spec.signature_name, inputs)
            except Refusal as refusal:
                code, words = refusal.args
                context.abort(grpc.StatusCode[code], words)
            if fault == "cut":
                context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")  # what gRPC makes of it
            response = predict_pb2.PredictResponse()
            response.model_spec.CopyFrom(spec)
            for name, value in outputs.items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
            if fault == "malformed":
                response.outputs["probabilities"].tensor_content = b"123"
            return response

    return Service()


@contextlib.contextmanager
def closing_server(protocol):
    """Yields an address where every connection is accepted, and cut."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)

        def close_all():
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    listener.accept()[0].close()

        thread = threading.Thread(target=close_all)
        thread.start()
        try:
            yield f"{protocol}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


@contextlib.contextmanager
def dripping_server(seconds_a_byte):
    """Yields the address of an HTTP server whose answer has no end, one byte at a time."""

    class Drip(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    self.wfile.write(b" ")
                    time.sleep(seconds_a_byte)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
