"""Handles: what is one, what is fetched for it, and a cache that is whole or as it was, whatever the server does."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest
from fake_preprocessor import write_preprocessor
from fake_tf1_hub import write_tf1_module
from fake_weights import write_hf_folder
from hub_server import COMMIT, serving

import keras_bert_kit as kbk
from keras_bert_kit.pretrained import fetch, handles
from keras_bert_kit.pretrained.cache import cache_folder
from keras_bert_kit.pretrained.fetch import wanted_files
from keras_bert_kit.pretrained.handles import handle_of

NAME = "tensorflow/bert_en_uncased_L-2_H-8_A-2/4"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no proxy between this machine and itself."""
    monkeypatch.setenv("KERAS_BERT_KIT_CACHE", str(tmp_path / "cache"))
    for name in ("KERAS_BERT_KIT_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "*")
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    write_hf_folder(path)
    return path


@pytest.fixture
def server(folder):
    with serving({NAME: folder, "owner/name": folder, "tensorflow/bert/tiny/4": folder}) as server:
        yield server


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("text", "server", "address", "place"),
    [
        (
            "https://tfhub.dev/google/bert_uncased_L-12_H-768_A-12/3",
            handles.TF_HUB,
            "https://tfhub.dev/google/bert_uncased_L-12_H-768_A-12/3",
            "tf-hub/tfhub.dev/google/bert_uncased_L-12_H-768_A-12/3",
        ),
        (
            "tensorflow/bert_en_uncased_preprocess/3",
            handles.TF_HUB,
            "https://tfhub.dev/tensorflow/bert_en_uncased_preprocess/3",
            "tf-hub/tfhub.dev/tensorflow/bert_en_uncased_preprocess/3",
        ),
        (
            "google/small_bert/bert_uncased_L-2_H-128_A-2/1",
            handles.TF_HUB,
            "https://tfhub.dev/google/small_bert/bert_uncased_L-2_H-128_A-2/1",
            "tf-hub/tfhub.dev/google/small_bert/bert_uncased_L-2_H-128_A-2/1",
        ),
        (
            "http://localhost:8080/a/m.tar.gz",
            handles.TF_HUB,
            "http://localhost:8080/a/m.tar.gz",
            "tf-hub/localhost%3A8080/a/m.tar.gz",
        ),
        (
            "https://www.kaggle.com/models/tensorflow/bert/TensorFlow2/en-uncased-l-12-h-768-a-12/4",
            handles.KAGGLE,
            "tensorflow/bert/tensorFlow2/en-uncased-l-12-h-768-a-12/4",
            "kaggle/tensorflow/bert/tensorFlow2/en-uncased-l-12-h-768-a-12/4",
        ),
        (
            "https://kaggle.com/models/tensorflow/bert/frameworks/TensorFlow2/variations/en-uncased-preprocess/versions/3",
            handles.KAGGLE,
            "tensorflow/bert/tensorFlow2/en-uncased-preprocess/3",
            "kaggle/tensorflow/bert/tensorFlow2/en-uncased-preprocess/3",
        ),
        (
            "https://tfhub.dev/google/bert_uncased_L-12_H-768_A-12/1?tf-hub-format=compressed",
            handles.TF_HUB,
            "https://tfhub.dev/google/bert_uncased_L-12_H-768_A-12/1",
            "tf-hub/tfhub.dev/google/bert_uncased_L-12_H-768_A-12/1",
        ),
        ("hf://owner/name", handles.HUGGING_FACE, "owner/name", "hugging-face/owner/name@main"),
        ("hf://bert-base-uncased", handles.HUGGING_FACE, "bert-base-uncased", "hugging-face/bert-base-uncased@main"),
        ("hf://owner/name@refs/pr/1", handles.HUGGING_FACE, "owner/name", "hugging-face/owner/name@refs%2Fpr%2F1"),
    ],
)
def test_what_a_handle_means(text, server, address, place):
    for source in (text, Path(text)):  # pathlib makes one slash of two
        handle = handle_of(source)
        assert (handle.server, handle.address, handle.folder) == (server, address, Path(place))


@pytest.mark.parametrize(
    "text", ["model", "./google/bert/1", "google/other/1", "tensorflow/bert_en/x", "C:\\bert\\1", ""]
)
def test_other_names_are_paths(text):
    assert handle_of(text) is None


def test_a_path_that_exists_is_no_handle(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, tmp_path / NAME)
    assert kbk.load_pretrained(NAME).report.source == NAME


