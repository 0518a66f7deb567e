"""Kills exports at random moments (kill -9) and looks at what they left: `python tests/export_kills.py --kills 100`.

A server watches a folder with version 1. Whatever an export of version 2 was doing when it died, version 1 must be as
it was, byte for byte, and version 2 whole or absent: as soon as a folder has a number for a name, a server loads it.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KIT_FILE = Path("assets.extra", "kit.json")

_EXPORT = """
import sys
from serving_models import small_classifier, small_pack
from keras_bert_kit.serving import export_for_serving
model, pack = small_classifier(seed=int(sys.argv[2])), small_pack()
print("ready", flush=True)
sys.stdin.readline()
print(export_for_serving(model, pack, sys.argv[1]), flush=True)
sys.stdin.readline()
"""


class Exporter:
    """A process that exports when it is told to, so that no kill is spent on the import of TensorFlow."""

    def __init__(self, folder, seed):
        paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-c", _EXPORT, folder, str(seed)],
            env=os.environ | {"PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # with the process that checks the export
        )

    def start(self):
        """Tells it to export, as soon as it can."""
        assert self.process.stdout.readline() == "ready\n"
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def finish(self):
        """Waits for the export; returns the path of its version."""
        return Path(self.process.stdout.readline().rstrip("\n"))

    def kill(self):
        """Ends it and the process that it started, with no chance to clean up."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)
        self.process.stdin.close()
        self.process.stdout.close()


def bytes_of(folder):
    """Dictionary from file to checksum."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def is_whole(version):
    """Whether each file of an export is there, and as it was written."""
    found = bytes_of(version)
    found.pop(KIT_FILE.as_posix())
    return json.loads((version / KIT_FILE).read_text(encoding="utf-8"))["sha256"] == found


def killed(folder, before, seconds):
    """Kills an export into a folder at a random moment; says what it left, and whether that is good."""
    exporter = Exporter(folder, seed=1)
    exporter.start()
    time.sleep(random.uniform(0, seconds))
    exporter.kill()
    left = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != "1")
    versions = [name for name in left if name.isdigit()]
    good = bytes_of(folder / "1") == before and all(is_whole(folder / name) for name in versions)
    for name in left:
        shutil.rmtree(folder / name)
    return good, ", ".join(left) or "nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory(prefix="export-kills-") as parent:
        folder = Path(parent, "served")
        exporter = Exporter(folder, seed=0)
        exporter.start()
        began = time.monotonic()
        assert exporter.finish() == folder / "1" and is_whole(folder / "1")
        seconds = time.monotonic() - began
        exporter.kill()
        before, good = bytes_of(folder / "1"), 0
        for number in range(options.kills):
            as_it_should_be, what = killed(folder, before, seconds)
            print(f"kill {number + 1}: left {what}: {'good' if as_it_should_be else 'BAD'}", flush=True)
            good += as_it_should_be
    print(f"{good} of {options.kills} killed exports left the served version untouched and none in part", flush=True)
    return good < options.kills


if __name__ == "__main__":
    sys.exit(main())
