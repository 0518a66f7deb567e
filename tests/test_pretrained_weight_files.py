"""The files of weights a Hugging Face folder can have: pickles without PyTorch, shards, HDF5; each read or refused."""

import json
import os
import pickle

import numpy as np
import pytest
from fake_torch import Raw, pickled, write_pickle, write_torch
from fake_weights import write_hf_folder
from safetensors.numpy import load_file, save_file

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.pretrained.read_h5 import H5File
from keras_bert_kit.pretrained.read_pickle import PickleFile

SAFE, TORCH, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"


def weights_of(bert):
    return [np.asarray(weight) for weight in (bert.classifier or bert.pretrainer or bert.encoder).weights]


def require_equal(one, two):
    for a, b in zip(weights_of(one), weights_of(two), strict=True):
        np.testing.assert_array_equal(a, b)


# Pickles


@pytest.mark.parametrize("heads", [("mlm", "nsp"), ("classifier",)])
@pytest.mark.parametrize("old_format", [False, True])
def test_a_pickle_gives_the_weights_of_the_safetensors_file(tmp_path, old_format, heads):
    tensors, _ = write_hf_folder(tmp_path, heads=heads, old_names=True)
    expected = load_pretrained(tmp_path)
    (tmp_path / SAFE).unlink()
    tensors = {f"module.{name}": array for name, array in tensors.items()}
    name = "module.bert.pooler.dense.weight"
    tensors[name] = Raw("view", tensors[name].T.copy(), stride=(1, 16))  # transposed: not contiguous
    write_torch(tmp_path / TORCH, tensors, old_format=old_format)
    bert = load_pretrained(tmp_path)
    require_equal(bert, expected)
    assert bert.report.assigned[0] == "module.bert.embeddings.word_embeddings.weight"
    assert "module.bert.embeddings.position_ids" in bert.report.left_out


def test_half_precision_and_nameless_storages(tmp_path):
    array = np.arange(6, dtype="float16").reshape(2, 3)
    write_torch(tmp_path / TORCH, {"a": array, "b": Raw("9", array, offset=1, size=(2, 2), stride=(3, 1))})
    file = PickleFile(tmp_path / TORCH)
    np.testing.assert_array_equal(file["a"], array)
    np.testing.assert_array_equal(file["b"], array[:, 1:])
    assert file["a"].dtype == np.float16 and file.shape("b") == (2, 2)


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
@pytest.mark.parametrize(
    ("function", "name"), [(os.mkdir, "posix.mkdir"), (eval, "eval"), (os.system, "system"), (getattr, "getattr")]
)
def test_a_pickle_that_calls_something_is_refused_by_name_and_nothing_happens(tmp_path, protocol, function, name):
    mark = tmp_path / "executed"
    arguments = {os.mkdir: (str(mark),), os.system: (f"touch {mark}",), eval: (f"open({str(mark)!r}, 'w')",)}
    content = pickle.dumps({"a": Calls(function, *arguments.get(function, ({}, "clear")))}, protocol=protocol)
    for write in (write_pickle, lambda path, content: path.write_bytes(content)):
        write(tmp_path / TORCH, content)
        with pytest.raises(CheckpointError, match=f"nothing else.*{name}, which is no tensor.*Nothing was executed"):
            PickleFile(tmp_path / TORCH)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "it names os.system"),
        (b"(S'true'\nios\nsystem\n.", "the instruction INST of the pickle is not allowed"),
        (b"(cos\nsystem\nS'true'\no.", "it names os.system"),
        (b"\x80\x02(ccollections\nOrderedDict\no.", "the instruction OBJ"),
        (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "the instruction NEWOBJ"),
        (b"\x80\x02\x82\x01.", "the instruction EXT1"),
        (b"\x80\x02h\xff.", "255"),
        (b"\x80\x02X\xff\xff\xff\x7fabc.", "unicodestring"),
        (b"\x80\x02}", "pickle exhausted"),
        (b"\x80\x02K\x05.", "int"),
        (b"\x80\x02}K\x01K\x02s.", "a name is a int"),
        (pickle.dumps({"epoch": 3}, protocol=2), "'epoch' is a int"),
        (pickle.dumps([1, 2], protocol=2), "list"),
        (b"", "pickle exhausted"),
    ],
)
def test_a_pickle_of_anything_but_tensors_is_refused(tmp_path, content, message):
    write_pickle(tmp_path / TORCH, content)
    with pytest.raises(CheckpointError, match=message):
        PickleFile(tmp_path / TORCH)


