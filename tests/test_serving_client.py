"""ServingClient over REST and gRPC: the answers of Predictor, and one clear error for everything else."""

import json
import random
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from serving_models import CLASS_NAMES, small_classifier, small_pack
from serving_server import PROTOCOLS, ServedModel, closing_server, dripping_server, serve, signatures_of

from keras_bert_kit.errors import ServingError
from keras_bert_kit.serving import Predictor, ServingClient, calls, check, export_for_serving, rest

TEXTS = [
    "We love the news",
    "",
    "Über 中 cafe!",
    "team wins the game " * 20,
    "a\x00b",
    b"\xff\xfe news \xc3",
    "🙂 שלום",
]


@pytest.fixture(scope="module", params=PROTOCOLS)
def protocol(request):
    if request.param == "grpc":
        pytest.importorskip("tensorflow_serving", reason="needs pip install 'keras_bert_kit[serving]'")
    return request.param


def exported(classifier, folder, **settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # tested in test_serving_export.py
        return export_for_serving(classifier, small_pack(), folder, **settings)


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    return exported(small_classifier(), tmp_path_factory.mktemp("served") / "news", weights_source="a random one")


@pytest.fixture(scope="module")
def other_classes(tmp_path_factory):
    """Another version of the same model, which could be served next."""
    classifier = small_classifier(seed=1)
    classifier.class_names = ("Sports", "Tech", "World")
    names = ["serving_default", "pairs", "metadata"]
    return exported(classifier, tmp_path_factory.mktemp("next") / "news", signatures=names)


@pytest.fixture(scope="module")
def predictor(version):
    return Predictor(version)


@pytest.fixture(scope="module")
def served(version):
    return ServedModel(version)


@pytest.fixture(scope="module")
def address(protocol, served):
    with serve(protocol, served) as address:
        yield address


@pytest.fixture
def client(address, served, monkeypatch):
    """A client whose pauses are short, and a server without faults."""
    monkeypatch.setattr(calls, "_FIRST_PAUSE_SECONDS", 0.002)
    served.faults.clear()
    served.requests.clear()
    served.hurry.clear()
    with ServingClient(address, model="news") as client:
        yield client
    served.hurry.set()


@pytest.fixture
def asked(client, served):
    """The same client, which knows the class names already: the next fault meets the next batch."""
    client.predict("news")
    served.requests.clear()
    return client


def texts_of(requests):
    """How many texts there are in each request for answers."""
    return [len(inputs["text"]) for signature, inputs in requests if signature == "serving_default"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def rows(predictions):
    return np.array([list(prediction.probabilities.values()) for prediction in predictions])


def require_same(predictions, expected):
    assert [prediction.label for prediction in predictions] == [prediction.label for prediction in expected]
    assert [list(prediction.probabilities) for prediction in predictions] == [list(CLASS_NAMES)] * len(expected)
    np.testing.assert_allclose(rows(predictions), rows(expected), atol=1e-6)


def test_the_answers_of_predictor(client, predictor):
    require_same(client.predict(TEXTS), predictor.predict(TEXTS))
    assert client.predict([]) == []


@pytest.mark.parametrize("text", ["news", b"news", np.array(["news"]), np.array("news"), tf.constant(["news"])])
def test_forms_of_one_text(client, predictor, text):
    require_same(client.predict(text), predictor.predict("news"))


@pytest.mark.parametrize("texts", [["news", None], ["news", float("nan")], [["news"]], np.array([["news"]])])
def test_what_is_no_text_is_never_sent(client, served, texts):
    with pytest.raises(ValueError, match="must be (of rank 1|strings)"):
        client.predict(texts)
    for batch_size in (0, 2.5, None):
        with pytest.raises(ValueError, match=f"whole number, 1 or more. Received: batch_size={batch_size}"):
            client.predict("news", batch_size=batch_size)
    assert served.requests == []


def test_order_and_batches(asked, served, predictor):
    texts = ["team " * length + "wins" for length in (9, 0, 4, 12, 1, 7, 3)]
    require_same(asked.predict(texts, batch_size=3), predictor.predict(texts))
    assert texts_of(served.requests) == [3, 3, 1]


def test_requests_stay_small(asked, served, predictor, monkeypatch):
    monkeypatch.setattr("keras_bert_kit.serving.client.LARGEST_REQUEST_BYTES", 100)
    texts = ["news " * 30, "a" * 40, "b", "a" * 40, "a" * 40]
    require_same(asked.predict(texts), predictor.predict(texts))
    assert texts_of(served.requests) == [3, 1, 1]


def test_a_megabyte(client, predictor):
    texts = ["news " * 200_000] * 5
    require_same(client.predict(texts), predictor.predict(texts))


def test_metadata(client, version):
    kit_file = json.loads((version / "assets.extra" / "kit.json").read_text(encoding="utf-8"))
    metadata = client.metadata()
    assert metadata["class_names"] == CLASS_NAMES
    assert metadata["vocabulary_sha256"] == kit_file["vocabulary_sha256"]
    assert metadata["kit_version"] == kit_file["kit_version"]
    assert metadata["config"]["hidden_size"] == 16
    assert metadata["weights_source"] == "a random one"
    assert {type(name) for name in metadata["class_names"]} == {str}


@pytest.mark.parametrize(
    "faults",
    [["UNAVAILABLE", "UNAVAILABLE"], ["DEADLINE_EXCEEDED"], ["cut"], ["cut", "UNAVAILABLE", "DEADLINE_EXCEEDED"]],
    ids=" ".join,
)
def test_what_passes_is_tried_again(asked, served, predictor, faults):
    served.faults += faults
    require_same(asked.predict(TEXTS), predictor.predict(TEXTS))
    assert texts_of(served.requests) == [len(TEXTS)] * (len(faults) + 1)


def test_a_server_that_stays_away(asked, served):
    served.faults += ["UNAVAILABLE"] * 99
    asked.retries = 3
    with pytest.raises(ServingError, match="UNAVAILABLE, 'this is UNAVAILABLE'. Check the address.*Asked 4 times"):
        asked.predict("news")
    assert len(served.requests) == 4


def test_one_deadline_for_everything(asked, served, monkeypatch):
    """A slow answer, and pauses, and several batches: all within one timeout."""
    monkeypatch.setattr(calls, "_FIRST_PAUSE_SECONDS", 0.1)
    asked.timeout, asked.retries = 0.5, 1000
    for faults in ([30.0], ["UNAVAILABLE"] * 999, [0.2] * 99):
        served.faults[:] = faults
        start = time.monotonic()
        with pytest.raises(ServingError, match="DEADLINE_EXCEEDED|UNAVAILABLE"):
            asked.predict(["news"] * 8, batch_size=1)
        assert time.monotonic() - start < 5


def test_slow_but_in_time(asked, served, predictor):
    served.faults += [0.2]
    require_same(asked.predict("news"), predictor.predict("news"))


def test_an_answer_that_drips():
    with dripping_server(0.02) as address:
        client, start = ServingClient(address, model="news", timeout=0.4, retries=0), time.monotonic()
        with pytest.raises(ServingError, match="DEADLINE_EXCEEDED, '.* bytes of the answer came in time'"):
            client.predict("news")
        assert 0.3 < time.monotonic() - start < 5


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"], ids=["headers", "content"])
def test_an_answer_that_stops(begin):
    """The answer begins late: from there on only what is left of the time is waited for."""

    def play(listener):
        with listener.accept()[0] as connection:
            connection.recv(1 << 16)
            time.sleep(0.6)
            connection.sendall(begin or b"HTTP/1.1 200 OK\r\n")
            time.sleep(0.9)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        playing = pool.submit(play, listener)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client, start = ServingClient(address, model="news", timeout=0.8, retries=0), time.monotonic()
        with pytest.raises(ServingError, match="DEADLINE_EXCEEDED"):
            client.predict("news")
        assert time.monotonic() - start < 1.2
        playing.result()


def test_texts_are_sent_as_utf8(served, monkeypatch):
    """A text in Cyrillic is 2 bytes a letter, and not 6."""
    call = calls.Call("news", None, "serving_default", {"text": np.array(["Привет".encode(), b"\xff"], object)})
    body = rest._body(call)
    assert "Привет".encode() in body
    assert json.loads(body)["inputs"]["text"] == ["Привет", {"b64": "/w=="}]


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b'{"outputs": {"label": ["World"], "probabilities": [[' + b"9" * 400 + b"]]}}"]
)
def test_strange_json(monkeypatch, content):
    monkeypatch.setattr(rest, "_send", lambda *args: (200, content))
    client = ServingClient("http://localhost:1", model="news", version=1)
    client._class_names = CLASS_NAMES
    with pytest.raises(ServingError, match="must answer"):
        client.predict("news")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "olds"}, "of the model 'olds'. Received: NOT_FOUND, 'Servable not found.*Check the name"),
        ({"version": 7}, "'news', version 7. Received: NOT_FOUND"),
    ],
)
def test_no_such_model(address, served, arguments, message):
    served.faults.clear()
    served.requests.clear()
    with (
        ServingClient(address, **{"model": "news", **arguments}) as client,
        pytest.raises(ServingError, match=message),
    ):
        client.predict("news")
    assert len(served.requests) == 1, "asking again would not help"


