"""Settings and README beside the versions: read by the parsers that servers have, where those are at hand."""

import ast
import json
import re
import shlex
from urllib.parse import quote

import pytest
from serving_models import small_classifier, small_pack

from keras_bert_kit.errors import ExportError
from keras_bert_kit.serving import check, export, export_for_serving, server_files
from keras_bert_kit.serving.server_files import IMAGE, served_name, write_server_files
from keras_bert_kit.serving.signatures import SIGNATURES

NAMES = ("ag_news", 'it\'s "Ä" 模型 v1', "2024-11-30", "null")
FILES = ["README.md", "batching_parameters.txt", "docker-compose.yml", "kubernetes.yaml", "models.config"]


@pytest.fixture(params=NAMES)
def folder(request, tmp_path):
    folder = tmp_path / request.param
    folder.mkdir()
    write_server_files(folder, SIGNATURES)
    return folder


def read(folder, name):
    return (folder / name).read_text(encoding="utf-8")


def test_files(folder):
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert not re.search("@[A-Z]", "".join(read(folder, name) for name in FILES))


def test_models_config(folder):
    model_server_config_pb2 = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2")
    from google.protobuf import text_format

    content = read(folder, "models.config")
    (model,) = text_format.Parse(content, model_server_config_pb2.ModelServerConfig()).model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == (folder.name, "/models/model", "tensorflow")


def test_yaml(folder):
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load(read(folder, "docker-compose.yml"))["services"]["serving"]
    deployment, service = yaml.safe_load_all(read(folder, "kubernetes.yaml"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert compose["image"] == container["image"] == IMAGE
    assert compose["command"] == container["args"]
    assert compose["volumes"] == [".:/models/model:ro"]
    assert container["readinessProbe"]["httpGet"]["path"].startswith("/v1/models/")
    assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", service["metadata"]["name"])
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize("name", ["123", "1e5", "on", "20news", "a" * 80, "a" * 62 + "-b", "模型", "a_b.c"])
def test_names_in_kubernetes(name):
    label = server_files._dns_label(name)
    assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", label) and len(label) <= 63


def test_a_folder_that_was_renamed(tmp_path):
    """The server goes by models.config, which is left as it is: so the README does, too."""
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        write_server_files(folder, SIGNATURES)
        assert served_name(folder) == name
        folder = folder.rename(tmp_path / f"{name} 2")
        write_server_files(folder, SIGNATURES)
        assert served_name(folder) == name and f"/v1/models/{quote(name)}:predict" in read(folder, "README.md")
    (folder / "models.config").write_text('name: "a"\nname: "b"')
    assert served_name(folder) == folder.name


def test_readme(folder):
    shell, curl, python = re.findall("```(?:sh|python)\n(.*?)\n```", read(folder, "README.md"), re.DOTALL)
    assert f"--model_name={folder.name}" in shlex.split(shell)
    program, option, body, url = shlex.split(curl)
    assert json.loads(body) == {"signature_name": "serving_default", "instances": ["A good text."]}
    assert url.isascii() and url in python
    ast.parse(python)
    requests = [json.loads(line) for line in re.findall("^\\* `.*`: `(.*)`$", read(folder, "README.md"), re.MULTILINE)]
    assert [request["signature_name"] for request in requests] == list(SIGNATURES)


def test_what_people_changed_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)
    path, model, pack = tmp_path / "news", small_classifier(), small_pack()
    export_for_serving(model, pack, path)
    assert sorted(child.name for child in path.iterdir()) == ["1", *FILES]
    for name in FILES:
        (path / name).write_text("changed")
    export_for_serving(model, pack, path, signatures=["serving_default", "embed"])
    assert [name for name in FILES if read(path, name) != "changed"] == ["README.md"]
    assert "`embed`" in read(path, "README.md")


def test_no_room_for_them(tmp_path, monkeypatch):
    """The version is published by then, and the error says so."""
    monkeypatch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)

    def full(path, signatures, int8):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "write_server_files", full)
    with pytest.raises(ExportError, match="1 is published; README.md or settings .* No space left on device"):
        export_for_serving(small_classifier(), small_pack(), tmp_path / "news", signatures=["serving_default"])
    assert (tmp_path / "news" / "1" / "saved_model.pb").is_file()
