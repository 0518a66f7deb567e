"""Two processes on loopback under MultiWorkerMirroredStrategy, killed and restarted; and runs that are killed."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

TESTS = Path(__file__).resolve().parent
# Python does not look beside a script where PYTHONSAFEPATH is set, as it is in .ci/run.
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
pytestmark = pytest.mark.slow


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start_workers(folder, steps, accumulation_steps=1):
    """Starts two workers; their weights go to <folder>/worker-0.npz and worker-1.npz."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(2)]}
    workers = []
    for index in range(2):
        config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
        words = [sys.executable, "worker_run.py", folder / "checkpoints", steps, accumulation_steps]
        words += [folder / f"worker-{index}.npz"]
        environment = ENVIRONMENT | {"TF_CONFIG": config}
        with open(folder / f"worker-{index}.log", "w") as log:
            run = subprocess.Popen([*map(str, words)], cwd=TESTS, env=environment, stdout=log, stderr=log)
        workers.append(run)
    return workers


def wait_for(workers, folder):
    codes = [worker.wait(timeout=240) for worker in workers]
    assert codes == [0, 0], "\n".join((folder / f"worker-{i}.log").read_text()[-2000:] for i in range(2))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Weights of the same run in one process on one replica."""
    folder = tmp_path_factory.mktemp("alone")
    words = ["worker_run.py", folder / "checkpoints", "60", "1", folder / "alone.npz"]
    subprocess.run([sys.executable, *map(str, words)], cwd=TESTS, check=True, capture_output=True, env=ENVIRONMENT)
    return np.load(folder / "alone.npz")


def check(folder, alone):
    first, second = (np.load(folder / f"worker-{index}.npz") for index in range(2))
    for name in alone.files:
        np.testing.assert_array_equal(first[name], second[name])
        np.testing.assert_allclose(first[name], alone[name], atol=1e-5)
    steps = sorted(path.name for path in (folder / "checkpoints").glob("step-*"))
    assert steps == ["step-00000055", "step-00000060"]


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_two_workers_equal_one_process(tmp_path, alone, accumulation_steps):
    wait_for(start_workers(tmp_path, 60, accumulation_steps), tmp_path)
    check(tmp_path, alone)


def test_workers_that_were_killed_go_on_and_end_equal(tmp_path, alone):
    """One worker is killed in the middle of the run; its peer cannot go on alone, so both are started again."""
    workers = start_workers(tmp_path, 100_000)
    deadline = time.monotonic() + 120
    while not (tmp_path / "checkpoints" / "step-00000010").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    workers[1].kill()
    workers[1].wait()
    time.sleep(1)
    workers[0].kill()
    workers[0].wait()
    reached = max(int(path.name[5:]) for path in (tmp_path / "checkpoints").glob("step-*"))
    assert 10 <= reached < 100_000
    steps = 60 if reached < 60 else None
    if steps is None:
        pytest.skip(f"the machine was so fast that step {reached} was done before the kill")
    wait_for(start_workers(tmp_path, steps), tmp_path)
    check(tmp_path, alone)


def test_killed_runs_end_bit_identical():
    words = [sys.executable, str(TESTS / "kill_runs.py"), "--kills", "6", "--terms", "4"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout
    assert "SIGKILL: 6 of 6 resumed" in done.stdout and "SIGTERM: 4 of 4 resumed" in done.stdout