def test_version(address, predictor):
    with ServingClient(address, model="news", version=1) as client:
        require_same(client.predict("news"), predictor.predict("news"))


def test_no_such_signature(client, served, monkeypatch):
    signatures = dict(served.signatures[1])
    monkeypatch.setitem(served.signatures, 1, {"serving_default": signatures["serving_default"]})
    message = "'metadata' of .* Received: (FAILED_PRECONDITION|INVALID_ARGUMENT), .*not found.* Serve a model"
    with pytest.raises(ServingError, match=message):
        client.predict("news")


def without(*names):
    return lambda outputs: {name: value for name, value in outputs.items() if name not in names}


def changed(name, change):
    return lambda outputs: {**outputs, name: change(outputs[name].copy())}


def with_nan(probabilities):
    probabilities[0, 1] = np.nan
    return probabilities


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (without("probabilities"), "Received: {.*label"),
        (without("label", "logits", "probabilities"), "Received: {}"),
        (changed("probabilities", lambda rows: rows[:1]), r"2 labels and probabilities of shape \(1, 3\) for 2 texts"),
        (changed("label", lambda rows: rows[:0]), r"0 labels .* for 2 texts"),
        (changed("probabilities", lambda rows: rows[:, 0]), r"shape \(2,\) for 2 texts"),
        (
            changed("probabilities", lambda rows: rows[:, :2] / rows[:, :2].sum(axis=1, keepdims=True)),
            "2 probabilities of",
        ),
        (
            changed("label", lambda rows: np.array([b"x"] * len(rows), object)),
            "the label 'x' for 3 probabilities of the classes",
        ),
        (changed("probabilities", with_nan), "1 probabilities that are NaN"),
        (changed("probabilities", lambda rows: rows - 0.5), "below 0, or that do not sum to 1"),
        (changed("probabilities", lambda rows: rows * 2), "below 0, or that do not sum to 1"),
    ],
    ids="no probabilities,nothing,one row,no labels,one axis,two classes,other labels,nan,below 0,sum 2".split(","),
)
def test_other_answers_than_promised(asked, served, fault, message):
    served.faults += [fault]
    with pytest.raises(ServingError, match=f"(?s)must answer each text.*{message}"):
        asked.predict(["news", "team"])


