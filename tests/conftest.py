"""What all tests share: the folder of shared data, logical CPUs for replicas, and quiet TensorFlow logs."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

# Settled once per process, before TensorFlow starts. Everything else runs on the first of them.
(_cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(_cpu, [tf.config.LogicalDeviceConfiguration()] * 4)


@pytest.fixture(scope="session")
def shared():
    """Folder of golden values, fixtures and data sets beside the project; the test is skipped without it."""
    folder = Path(__file__).resolve().parents[1].parent / "shared"
    if not (folder / "golden").is_dir():
        pytest.skip("needs ../shared (golden values and fixtures), which is not part of the repository")
    return folder
