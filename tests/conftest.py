"""What all tests share: shared data, a C program, logical CPUs for replicas, and quiet TensorFlow logs."""

import os
import shutil
import subprocess
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


@pytest.fixture(scope="session")
def c_program(tmp_path_factory):
    """A program that runs a SavedModel with TensorFlow's C library alone."""
    compiler, library = shutil.which("cc"), Path(tf.sysconfig.get_lib())
    if compiler is None or not (library / "libtensorflow_cc.so.2").exists():
        pytest.skip("needs a C compiler and libtensorflow_cc.so.2, which TensorFlow's wheel has on Linux")
    program = tmp_path_factory.mktemp("c") / "run_saved_model"
    source = Path(__file__).with_name("c") / "run_saved_model.c"
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{library}"]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-isystem{tf.sysconfig.get_include()}", f"-L{library}"]
    subprocess.run([compiler, *flags, source, *libraries, "-o", program], check=True)
    return program
