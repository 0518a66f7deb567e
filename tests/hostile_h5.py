"""HDF5 files that lie: datasets in other files, nowhere, or behind a filter. `hostile_h5` yields a name and a path."""

import shutil

import h5py
import numpy as np
from fake_h5 import write_preset, write_tf_h5
from hostile_weights import SAFE, model_and_copies
from safetensors.numpy import load_file

H5 = "tf_model.h5"


def hostile_h5(folder):
    """Datasets that lie in other files, nowhere, or behind a filter; links; types that are no numbers."""
    whole, copies = model_and_copies(folder, "h5")
    tensors = load_file(whole / SAFE)
    secret = folder / "secret"
    secret.write_bytes(bytes(4096))
    write_tf_h5(folder / "whole.h5", tensors)
    name = "classifier/tf_bert_for_sequence_classification/classifier/bias:0"
    array = tensors["classifier.bias"]

    def write(change):
        place = next(copies)
        shutil.copy(folder / "whole.h5", place / H5)
        with h5py.File(place / H5, "r+") as file:
            del file[name]
            change(file)
        return place

    def dataset(*arguments, **options):
        return lambda file: file.create_dataset(name, *arguments, **options)

    elsewhere = h5py.VirtualLayout(array.shape, "f4")
    elsewhere[:] = h5py.VirtualSource(str(folder / "whole.h5"), name, array.shape)
    compound = np.zeros(3, [("a", "f4"), ("b", "f4")])
    for what, change in (
        ("lies in another file", dataset(array.shape, "f4", external=[(str(secret), 0, 12)])),
        ("is virtual", lambda file: file.create_virtual_dataset(name, elsewhere)),
        (
            "is a link to another file",
            lambda file: file.update({name: h5py.ExternalLink(str(folder / "whole.h5"), name)}),
        ),
        ("is a link to a device", lambda file: file.update({name: h5py.ExternalLink("/dev/zero", name)})),
        ("is a soft link", lambda file: file.update({name: h5py.SoftLink("/bert")})),
        ("is a link to itself", lambda file: file.update({name: h5py.SoftLink("/" + name)})),
        ("is a group", lambda file: file.create_group(name)),
        ("has four terabytes, stored nowhere", dataset((10**12,), "f4")),
        ("has 2**62 numbers", dataset((2**31, 2**31), "f4", chunks=(1024, 1024))),
        ("is compressed", dataset(data=np.zeros(10**6, "f4"), compression="gzip")),
        ("is shuffled and compressed", dataset(data=np.zeros(10**6, "f4"), shuffle=True, compression="lzf")),
        ("is in chunks with holes", dataset(array.shape, "f4", chunks=(1,))),
        ("holds pairs", dataset(data=compound)),
        ("holds text", dataset(data="text")),
        ("holds text of any length", dataset(data=[b"a", b"bcd"], dtype=h5py.string_dtype())),
        ("holds references", dataset((3,), h5py.ref_dtype)),
        ("holds lists of any length", dataset((3,), h5py.vlen_dtype("f4"))),
        ("holds arrays", dataset((3,), np.dtype("(1000,)f4"))),
        ("holds opaque bytes", dataset(data=np.zeros(3, "V4"))),
        ("holds complex numbers", dataset(data=np.zeros(3, "c8"))),
        ("holds integers", dataset(data=np.zeros(3, "i4"))),
        ("holds NaN", dataset(data=np.full(3, np.nan, "f4"))),
        ("has another shape", dataset(data=np.zeros((3, 1), "f4"))),
        ("has no shape", dataset(data=h5py.Empty("f4"))),
        ("is missing", lambda file: None),
        ("is there twice", lambda file: (file.update({name: array}), file.update({name[:-2]: array}))),
        ("hangs in 3,000 groups", lambda file: file.update({"g/" * 3000 + name: array})),
        ("hangs in a circle of groups", lambda file: file["bert"].update({"again": file["bert"]})),
        (
            "has 5,500 empty ones beside it",
            lambda file: [file.create_dataset(f"x{i}", (0,), "f4") for i in range(5500)],
        ),
    ):
        yield f"HDF5: a tensor {what}", write(change)
    for what, content in (("no HDF5", b"hello" * 100), ("nothing", b""), ("a signature alone", b"\x89HDF\r\n\x1a\n")):
        (place := next(copies)).joinpath(H5).write_bytes(content)
        yield f"HDF5: {what}", place
    write_preset(place := folder / "preset")
    with h5py.File(place / "model.weights.h5", "r+") as file:
        name = "layers/dense/vars/1"
        del file[name]
        file.create_dataset(name, (16,), "f4", external=[(str(secret), 0, 64)])
    yield "HDF5: a tensor of a preset lies in another file", place