def test_malformed(asked, served):
    served.faults += ["malformed"]
    with pytest.raises(ServingError, match="must answer with (JSON that holds|whole tensors)"):
        asked.predict("news")
    assert len(served.requests) == 1


def test_another_server(served):
    with serve("http", served) as address, ServingClient(address, model="news") as client:
        served.faults[:] = ["no json"]
        with pytest.raises(ServingError, match="Received: b'<html>welcome</html>'. Check that the address"):
            client.predict("news")


@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"])
def test_other_refusals(asked, served, code):
    served.faults += [code]
    with pytest.raises(ServingError, match=f"'news'. Received: .*this is {code}"):
        asked.predict("news")
    assert len(served.requests) == 1


def test_what_a_model_requires_is_in_its_metadata(client, served):
    assert "requires" not in client.metadata()
    served.faults += [lambda outputs: outputs | {"requires": np.array([b"oneDNN"], object)}]
    assert client.metadata()["requires"] == "oneDNN"


def test_metadata_of_another_kind(client, served):
    served.faults += [without("config")]
    with pytest.raises(ServingError, match="of the signature 'metadata'"):
        client.metadata()


def test_the_server_loads_a_version_with_other_classes(asked, served, other_classes, monkeypatch):
    """The next answer is by the new names; nothing of the old version is mixed into it."""
    monkeypatch.setitem(served.signatures, 2, signatures_of(other_classes))
    predictions = asked.predict(TEXTS)
    assert [list(prediction.probabilities) for prediction in predictions] == [["Sports", "Tech", "World"]] * len(TEXTS)
    np.testing.assert_allclose(rows(predictions), rows(Predictor(other_classes).predict(TEXTS)), atol=1e-6)


