"""Kills training runs at random moments and compares how they end: `python tests/kill_runs.py --kills 50 --terms 20`.

Each run is killed once (kill -9, or SIGTERM, which must end it with exit code 0), started again and left to finish;
then the bytes of its last checkpoint and of its log are compared with those of a run that nobody disturbed.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 300
FILES = ("log.jsonl", f"step-{STEPS:08d}/variables.safetensors", f"step-{STEPS:08d}/state.json")
HERE = Path(__file__).resolve().parent


def start(folder):
    """Starts a run, and waits until it has imported everything."""
    words = [sys.executable, "training_run.py", str(folder), str(STEPS)]
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths}  # Python may be told not to look beside the script
    run = subprocess.Popen(words, cwd=HERE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    run.stdout.readline()
    return run


def finish(folder):
    """Lets a run go on to its end; returns the seconds it took after its start."""
    run, began = start(folder), time.monotonic()
    assert run.wait(timeout=300) == 0
    return time.monotonic() - began


def outcome(folder):
    """The bytes that must be the same."""
    return [(folder / name).read_bytes() for name in FILES]


def disturbed(folder, expected, seconds, kind):
    """Kills a run at a random moment and lets it go on; says what happened, and whether it ended as expected."""
    run = start(folder)
    time.sleep(random.uniform(0, seconds))
    run.send_signal(kind)
    code = run.wait(timeout=60)
    ended = all((folder / name).exists() for name in FILES)
    done = sorted(path.name for path in folder.glob("step-*"))[-1:] if folder.exists() else []
    half = [path.name for path in folder.glob(".tmp-*")] if folder.exists() else []
    # A signal that comes when the work is done may still end the process as it leaves.
    expected_codes = (0,) if kind == signal.SIGTERM and not ended else (-kind, 0)
    finish(folder)
    good = code in expected_codes and outcome(folder) == expected
    return good, f"after {done[0] if done else 'nothing'}{', inside a write' * bool(half)}{', at its end' * ended}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--terms", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="kill-runs-"))
    seconds = finish(folder / "undisturbed")
    expected = outcome(folder / "undisturbed")
    failures = 0
    for kind, times in ((signal.SIGKILL, options.kills), (signal.SIGTERM, options.terms)):
        good = 0
        for number in range(times):
            same, what = disturbed(folder / "run", expected, seconds, kind)
            print(f"{kind.name} {number + 1}: {what}: {'bit-identical' if same else 'DIFFERENT'}", flush=True)
            shutil.rmtree(folder / "run")
            good += same
        failures += times - good
        print(f"{kind.name}: {good} of {times} resumed runs ended bit-identical", flush=True)
    shutil.rmtree(folder)
    return failures


if __name__ == "__main__":
    sys.exit(bool(main()))
