"""Archives: every kind loads out of one; paths, links and bombs are refused, and nothing is written outside."""

import gzip
import io
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fake_checkpoints import write_google_folder
from fake_weights import write_hf_folder

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.pretrained.archive import unpack

FORMATS = {"gztar": ".tar.gz", "zip": ".zip", "tar": ".tar"}


def pack(folder, format="gztar", **options):
    return shutil.make_archive(str(folder.parent / f"packed-{folder.name}"), format, folder, **options)


@pytest.mark.parametrize("format", FORMATS)
def test_an_archive_gives_the_weights_of_its_folder(tmp_path, format):
    write_hf_folder(tmp_path / "m" / "two" / "deep")
    expected = load_pretrained(tmp_path / "m/two/deep")
    archive = pack(tmp_path / "m", format)
    bert = load_pretrained(archive, sha256=sha256_of(archive))
    for one, two in zip(bert.pretrainer.weights, expected.pretrainer.weights, strict=True):
        np.testing.assert_array_equal(one, two)
    assert bert.report.kind == "Hugging Face folder, in an archive" and bert.report.source == archive
    assert "unpacked from an archive, the model in 'two/deep'" in bert.report.notes
    with pytest.raises(CheckpointError, match=f"packed-m{FORMATS[format]} must be the file that was recorded"):
        load_pretrained(archive, sha256="0" * 64)


def test_the_kind_of_an_archive_is_found_by_content(tmp_path):
    write_google_folder(tmp_path / "m")
    shutil.move(pack(tmp_path / "m"), tmp_path / "download")
    assert load_pretrained(tmp_path / "download").report.kind == "TF1 checkpoint of the original BERT, in an archive"


@pytest.mark.parametrize("format", FORMATS)
def test_side_files_of_a_mac_are_ignored(tmp_path, format):
    write_hf_folder(tmp_path / "m" / "a" / "b")
    for name in ("a/b/._config.json", "__MACOSX/a/b/._model.safetensors", ".DS_Store"):
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_bytes(b"\0\5\x16\7")
    shutil.copytree(tmp_path / "m/a/b", tmp_path / "m/__MACOSX/b")
    bert = load_pretrained(pack(tmp_path / "m", format))
    assert any("side files of a Mac in the archive were ignored" in note for note in bert.report.notes)


def test_an_archive_with_two_models_or_none_is_refused(tmp_path):
    write_hf_folder(tmp_path / "m/first")
    write_google_folder(tmp_path / "m/second")
    archive = pack(tmp_path / "m")
    with pytest.raises(CheckpointError, match=f"must hold one model. Received: first, second in {archive}"):
        load_pretrained(archive)
    (tmp_path / "m/first/vocab.txt").unlink()
    shutil.rmtree(tmp_path / "m/second")
    with pytest.raises(CheckpointError, match="packed-m.tar.gz/first' must hold config.json.*Missing: vocab.txt"):
        load_pretrained(pack(tmp_path / "m"))
    shutil.rmtree(tmp_path / "m/first")
    (tmp_path / "m/readme.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(CheckpointError, match="must hold a BERT. Found: readme.txt. What is read: "):
        load_pretrained(pack(tmp_path / "m"))


def tar_with(path, *members, content=b"x"):
    with tarfile.open(path, "w:gz") as archive:
        for name, kind, target in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, target, len(content) if kind == tarfile.REGTYPE else 0
            archive.addfile(member, io.BytesIO(content))
    return path


def zip_with(path, name, mode=stat.S_IFREG, content=b"x"):
    with zipfile.ZipFile(path, "w") as archive:
        member = zipfile.ZipInfo(name)
        member.external_attr = (mode | 0o644) << 16
        archive.writestr(member, content)
    return path


def everything_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/absolute-x", "a\\..\\..\\x", "C:x", "../._x"])
def test_a_path_that_leads_out_is_refused(tmp_path, name):
    (tmp_path / "in").mkdir()
    for archive in (
        tar_with(tmp_path / "a.tar.gz", (name, tarfile.REGTYPE, "")),
        tar_with(tmp_path / "b.tar.gz", (name, tarfile.DIRTYPE, "")),
        zip_with(tmp_path / "a.zip", name),
    ):
        before = everything_below(tmp_path)
        with pytest.raises(CheckpointError, match="leads out of the archive. Nothing was written elsewhere"):
            unpack(archive, tmp_path / "in")
        with pytest.raises(CheckpointError, match="leads out of the archive"):
            load_pretrained(archive)
        assert everything_below(tmp_path) == [*sorted({*before})]


@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.GNUTYPE_SPARSE],
)
def test_links_devices_and_sparse_files_are_refused(tmp_path, kind):
    archive = tar_with(tmp_path / "a.tar.gz", ("link", kind, ".."), ("link/x", tarfile.REGTYPE, ""))
    with pytest.raises(CheckpointError, match="An archive must hold the files of a model"):
        load_pretrained(archive)
    (tmp_path / "in").mkdir()
    with pytest.raises(CheckpointError):
        unpack(archive, tmp_path / "in")
    assert everything_below(tmp_path) == ["a.tar.gz", "in"]
    with pytest.raises(CheckpointError, match="'link' is a link or device"):
        load_pretrained(zip_with(tmp_path / "a.zip", "link", stat.S_IFLNK))