@pytest.mark.parametrize(
    "text",
    [
        "kaggle://tensorflow/bert/tensorFlow2/en",
        "kaggle://tensorflow/bert/tensorFlow2/en/latest",
        "kaggle://../../tensorFlow2/en/1",
        "hf://a/b/c",
        "hf://../x",
        "hf://owner/name@",
        "hf://",
        "https://",
        "https://tfhub.dev",
        "https://tfhub.dev/a/../../b",
        "https://tfhub.dev/" + "a" * 300,
        "hf://owner/" + "a" * 300,
        "hf://owner/name@" + "a" * 300,
        "http://host:port/x",
    ],
)
def test_wrong_handles_are_refused(text):
    with pytest.raises(kbk.CheckpointError, match="(must be|must have) .*Like: |must have a host"):
        handle_of(text)


@pytest.mark.parametrize(
    "secret", ["https://me:secret@host/m/1", "https://host/m/1?token=secret", "https://h/m#secret"]
)
def test_credentials_in_handles_are_refused_and_not_printed(secret):
    with pytest.raises(kbk.CheckpointError, match="no user name, password, query or fragment") as error:
        kbk.load_pretrained(secret)
    assert "secret" not in str(error.value)


def test_a_model_comes_by_tf_hubs_protocol_and_stays(server, cache, folder, monkeypatch):
    handle = f"{server.url}/{NAME}"
    bert = kbk.load_pretrained(handle)
    assert server.asked == [("GET", f"/{NAME}?tf-hub-format=compressed")]
    place = cache / handle_of(handle).folder
    assert bert.report.source == f"{handle}, in the cache at {place}"
    assert bert.report.sha256 == kbk.load_pretrained(folder).report.sha256
    assert files_below(cache / "tf-hub") == files_below(place.parents[len(Path(NAME).parts)])
    assert [path.name for path in place.parent.iterdir()] == ["4"]
    kbk.load_pretrained(handle)
    kbk.load_pretrained(place)
    assert len(server.asked) == 1
    monkeypatch.setattr(handles, "TFHUB_DEV", f"{server.url}/")
    kbk.load_pretrained(NAME)
    assert len(server.asked) == 1


def test_preprocessors_come_the_same_way(tmp_path, cache):
    write_preprocessor(tmp_path / "m")
    with serving({"tensorflow/bert_en_uncased_preprocess/3": tmp_path / "m"}) as server:
        handle = f"{server.url}/tensorflow/bert_en_uncased_preprocess/3"
        assert kbk.load_preprocessor(handle).tokenizer.lowercase
        with pytest.raises(kbk.CheckpointError, match="Give it to load_preprocessor"):
            kbk.load_pretrained(handle)
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (403, "Received: HTTP status 403, from {url}.* It needs a login or terms"),
        (
            404,
            "Received: HTTP status 404, from {url}.* Check the name and the version. Models of tfhub.dev live",
        ),
        (500, "Received: HTTP status 500, from {url}"),
        ("garbage", "Received: 20 bytes that are no .tar.gz, .tar or .zip, from {url}"),
        ("cut", r"Received: (\d+ of \d+ bytes, then the connection was cut|IncompleteRead)"),
        ("silent", "Received: (TimeoutError|URLError).*from {url}.*Check the network"),
        (lambda content: content[:-200], "Received: '{url}"),
        (lambda content: content[:300] + b"xx" + content[302:], "Received: '{url}"),
    ],
)
def test_a_server_that_fails_leaves_the_cache_as_it_was(server, cache, fault, message, monkeypatch):
    monkeypatch.setattr(fetch, "_SILENT_SECONDS", 0.3)
    server.fault = fault
    handle = f"{server.url}/{NAME}"
    with pytest.raises(kbk.CheckpointError, match=message.format(url=handle)) as error:
        kbk.load_pretrained(handle)
    place = cache / handle_of(handle).folder
    assert str(error.value).endswith(f"Nothing was kept in the cache, {str(place)!r}.")
    assert files_below(cache) == [] and list(place.parent.iterdir()) == []
    server.fault = None
    kbk.load_pretrained(handle)


def test_a_server_that_is_not_there_is_one_error(cache):
    with serving({}) as server:
        handle = f"{server.url}/{NAME}"
    with pytest.raises(kbk.CheckpointError, match="Received: URLError .*refused.*Or download the model in a browser"):
        kbk.load_pretrained(handle)
    assert files_below(cache) == []


def tar_of(name, kind=tarfile.REGTYPE, target="", content=b"x"):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, target, len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar_of("../../../../outside"), "leads out of the archive"),
        (tar_of("/outside"), "leads out of the archive"),
        (tar_of("variables", tarfile.SYMTYPE, "/etc"), "link, device or sparse file"),
        (tar_of("saved_model.pb", content=bytes(80 << 20)), "grows beyond"),
        (tar_of(".archive"), "File exists"),
        (tar_of("readme.txt"), "must hold a BERT. Found: readme.txt"),
        (tar_of("saved_model.pb"), "variables.index"),
    ],
    ids=["path", "absolute path", "link", "bomb", "file of the cache", "no model", "half a model"],
)
def test_hostile_archives_and_other_models_are_refused_and_not_kept(server, cache, tmp_path, content, message):
    server.fault = lambda _: content
    with pytest.raises(kbk.CheckpointError, match=message) as error:
        kbk.load_pretrained(f"{server.url}/{NAME}")
    assert ".tmp-" not in str(error.value)
    assert files_below(tmp_path) == []


