"""The doctor: what it says of the machine, and that its checks of replicas can fail."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.doctor import distribute
from keras_bert_kit.doctor.machine import describe_machine


def test_the_machine_is_described():
    found = describe_machine()
    assert found["tensorflow"] == tf.__version__ and found["devices"].startswith("CPU 0")
    assert int(found["cores"]) >= 1 and "AMX" in found["instructions"] or "not known" in found["instructions"]


def test_a_difference_a_wrong_clipping_and_a_crash_are_seen():
    good = {"start_0": np.zeros(4, "float32"), "end_0": np.full(4, 0.0125, "float32")}  # moved by 0.025
    bad = {"start_0": np.zeros(4, "float32"), "end_0": np.full(4, 0.025, "float32")}
    none = dict.fromkeys(("one", "two", "clipped"), "")
    assert distribute._clipped({"clipped": good}, none).passed
    assert not distribute._clipped({"clipped": bad}, none).passed
    assert distribute._equal("x", "one", "two", 1e-6, {"one": good, "two": good}, none).passed
    differing = distribute._equal("x", "one", "two", 1e-6, {"one": good, "two": bad}, none)
    assert not differing.passed and "differ by 1.3e-02" in differing.detail
    crashed = distribute._equal("x", "one", "two", 1e-6, {"one": good}, none | {"two": "exit code 1: boom"})
    assert not crashed.passed and crashed.detail == "exit code 1: boom"


@pytest.mark.slow
def test_doctor_distribute_passes_here():
    words = [sys.executable, "-m", "keras_bert_kit", "doctor", "distribute", "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    checks = json.loads(done.stdout.splitlines()[-1])["checks"]
    assert len(checks) == 5 and all(check["passed"] for check in checks)