@pytest.mark.parametrize(
    "options",
    [
        {"size": (11,)},
        {"size": (2, 5), "stride": (6, 1)},
        {"size": (10**9,), "stride": (0,)},
        {"offset": 3},
        {"offset": -1},
        {"size": (-1,)},
        {"size": (2, 5)},
    ],
)
def test_a_tensor_outside_of_its_numbers_is_refused(tmp_path, options):
    raw = Raw("0", np.zeros(10, "float32"), **options)
    for old_format in (False, True):
        write_torch(tmp_path / TORCH, {"a": raw}, old_format=old_format)
        with pytest.raises(CheckpointError, match="'a' (is larger than its 10 numbers|has no valid shape)"):
            PickleFile(tmp_path / TORCH)


def test_damaged_and_odd_files_of_pytorch_are_refused(tmp_path):
    path, tensors = tmp_path / TORCH, {"a": np.ones(300, "float32"), "b": np.ones(5, "float32")}
    for options, message in (({"compress": True}, "compressed"), ({"byteorder": b"big"}, "big-endian")):
        write_torch(path, tensors, **options)
        with pytest.raises(CheckpointError, match=message):
            PickleFile(path)
    for old_format in (False, True):
        write_torch(path, tensors, old_format=old_format)
        whole = path.read_bytes()
        for length in (*range(0, len(whole), 97), len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(CheckpointError, match="tensors by name, nothing else, undamaged"):
                PickleFile(path)
    write_torch(path, tensors)
    whole = path.read_bytes()
    place = whole.index(np.ones(300, "float32").tobytes())
    path.write_bytes(whole[:place] + b"\x01" + whole[place + 1 :])
    with pytest.raises(CheckpointError, match="Bad CRC-32"):
        PickleFile(path)["a"]
    write_pickle(path, pickled({"a": Raw("7", np.ones(5, "float32"))}))
    with pytest.raises(CheckpointError, match="'7'"):
        PickleFile(path)


# Shards


def write_shards(folder, *, weight_map=None):
    """Splits model.safetensors of a folder in two; returns the map of the index."""
    tensors = load_file(folder / SAFE)
    (folder / SAFE).unlink()
    names = sorted(tensors)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in files.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    places = {name: file for file, part in files.items() for name in part} | (weight_map or {})
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}), encoding="utf-8")
    return places