def test_a_link_to_an_archive_is_a_handle_too(tmp_path, folder, cache):
    (tmp_path / "m").mkdir()
    shutil.copytree(folder, tmp_path / "m/uncased")
    with serving({"2018/uncased.tar.gz": tmp_path / "m"}) as server:
        assert kbk.load_pretrained(f"{server.url}/2018/uncased.tar.gz").report.kind == "Hugging Face folder"


def test_offline_only_the_cache_is_looked_into(server, cache, monkeypatch):
    handle = f"{server.url}/{NAME}"
    for name, value in (("KERAS_BERT_KIT_OFFLINE", "1"), ("HF_HUB_OFFLINE", "true")):
        monkeypatch.setenv(name, value)
        place = cache / handle_of(handle).folder
        with pytest.raises(kbk.CheckpointError) as error:
            kbk.load_pretrained(handle)
        for part in (handle, str(place), name, "Missing: the folder", "copy that folder here"):
            assert part in str(error.value)
        monkeypatch.setenv(name, "0")
    assert server.asked == []
    kbk.load_pretrained(handle)
    monkeypatch.setenv("KERAS_BERT_KIT_OFFLINE", "1")
    kbk.load_pretrained(handle)


def test_a_folder_of_the_cache_that_lost_a_file_is_named(server, cache):
    handle = f"{server.url}/{NAME}"
    kbk.load_pretrained(handle)
    (cache / handle_of(handle).folder / "vocab.txt").unlink()
    with pytest.raises(kbk.CheckpointError, match=f"Missing: vocab.txt.*folder of {handle} in the cache.*delete it"):
        kbk.load_pretrained(handle)
    shutil.rmtree(cache / handle_of(handle).folder)
    kbk.load_pretrained(handle)


