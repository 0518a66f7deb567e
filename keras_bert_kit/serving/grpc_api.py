"""TF Serving's gRPC API, with the official messages and stubs of `tensorflow-serving-api`."""

import time

import tensorflow as tf

from keras_bert_kit.errors import ServingError
from keras_bert_kit.serving.calls import failure

_OPTIONS = (
    ("grpc.max_send_message_length", -1),  # no limit here: TF Serving has none
    ("grpc.max_receive_message_length", -1),
    # While gRPC waits to connect again, every call fails at once: it must not wait longer than our own pauses.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
)


class GrpcTransport:
    """Asks a server over gRPC. All calls share one connection, which threads may use at once.

    Args:
        address: str, "grpc://host:port", or "grpcs://host:port" for TLS with the certificates that gRPC trusts.

    Raises:
        ImportError: tensorflow-serving-api is not installed.
    """

    def __init__(self, address):
        try:
            import grpc
            from tensorflow_serving.apis import prediction_service_pb2_grpc
        except ImportError as error:
            raise ImportError(
                f"{address} needs TF Serving's messages, or give the REST port as http://host:8501. "
                "Run: pip install 'keras_bert_kit[serving]'"
            ) from error
        self.address = address
        scheme, target = address.split("://")
        if scheme == "grpcs":
            self._channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(), _OPTIONS)
        else:
            self._channel = grpc.insecure_channel(target, _OPTIONS)
        self._service = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)

    def run(self, call, deadline):
        """Sends one call.

        Args:
            call: `Call`.
            deadline: float, by `time.monotonic()`.

        Returns:
            dict from the name of an output to an array.

        Raises:
            PassingError: no connection, an interrupted one, no answer in time, or the server says to come back.
            ServingError: any other answer.
        """
        import grpc

        try:
            response = self._service.Predict(_request(call), timeout=max(0.0, deadline - time.monotonic()))
        except grpc.RpcError as error:
            raise failure(error.code().name, error.details() or "", call, self.address) from error
        try:
            return {name: tf.make_ndarray(tensor) for name, tensor in response.outputs.items()}
        except (TypeError, ValueError) as error:
            raise ServingError(
                f"{self.address} must answer with whole tensors. Received: {error}. Look at the server's log."
            ) from error

    def close(self):
        """Closes the connection."""
        self._channel.close()


def _request(call):
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name = call.model
    request.model_spec.signature_name = call.signature
    if call.version is not None:
        request.model_spec.version.value = call.version
    for name, texts in call.inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    return request