def test_shards_load_as_one_file_does(tmp_path):
    write_hf_folder(tmp_path)
    expected = load_pretrained(tmp_path)
    write_shards(tmp_path)
    bert = load_pretrained(tmp_path)
    require_equal(bert, expected)
    assert list(bert.report.sha256) == [INDEX, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def test_a_small_file_cannot_hold_a_large_model(tmp_path):
    array = np.ones(1000, "float32")
    write_torch(tmp_path / TORCH, {name: Raw("0", array) for name in "ab"})
    assert len(PickleFile(tmp_path / TORCH)) == 2
    write_torch(tmp_path / TORCH, {name: Raw("0", array) for name in "abc"})
    with pytest.raises(CheckpointError, match="of 12000 bytes, are views of the same numbers"):
        PickleFile(tmp_path / TORCH)


def test_shards_of_pytorch_load_too(tmp_path):
    tensors, _ = write_hf_folder(tmp_path)
    expected = load_pretrained(tmp_path)
    (tmp_path / SAFE).unlink()
    places = {name: f"pytorch_model-0000{number % 2 + 1}-of-00002.bin" for number, name in enumerate(tensors)}
    for file in set(places.values()):
        write_torch(tmp_path / file, {name: tensors[name] for name in tensors if places[name] == file})
    (tmp_path / f"{TORCH}.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")
    require_equal(load_pretrained(tmp_path), expected)


def test_an_absent_shard_is_named_before_anything_is_read(tmp_path):
    write_hf_folder(tmp_path)
    write_shards(tmp_path, weight_map={"bert.pooler.dense.bias": "model-00003-of-00003.safetensors"})
    with pytest.raises(CheckpointError, match="index.json names must be there. Missing: model-00003-of-00003"):
        load_pretrained(tmp_path)


def test_a_stray_single_file_is_never_mixed_with_shards(tmp_path):
    write_hf_folder(tmp_path, seed=0)
    write_shards(tmp_path)
    write_hf_folder(tmp_path, seed=1)
    bert = load_pretrained(tmp_path)
    assert f"weights from {SAFE} alone; {INDEX}, which are there too, were not read" in bert.report.notes
    write_hf_folder(tmp_path / "other", seed=1)
    require_equal(bert, load_pretrained(tmp_path / "other"))


def test_an_index_that_does_not_fit_is_refused(tmp_path):
    write_hf_folder(tmp_path)
    places = write_shards(tmp_path)
    one, two = sorted(set(places.values()))
    name = next(name for name, file in places.items() if file == one)
    for changed, message in (
        (places | {name: two}, f"'{name}', in {two} by the index, found in {one}"),
        (places | {"more": one}, f"'more', in {one} by the index, found in none"),
        ({key: file for key, file in places.items() if key != name}, f"'{name}', in no file by the index"),
        (places | {name: "../other/model.safetensors"}, "names of files beside it"),
        (None, "must hold a weight_map"),
    ):
        (tmp_path / INDEX).write_text(json.dumps({"weight_map": changed}), encoding="utf-8")
        with pytest.raises(CheckpointError, match=message):
            load_pretrained(tmp_path)


# HDF5


def test_datasets_that_lie_elsewhere_or_nowhere_are_refused(tmp_path):
    import h5py

    def refused(message, write):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            write(file)
        with pytest.raises(CheckpointError, match=message):
            H5File(tmp_path / "x.h5")

    (tmp_path / "secret").write_bytes(bytes(400))
    secret = [(str(tmp_path / "secret"), 0, 400)]
    refused("a lies in another file", lambda file: file.create_dataset("a", (100,), "f4", external=secret))
    refused("a needs 4000000000000 bytes and has 0", lambda file: file.create_dataset("a", (10**12,), "f4"))
    zeros = np.zeros(10**5, "float32")
    refused("it is compressed", lambda file: file.create_dataset("a", data=zeros, compression="gzip"))
    refused("no numbers", lambda file: file.create_dataset("a", data="text"))
    layout = h5py.VirtualLayout((4,), "f4")
    refused("a lies in another file", lambda file: file.create_virtual_dataset("a", layout))


def test_links_are_not_followed_and_damage_is_refused(tmp_path):
    import h5py

    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["a"] = np.ones(5, "float32")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["b"] = np.ones(500, "float32")
        file["linked"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/a")
        file["soft"] = h5py.SoftLink("/b")
    assert list(H5File(tmp_path / "x.h5")) == ["b"]
    whole = (tmp_path / "x.h5").read_bytes()
    for length in (0, 100, len(whole) - 600):
        (tmp_path / "y.h5").write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match="must be undamaged.*y.h5"):
            H5File(tmp_path / "y.h5")


# Files that PyTorch and TensorFlow wrote themselves


def inputs_of(golden):
    keys = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
    return {ours: golden[theirs] for ours, theirs in keys.items()}


def test_pytorchs_own_pickle(shared):
    folder = shared / "fixtures/hf/model_bin_only"
    golden, bert = np.load(folder / "goldens.npz"), load_pretrained(folder)
    outputs = bert.encoder(inputs_of(golden))
    np.testing.assert_allclose(outputs["sequence_output"], golden["last_hidden_state"], atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], golden["pooler_output"], atol=1e-5)


def test_transformers_own_h5_with_pretraining_heads(shared):
    folder = shared / "fixtures/hf/tf_model_h5_pretraining"
    golden, bert = np.load(folder / "goldens.npz"), load_pretrained(folder)
    positions = np.tile(np.arange(golden["input_ids"].shape[1]), (len(golden["input_ids"]), 1))
    outputs = bert.pretrainer(inputs_of(golden) | {"masked_lm_positions": positions})
    np.testing.assert_allclose(outputs["mlm_logits"], golden["prediction_logits"], atol=1e-5)
    np.testing.assert_allclose(outputs["nsp_logits"], golden["seq_relationship_logits"], atol=1e-5)
    assert set(bert.report.left_out.values()) == {"the embeddings once more, for the masked-LM head"}


def test_transformers_own_h5_with_a_classifier(shared):
    folder = shared / "fixtures/hf/tf_model_h5_sequence_classification"
    golden, bert = np.load(folder / "goldens.npz"), load_pretrained(folder)
    np.testing.assert_allclose(bert.classifier(inputs_of(golden)), golden["logits"], atol=1e-5)