def test_two_at_once_get_the_same_folder(server, cache):
    server.fault = "silent"  # a second before each answer: both ask before either has it
    handle, results = f"{server.url}/{NAME}", []
    threads = [threading.Thread(target=lambda: results.append(kbk.load_pretrained(handle).report)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 2 and results[0] == results[1]
    assert [path.name for path in (cache / handle_of(handle).folder).parent.iterdir()] == ["4"]


def test_a_killed_fetch_leaves_nothing_that_is_taken_for_a_model(server, cache):
    server.fault = lambda content: time.sleep(60) or content
    handle = f"{server.url}/{NAME}"
    code = f"import keras_bert_kit; keras_bert_kit.load_pretrained({handle!r})"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    place = cache / handle_of(handle).folder
    while not server.asked and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    process.wait()
    (left,) = place.parent.iterdir()
    assert left.name.startswith(".tmp-4-")
    server.fault = None
    kbk.load_pretrained(handle)
    assert {path.name for path in place.parent.iterdir()} == {"4", left.name}  # it may be another process at work
    shutil.rmtree(place)
    for path in (left, *left.iterdir()):
        os.utime(path, (time.time() - 7200,) * 2)
    kbk.load_pretrained(handle)
    assert [path.name for path in place.parent.iterdir()] == ["4"]


def test_a_cache_that_cannot_be_written_to_is_named(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    monkeypatch.setenv("KERAS_BERT_KIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        kbk.CheckpointError, match="The cache must be a folder that can be written to.*KERAS_BERT_KIT_CACHE"
    ):
        kbk.load_pretrained(f"{server.url}/{NAME}")


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("KERAS_BERT_KIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "keras_bert_kit"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "keras_bert_kit"


def test_of_weights_in_several_forms_one_is_fetched():
    names = ["config.json", "vocab.txt", "model.safetensors", "pytorch_model.bin", "tf_model.h5", "flax_model.msgpack"]
    names += ["onnx/model.onnx", "README.md", "rust_model.ot", "openvino/openvino_model.bin", ".gitattributes"]
    assert wanted_files(names) == ["config.json", "vocab.txt", "model.safetensors"]
    sharded = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
    assert sorted(wanted_files([*sharded, "tf_model.h5"])) == sorted(sharded)
    assert wanted_files(["1_Pooling/config.json", "pytorch_model.bin", "2_Dense/pytorch_model.bin"]) == [
        "1_Pooling/config.json",
        "pytorch_model.bin",
        "2_Dense/pytorch_model.bin",
    ]
    hub = ["saved_model.pb", "keras_metadata.pb", "variables/variables.index", "assets/vocab.txt"]
    assert sorted(wanted_files([*hub, "README.md"])) == sorted(hub)
    assert wanted_files(["tf_model.h5", "saved_model/1/saved_model.pb", "bert_model.ckpt.index"]) == ["tf_model.h5"]
    assert wanted_files(["../x.json", "/etc/x.json", "a/../../vocab.txt"]) == []


@pytest.mark.parametrize("package", ["kagglehub", "huggingface_hub"])
def test_a_client_that_is_missing_is_one_error(monkeypatch, cache, package):
    monkeypatch.setitem(sys.modules, package, None)
    handle = {"kagglehub": "kaggle://tensorflow/bert/tensorFlow2/tiny/4", "huggingface_hub": "hf://owner/name"}[package]
    with pytest.raises(kbk.CheckpointError, match=f"needs the package {package}.*pip install {package}"):
        kbk.load_pretrained(handle)
    assert files_below(cache) == []


@pytest.fixture
def hugging_face(server, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    return server


def test_a_model_comes_from_hugging_face(hugging_face, cache, folder):
    bert = kbk.load_pretrained("hf://owner/name@v1")
    place = cache / "hugging-face/owner/name@v1"
    assert bert.report.source == f"hf://owner/name@v1, in the cache at {place}"
    assert files_below(place) == sorted(wanted_files(files_below(folder)))
    assert any(path.startswith("/api/models/owner/name/revision/v1") for _, path, *_ in hugging_face.asked)
    fetched = {path.rpartition(f"/{COMMIT}/")[2] for method, path, *_ in hugging_face.asked if "/resolve/" in path}
    assert fetched == set(files_below(place))
    hugging_face.asked.clear()
    kbk.load_pretrained("hf://owner/name@v1")
    assert hugging_face.asked == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (401, "HTTP status 401.*It needs a login, or does not exist"),
        (403, "HTTP status 403.*It needs a login or terms"),
        (404, "HTTP status 404.*Check the name and the version. Or download"),
        ("garbage", "files that are cut or changed: .*vocab.txt"),
    ],
)
def test_hugging_face_may_fail_too(hugging_face, cache, fault, message):
    hugging_face.fault = fault
    with pytest.raises(kbk.CheckpointError, match=message):
        kbk.load_pretrained("hf://owner/name")
    assert files_below(cache) == []


@pytest.mark.slow  # the client tries five times
def test_hugging_face_may_hang_up(hugging_face, cache):
    hugging_face.fault = "cut"
    with pytest.raises(kbk.CheckpointError, match="hf://owner/name@main must be a model that can be fetched"):
        kbk.load_pretrained("hf://owner/name")
    assert files_below(cache) == []


@pytest.fixture
def kaggle(server, monkeypatch):
    """The real client, talking to this machine: it has no setting for that."""
    pytest.importorskip("kagglehub")
    from kagglesdk import kaggle_env

    for key in list(kaggle_env._env_to_endpoint):
        monkeypatch.setitem(kaggle_env._env_to_endpoint, key, server.url)
    return server


def test_a_model_comes_from_kaggle(kaggle, cache, folder):
    bert = kbk.load_pretrained("https://www.kaggle.com/models/tensorflow/bert/TensorFlow2/tiny/4")
    place = cache / "kaggle/tensorflow/bert/tensorFlow2/tiny/4"
    assert bert.report.source == f"kaggle://tensorflow/bert/tensorFlow2/tiny/4, in the cache at {place}"
    assert files_below(place) == files_below(folder)


@pytest.mark.parametrize("fault", [403, 404, "garbage", "cut"])
def test_kaggle_may_fail_too(kaggle, cache, fault):
    kaggle.fault = fault
    message = f"HTTP status {fault}" if isinstance(fault, int) else "kaggle://tensorflow/bert/tensorFlow2/tiny/4"
    with pytest.raises(kbk.CheckpointError, match=message):
        kbk.load_pretrained("kaggle://tensorflow/bert/tensorFlow2/tiny/4")
    assert files_below(cache) == []


def test_the_lessons_handle_is_read_by_content(tmp_path):
    write_tf1_module(tmp_path / "m")
    with serving({"google/bert_uncased_L-2_H-8_A-2/3": tmp_path / "m"}) as server:
        bert = kbk.load_pretrained(f"{server.url}/google/bert_uncased_L-2_H-8_A-2/3")
    assert "TF1" in bert.report.kind


@pytest.mark.parametrize("name", ["encoder_v1", "encoder_v3", "encoder_v4_with_mlm"])
def test_the_fixtures_come_by_tf_hubs_protocol(shared, name):
    folder = shared / "fixtures/hub" / name
    with serving({f"tensorflow/{name}/1": folder}) as server:
        bert = kbk.load_pretrained(f"{server.url}/tensorflow/{name}/1")
    assert bert.report.sha256 == kbk.load_pretrained(folder).report.sha256
    assert bert.report.kind == "TF-Hub SavedModel"