def test_bombs_are_refused_after_64_megabytes_at_most(tmp_path):
    zeros = bytes(80 << 20)
    (tmp_path / "in").mkdir()
    for archive in (
        tar_with(tmp_path / "a.tar.gz", ("zeros", tarfile.REGTYPE, ""), content=zeros),
        tar_with(tmp_path / "b.tar.gz", ("._zeros", tarfile.REGTYPE, ""), content=zeros),
    ):
        with pytest.raises(CheckpointError, match="grows beyond .* bytes, more than 4 times its size"):
            unpack(archive, tmp_path / "in")
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more", zeros)
    with pytest.raises(CheckpointError, match="grows beyond"):
        unpack(tmp_path / "a.zip", tmp_path / "in")
    with gzip.open(tmp_path / "header.tar.gz", "wb") as file:  # the header of a name of 80 megabytes
        member = tarfile.TarInfo("././@LongLink")
        member.type, member.size = tarfile.GNUTYPE_LONGNAME, len(zeros)
        file.write(member.tobuf(tarfile.GNU_FORMAT) + zeros)
    with pytest.raises(CheckpointError, match="a header is larger than any name of a file"):
        unpack(tmp_path / "header.tar.gz", tmp_path / "in")


def test_damaged_archives_and_repeated_files_are_refused(tmp_path):
    write_hf_folder(tmp_path / "m")
    for format in ("gztar", "zip"):
        whole = Path(pack(tmp_path / "m", format)).read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 255
        for content in (whole[: len(whole) // 2], bytes(flipped), whole[:50]):
            (tmp_path / "damaged").write_bytes(content)
            with pytest.raises(CheckpointError):
                load_pretrained(tmp_path / "damaged")
    twice = tar_with(tmp_path / "a.tar.gz", ("a", tarfile.REGTYPE, ""), ("./a", tarfile.REGTYPE, ""))
    with pytest.raises(CheckpointError, match="File exists"):
        load_pretrained(twice)


@pytest.mark.parametrize(
    "name", ["hub/encoder_v4_with_mlm", "hf/tf_model_h5_sequence_classification", "keras_hub/masked_lm"]
)
def test_the_fixtures_load_out_of_archives(shared, tmp_path, name):
    archive = shutil.make_archive(str(tmp_path / "packed"), "gztar", shared / "fixtures" / name)
    bert, expected = load_pretrained(archive), load_pretrained(shared / "fixtures" / name)
    for one, two in zip(bert.encoder.weights, expected.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, two)
    assert bert.report.heads == expected.report.heads
