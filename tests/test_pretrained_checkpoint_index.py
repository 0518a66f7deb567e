"""The kit's own reading of a checkpoint's index: as TensorFlow writes it, in many blocks and several data files."""

import numpy as np
import pytest
import tensorflow as tf
from fake_checkpoints import save_arrays
from hostile_checkpoints import write_index

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.checkpoint_index import require_sound_index
from keras_bert_kit.pretrained.read_checkpoint import CheckpointFile


def test_an_index_of_many_blocks_is_read_whole(tmp_path):
    arrays = {f"bert/{'x' * 50}/{number}": np.full((2, 3), number, "float32") for number in range(10_000)}
    save_arrays(tmp_path / "m", arrays)
    assert (tmp_path / "m.index").stat().st_size > 2**18  # the size of a block
    size = (tmp_path / "m.data-00000-of-00001").stat().st_size
    require_sound_index(tmp_path / "m.index", [size])
    with pytest.raises(ValueError, match="/9999 ends after the end of the data"):  # the last by name
        require_sound_index(tmp_path / "m.index", [size - 1])
    assert CheckpointFile(tmp_path / "m").keys() == arrays.keys()


def test_several_data_files_are_one_checkpoint(tmp_path):
    for part in ("0", "1"):
        save_arrays(tmp_path / part, {f"tensor {part}": np.full(5, int(part), "float32")})
    parts, whole = [str(tmp_path / part) for part in ("0", "1")], tmp_path / "whole"
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(whole))
    read = CheckpointFile(whole)
    assert {name: read[name][0] for name in read} == {"tensor 0": 0, "tensor 1": 1}
    (tmp_path / "whole.data-00001-of-00002").write_bytes(b"")
    with pytest.raises(CheckpointError, match="tensor 1 ends after the end of the data"):
        CheckpointFile(whole)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no table, or its end is missing"),
        (bytes(100), "no table"),
        (bytes(40) + (0xDB4775248B80FB57).to_bytes(8, "little"), "its index is damaged|a block of its index"),
    ],
)
def test_what_is_no_index_is_refused(tmp_path, content, message):
    (tmp_path / "m.index").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        require_sound_index(tmp_path / "m.index", [0])


def test_an_index_without_header_is_refused(tmp_path):
    write_index(tmp_path / "m.index", {b"": b"\xff"})
    with pytest.raises(ValueError, match="its index is damaged"):
        require_sound_index(tmp_path / "m.index", [0])
