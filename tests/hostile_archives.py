"""Archives that nobody should unpack. Each function yields pairs of a name and the path of a file."""

import gzip
import io
import shutil
import stat
import tarfile
import zipfile

from fake_weights import write_hf_folder

ZEROS = bytes(70 << 20)
FILE, FOLDER = tarfile.REGTYPE, tarfile.DIRTYPE
LEADS_OUT = ("../x", "a/../../x", "/absolute-x", "a\\..\\..\\x", "C:x", "../._x", "a/\0x")


def hostile_archives(folder):
    """Tar and zip files: paths that lead out, links, devices, bombs, files twice, headers that lie."""
    yield from _tar_files(folder)
    yield from _tar_headers(folder)
    yield from _zip_files(folder)
    yield from _packed_models(folder)


def tar_of(path, *members, **headers):
    """Writes a .tar.gz of members (name, kind, target of the link, content)."""
    with tarfile.open(path, "w:gz", **headers) as archive:
        for name, kind, target, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, target, len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def zip_of(path, *members, compression=zipfile.ZIP_STORED):
    """Writes a .zip of members (name, kind of file as in `stat`, content)."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, mode, content in members:
            member = zipfile.ZipInfo(name)
            member.external_attr, member.compress_type = (mode | 0o644) << 16, compression
            archive.writestr(member, content)
    return path


def _tar_files(folder):
    for number, name in enumerate(LEADS_OUT):
        for kind, content in ((FILE, b"x"), (FOLDER, b"")):
            path = tar_of(folder / f"out{number}-{kind.decode()}.tar.gz", (name, kind, "", content))
            yield f"tar: {'file' if kind == FILE else 'folder'} {name!r}", path
    kinds = {
        "symbolic link": tarfile.SYMTYPE,
        "hard link": tarfile.LNKTYPE,
        "character device": tarfile.CHRTYPE,
        "block device": tarfile.BLKTYPE,
        "pipe": tarfile.FIFOTYPE,
        "sparse file": tarfile.GNUTYPE_SPARSE,
        "kind that does not exist": b"Z",
    }
    for name, kind in kinds.items():
        target = "../.." if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
        yield f"tar: a {name}", tar_of(folder / f"{name}.tar.gz", ("it", kind, target, b""), ("it/x", FILE, "", b"x"))
    yield "tar: a file twice", tar_of(folder / "twice.tar.gz", ("a", FILE, "", b"x"), ("./a", FILE, "", b"y"))
    yield "tar: a file that is a folder", tar_of(folder / "both.tar.gz", ("a", FILE, "", b""), ("a/b", FILE, "", b""))
    yield "tar: bomb", tar_of(folder / "bomb.tar.gz", ("zeros", FILE, "", ZEROS))
    yield "tar: bomb in a side file of a Mac", tar_of(folder / "side.tar.gz", ("._zeros", FILE, "", ZEROS))
    many = [(f"{number}", FILE, "", b"") for number in range(1001)]
    yield "tar: too many files", tar_of(folder / "many.tar.gz", *many)
    yield "tar: a name too long for a disk", tar_of(folder / "long.tar.gz", ("x" * 5000, FILE, "", b"x"))


def _tar_headers(folder):
    header = tarfile.TarInfo("a")
    header.size = 1 << 40
    yield "tar: a file said to have a terabyte", _gzip(folder / "size.tar.gz", header.tobuf(tarfile.GNU_FORMAT))
    negative = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    negative[124:136] = b"\xff" * 12  # -1 in base 256
    negative[148:156] = b"%06o\0 " % (256 + sum(negative[:148]) + sum(negative[156:512]))
    yield "tar: a negative size", _gzip(folder / "negative.tar.gz", bytes(negative) * 3)
    for name, kind in (("name", tarfile.GNUTYPE_LONGNAME), ("extension", tarfile.XHDTYPE)):
        header = tarfile.TarInfo("././@Long")
        header.type, header.size = kind, len(ZEROS)
        path = _gzip(folder / f"{name}.tar.gz", header.tobuf(tarfile.GNU_FORMAT) + ZEROS)
        yield f"tar: the header of a {name} of 70 MB", path
    extended = {"path": "../x"}, {"size": "99999999999999"}, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    for number, headers in enumerate(extended):
        path = tar_of(
            folder / f"pax{number}.tar.gz",
            ("a", FILE, "", b"x"),
            format=tarfile.PAX_FORMAT,
            pax_headers=headers,
        )
        yield f"tar: an extended header says {headers}", path
    yield "gzip: a bomb of empty blocks", _gzip(folder / "blocks.tar.gz", bytes(1024) + ZEROS * 2)
    yield "gzip: nothing in it", _gzip(folder / "nothing.tar.gz", b"")
    yield "gzip: no tar file", _gzip(folder / "text.tar.gz", b"hello " * 1000)


def _zip_files(folder):
    for number, name in enumerate(LEADS_OUT[:-1]):
        yield f"zip: file {name!r}", zip_of(folder / f"out{number}.zip", (name, stat.S_IFREG, b"x"))
    for name, mode in (("link", stat.S_IFLNK), ("device", stat.S_IFCHR), ("pipe", stat.S_IFIFO)):
        yield f"zip: a {name}", zip_of(folder / f"{name}.zip", ("it", mode, b"../.."), ("it/x", stat.S_IFREG, b"x"))
    twice = zip_of(folder / "twice.zip", ("a", stat.S_IFREG, b"x"), ("./a", stat.S_IFREG, b"y"))
    yield "zip: a file twice", twice
    for name in ("DEFLATED", "BZIP2", "LZMA"):
        method = getattr(zipfile, f"ZIP_{name}")
        bomb = zip_of(folder / f"bomb-{name}.zip", ("zeros", stat.S_IFREG, ZEROS), compression=method)
        yield f"zip: bomb, {name}", bomb
    whole = zip_of(folder / "whole.zip", ("name", stat.S_IFREG, b"content")).read_bytes()
    central = whole.index(b"PK\1\2")
    for name, place, value in (
        ("is encrypted", central + 8, b"\1"),
        ("has a size that lies", central + 24, b"\xff\xff\xff\x7f"),
        ("has a compressed size that lies", central + 20, b"\xff\xff\xff\x7f"),
        ("lies elsewhere", central + 42, b"\xff\xff\xff\x7f"),
        ("has another name in front of it", 30, b"NAME"),
        ("has another checksum", central + 16, b"\0\0"),
        ("is packed in a way that nobody knows", central + 10, b"\x63"),
    ):
        path = folder / f"{name}.zip"
        path.write_bytes(whole[:place] + value + whole[place + len(value) :])
        yield f"zip: a file {name}", path


def _packed_models(folder):
    model = folder / "model"
    write_hf_folder(model / "inside")
    inner = shutil.make_archive(str(folder / "inner" / "model"), "gztar", model)
    yield "tar: an archive in an archive", shutil.make_archive(str(folder / "outer"), "gztar", folder / "inner")
    for name, member in (("symbolic link", tarfile.SYMTYPE), ("hard link", tarfile.LNKTYPE)):
        link = tarfile.TarInfo("inside/vocab.txt")
        link.type, link.linkname = member, "/etc/hostname"
        path = folder / f"vocabulary is a {name}.tar"
        with tarfile.open(inner) as whole, tarfile.open(path, "w") as archive:
            for one in whole:
                one = link if one.name.endswith("vocab.txt") else one
                archive.addfile(one, whole.extractfile(one) if one.isreg() else None)
        yield f"tar: a model whose vocabulary is a {name} to /etc", path
    lambda_model = zip_of(
        folder / "lambda.keras",
        ("metadata.json", stat.S_IFREG, b'{"keras_version": "3.15.1"}'),
        ("config.json", stat.S_IFREG, LAMBDA),
        ("model.weights.h5", stat.S_IFREG, b""),
    )
    yield ".keras: a Lambda", lambda_model


def _gzip(path, content):
    with gzip.open(path, "wb") as file:
        file.write(content)
    return path


# A layer that Keras makes from byte code, with `safe_mode=False`.
LAMBDA = b"""{"module": "keras", "class_name": "Sequential", "config": {"layers": [{"module": "keras.layers",
"class_name": "Lambda", "config": {"function": {"class_name": "__lambda__", "config": {"code": "4wAAAAA="}}}}]}}"""
