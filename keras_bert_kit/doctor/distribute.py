"""Proves, in less than a minute, that training on several replicas gives the numbers of one."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

_CLIP, _RATE = 0.05, 0.5
_TOLERANCE = 1e-6  # of weights after 12 steps of SGD in float32
_SECONDS = 240


class Check(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: str, what must hold.
        passed: bool.
        detail: str, the figure, or what went wrong.
    """

    name: str
    passed: bool
    detail: str


def check_distribution():
    """Trains the same small BERT in several ways, each in processes of its own, and compares the weights.

    Returns:
        List of `Check`.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        jobs = {
            "one": _start(running, folder, "one"),
            "two": _start(running, folder, "two", replicas=2),
            "clipped": _start(running, folder, "clipped", replicas=2, steps=1),
            "accumulated": _start(running, folder, "accumulated", accumulation_steps=4),
            **_start_workers(running, folder),
        }
        faults = {name: _fault_of(job) for name, job in jobs.items()}
        weights = {name: np.load(f"{folder}/{name}.npz") for name, fault in faults.items() if not fault}
        weights = {name: dict(file) for name, file in weights.items()}
    compare = [
        ("one and two replicas agree", "one", "two", _TOLERANCE),
        ("4 micro-batches equal the whole batch", "one", "accumulated", _TOLERANCE),
        ("two processes keep equal weights", "worker-0", "worker-1", 0.0),
        ("two processes equal one", "one", "worker-0", _TOLERANCE),
    ]
    checks = [_equal(*what, weights, faults) for what in compare]
    checks.insert(1, _clipped(weights, faults))
    return checks


def _start(running, folder, name, cluster=None, **options):
    arguments = {"out": f"{folder}/{name}.npz", "clip": _CLIP, "rate": _RATE} | options
    environment = {key: value for key, value in os.environ.items() if key != "TF_CONFIG"}
    environment |= {"TF_CONFIG": json.dumps(cluster)} if cluster else {}
    environment |= {"CUDA_VISIBLE_DEVICES": "-1"}  # it is the arithmetic of the loop that is looked at
    words = [sys.executable, "-m", "keras_bert_kit.doctor.run", json.dumps(arguments)]
    log = running.enter_context(open(Path(folder) / f"{name}.log", "w+", encoding="utf-8"))
    job = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
    running.callback(job.wait)
    running.callback(job.kill)
    return job, log


def _start_workers(running, folder):
    """Two processes on the loopback interface."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in _free_ports(2)]}
    return {
        f"worker-{index}": _start(
            running,
            folder,
            f"worker-{index}",
            {"cluster": cluster, "task": {"type": "worker", "index": index}},
            workers=True,
        )
        for index in range(2)
    }


def _free_ports(count):
    with contextlib.ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in bound]


def _fault_of(job):
    """Waits for a run; returns what went wrong, or an empty string."""
    process, log = job
    try:
        code = process.wait(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {_SECONDS} seconds"
    if code == 0:
        return ""
    log.seek(0)
    return f"exit code {code}: {(log.read().strip().splitlines() or ['no output'])[-1][:200]}"


def _equal(name, one, other, tolerance, weights, faults):
    if fault := faults[one] or faults[other]:
        return Check(name, False, fault)
    most = max(np.abs(weights[one][key] - weights[other][key]).max() for key in weights[one])
    return Check(name, bool(most <= tolerance), f"weights differ by {most:.1e} at most, allowed {tolerance:.0e}")


def _clipped(weights, faults):
    """One step of SGD whose gradient is clipped moves the weights by rate * clip, whatever the number of replicas."""
    name = "clipping is by the norm of the whole gradient"
    if faults["clipped"]:
        return Check(name, False, faults["clipped"])
    arrays = weights["clipped"]
    moved = [arrays[key] - arrays[key.replace("end", "start")] for key in arrays if key.startswith("end")]
    length = float(np.sqrt(sum(np.sum(np.square(array.astype("float64"))) for array in moved)))
    return Check(
        name,
        abs(length - _RATE * _CLIP) < 1e-3 * _RATE * _CLIP,
        f"moved by {length:.6f}, expected {_RATE * _CLIP:.6f}",
    )
