"""Settings of a run beside its checkpoints: the same ones, or none to compare with yet."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.training.settings import require_same_settings


def test_a_run_goes_on_with_the_settings_that_it_began_with(tmp_path):
    require_same_settings(tmp_path, {"epochs": 2, "class_names": ("a", "b")})
    (tmp_path / "step-00000004").mkdir()
    require_same_settings(tmp_path, {"epochs": 2, "class_names": ("a", "b")})
    with pytest.raises(CheckpointError, match="Received: batch_size was None and is 8; epochs was 2 and is 3, in"):
        require_same_settings(tmp_path, {"epochs": 3, "class_names": ("a", "b"), "batch_size": 8})


def test_settings_may_change_as_long_as_there_is_no_checkpoint(tmp_path):
    for epochs in (2, 3):
        require_same_settings(tmp_path, {"epochs": epochs})
    assert json.loads((tmp_path / "settings.json").read_text()) == {"epochs": 3}


def test_workers_that_start_at_once_do_not_disturb_each_other(tmp_path):
    settings = {"epochs": 2, "class_names": ["a"] * 50}
    with ThreadPoolExecutor(4) as workers:
        list(workers.map(require_same_settings, [tmp_path / str(run // 4) for run in range(400)], [settings] * 400))
    assert all(json.loads(path.read_text()) == settings for path in tmp_path.glob("*/settings.json"))
    assert len(list(tmp_path.glob("*/*"))) == 100
