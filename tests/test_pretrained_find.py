"""Which format a source has is found by content; what is none of them is refused with a list of those that are read."""

import json
import zipfile

import pytest
from fake_checkpoints import write_google_folder
from fake_weights import write_hf_folder

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.pretrained.find import FORMATS


def test_an_unknown_folder_is_refused_with_all_kinds_and_what_was_found(tmp_path):
    (tmp_path / "readme.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(CheckpointError, match="Found: readme.txt.*What is read: ") as error:
        load_pretrained(tmp_path)
    assert all(name in str(error.value) for name in FORMATS)


def test_a_checksum_can_be_given_by_file_name(tmp_path):
    write_hf_folder(tmp_path)
    digest = load_pretrained(tmp_path).report.sha256["model.safetensors"]
    load_pretrained(tmp_path, sha256={"model.safetensors": digest})
    with pytest.raises(CheckpointError, match="vocab.txt must be the file that was recorded"):
        load_pretrained(tmp_path, sha256={"vocab.txt": digest})
    with pytest.raises(CheckpointError, match="absent.bin must be the file.*Received: no such file"):
        load_pretrained(tmp_path, sha256={"absent.bin": digest})


def test_one_checksum_for_weights_in_several_files_is_refused(tmp_path):
    write_google_folder(tmp_path)
    with pytest.raises(ValueError, match="must be a dictionary.*one checksum for bert_model.ckpt.data-00000-of-00001"):
        load_pretrained(tmp_path, sha256="0" * 64)
    load_pretrained(tmp_path, sha256=load_pretrained(tmp_path).report.sha256)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id2label": ["a", "b", "c"]}, "id2label must be a JSON object. Received: .'a'"),
        ({"classifier_dropout": "0.1"}, "classifier_dropout must be a number from 0 to below 1. Received: '0.1'"),
        ({"classifier_dropout": 1}, "from 0 to below 1. Received: 1"),
    ],
)
def test_settings_of_another_type_are_refused(tmp_path, values, message):
    write_hf_folder(tmp_path, heads=("classifier",), **values)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | values), encoding="utf-8")
    with pytest.raises(CheckpointError, match=message):
        load_pretrained(tmp_path)


def test_checksums_of_files_elsewhere_are_refused(tmp_path):
    write_hf_folder(tmp_path / "m")
    for sums, message in (
        ({"../other": "0"}, "must be of files in .*Received: ../other"),
        ([1], "sha256 must be a JSON"),
    ):
        (tmp_path / "m/kit.json").write_text(json.dumps({"sha256": sums}), encoding="utf-8")
        with pytest.raises(CheckpointError, match=message):
            load_pretrained(tmp_path / "m")


def test_a_keras_file_is_refused_with_the_way_to_open_it(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.writestr("config.json", json.dumps({"class_name": "BertClassifier"}))
        archive.writestr("model.weights.h5", b"")
    with pytest.raises(
        CheckpointError, match="Received: 'BertClassifier'.*m.keras/config.json.*keras.saving.load_model"
    ):
        load_pretrained(tmp_path / "m.keras")


def test_settings_of_the_tokenizer_that_we_do_not_have_are_refused(tmp_path):
    write_hf_folder(tmp_path)
    for settings, message in (
        ({"speed": 1}, "unknown settings.*speed"),
        ({"reference": "x"}, "must be valid: reference"),
    ):
        (tmp_path / "kit.json").write_text(json.dumps({"tokenizer": settings}), encoding="utf-8")
        with pytest.raises(CheckpointError, match=message):
            load_pretrained(tmp_path)