class WithInputs:
    """A function as a signature: `serving_server.py` asks for its inputs."""

    def __init__(self, function):
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        self.function, self.structured_input_signature = function, ((), dict.fromkeys(names))

    def __call__(self, **inputs):
        return {name: tf.convert_to_tensor(value) for name, value in self.function(**inputs).items()}


def test_the_server_loads_a_version_with_names_in_another_order(asked, served, monkeypatch):
    """Labels may fit the old names then, and the other probabilities would have wrong ones."""
    names = [CLASS_NAMES[0], *CLASS_NAMES[:0:-1]]
    first, others = np.array([0.7, 0.2, 0.1], np.float32), asked.predict("news")[0].probabilities
    assert list(others) == list(CLASS_NAMES)
    answers = {
        "serving_default": lambda text: {"label": tf.constant([names[0]]), "probabilities": first[None]},
        "metadata": lambda request: (
            served.signatures[1]["metadata"](request=request) | {"class_names": tf.constant([names])}
        ),
    }
    monkeypatch.setitem(served.signatures, 2, {name: WithInputs(answer) for name, answer in answers.items()})
    assert asked.predict("news")[0].probabilities == dict(zip(names, first.tolist(), strict=True))
    assert [signature for signature, _ in served.requests] == ["serving_default", "metadata"] * 3


def test_a_client_of_one_version_reads_its_names_once(address, served):
    served.faults.clear()
    with ServingClient(address, model="news", version=1) as client:
        served.requests.clear()
        client.predict(["news", "team"], batch_size=1)
        client.predict("news")
    assert [signature for signature, _ in served.requests] == ["metadata"] + ["serving_default"] * 3


def test_pairs(client, served, other_classes, monkeypatch):
    predictor, pairs = Predictor(other_classes), (TEXTS, TEXTS[::-1])
    monkeypatch.setitem(served.signatures, 2, dict(predictor._model.signatures))
    expected = tf.nn.softmax(small_classifier(seed=1)(small_pack()(pairs)))
    for ask in (client.predict, predictor.predict):
        np.testing.assert_allclose(rows(ask(pairs, batch_size=3)), expected, atol=1e-5)
        assert ask(("news", "team"))[0].label == predictor.predict((["news"], ["team"]))[0].label
        with pytest.raises(ValueError, match="must hold the two segments of each example. Received: a tuple of 1"):
            ask(("news",))


def test_pairs_need_their_signature(client, predictor):
    with pytest.raises(ValueError, match="two segments, and needs .*'pairs'. Received: .* with serving_default, meta"):
        predictor.predict(("news", "team"))
    with pytest.raises(ServingError, match="signature 'pairs' of the model .*not found"):
        client.predict(("news", "team"))


def test_nothing_there(protocol, monkeypatch):
    monkeypatch.setattr(calls, "_FIRST_PAUSE_SECONDS", 0.002)
    with closing_server(protocol) as closing:
        for address in (f"{protocol}://127.0.0.1:{free_port()}", closing):
            with (
                ServingClient(address, model="news", timeout=10, retries=2) as client,
                pytest.raises(ServingError, match=f"{address} must answer .*UNAVAILABLE.*Asked 3 times"),
            ):
                client.predict("news")


def test_a_server_without_tls(address, monkeypatch):
    monkeypatch.setattr(calls, "_FIRST_PAUSE_SECONDS", 0.002)
    with ServingClient(address.replace("://", "s://"), model="news", retries=1) as client:
        with pytest.raises(ServingError, match="UNAVAILABLE.*(SSL|TLS|handshake)"):
            client.predict("news")


