"""What all tests share: the folder of shared data, and quiet TensorFlow logs."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.fixture(scope="session")
def shared():
    """Folder of golden values, fixtures and data sets beside the project; the test is skipped without it."""
    folder = Path(__file__).resolve().parents[1].parent / "shared"
    if not (folder / "golden").is_dir():
        pytest.skip("needs ../shared (golden values and fixtures), which is not part of the repository")
    return folder
