"""Which format a source has is found by content; what is none of them is refused with a list of those that are read."""

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