def test_the_server_comes_while_the_client_asks(protocol, version, predictor, served):
    served.faults.clear()
    port = free_port()
    with ServingClient(f"{protocol}://127.0.0.1:{port}", model="news", retries=100) as client:
        with ThreadPoolExecutor(1) as pool:
            predictions = pool.submit(client.predict, TEXTS)
            time.sleep(0.3)
            with serve(protocol, served, port):
                require_same(predictions.result(), predictor.predict(TEXTS))


def test_threads(client, predictor):
    expected = predictor.predict(TEXTS)
    with ThreadPoolExecutor(8) as pool:
        for predictions in pool.map(client.predict, [TEXTS] * 32):
            require_same(predictions, expected)


def test_pauses_grow_and_are_random(monkeypatch):
    """0.1, 0.2, 0.4, … 5 seconds are the limits of the pauses; the last one is not waited for beyond the deadline."""
    limits, now = [], [100.0]
    monkeypatch.setattr(random, "uniform", lambda low, high: limits.append((low, high)) or high)
    monkeypatch.setattr(calls.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(calls.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    class Away:
        def run(self, call, deadline):
            raise calls.PassingError("away.")

    with pytest.raises(ServingError, match="away. Asked 9 times"):
        calls.ask(Away(), None, deadline=1e9, retries=8)
    assert limits == [(0, limit) for limit in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0)]
    limits.clear()
    now[0] = 100.0
    with pytest.raises(ServingError, match="Asked 4 times"):
        calls.ask(Away(), None, deadline=101.0, retries=8)
    assert now[0] == pytest.approx(100.7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"address": "host:8501"}, "must be like http"),
        ({"address": "grpc://host"}, "must be like http"),
        ({"address": "ftp://host"}, "must be like http"),
        ({"address": "http://user:secret@host:8501"}, "Received: something else"),
        ({"model": ""}, "name of a served model"),
        ({"model": "a/b"}, "name of a served model"),
        ({"version": "1"}, "version must be a number"),
        ({"version": -1}, "version must be a number"),
        ({"version": 2**70}, "version must be a number"),
        ({"address": "http://a..b:8501"}, "must be like http"),
        ({"address": "http://host:99999"}, "must be like http"),
        ({"address": "http://[::1:80"}, "must be like http"),
        ({"address": "http://host/präfix"}, "must be like http"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"timeout": 1e10}, "timeout=1"),
        ({"timeout": None}, "timeout=None"),
        ({"timeout": "60"}, "timeout='60'"),
        ({"retries": 1.5}, "retries=1.5"),
        ({"timeout": float("nan")}, "timeout=nan"),
        ({"retries": -1}, "retries=-1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        ServingClient(**{"address": "http://127.0.0.1:1", "model": "news", **arguments})
    assert "secret" not in str(caught.value)


def test_closed(address):
    client = ServingClient(address, model="news")
    client.close()
    with pytest.raises(ServingError, match="must be open. Received: one that was closed"):
        client.predict("news")


def test_without_the_stubs_the_error_says_how_to_get_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis", None)
    with pytest.raises(ImportError, match=r"http://host:8501. Run: pip install 'keras_bert_kit\[serving\]'"):
        ServingClient("grpc://127.0.0.1:1", model="news")


def test_tensorflow_model_server(protocol, version, predictor, tmp_path):
    """The program itself, where it is installed."""
    if (program := shutil.which("tensorflow_model_server")) is None:
        pytest.skip("needs the program tensorflow_model_server on PATH")
    ports = {"http": free_port(), "grpc": free_port()}
    arguments = [f"--rest_api_port={ports['http']}", f"--port={ports['grpc']}", "--model_name=news"]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([program, *arguments, f"--model_base_path={version.parent}"], stdout=log, stderr=log)
    try:
        with ServingClient(f"{protocol}://127.0.0.1:{ports[protocol]}", model="news", timeout=60, retries=99) as client:
            require_same(client.predict(TEXTS), predictor.predict(TEXTS))
            assert client.metadata()["class_names"] == CLASS_NAMES
    finally:
        process.kill()
        process.wait()
