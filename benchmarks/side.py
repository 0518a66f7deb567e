"""What the programs side_*.py share: getting ready, then working whenever a line on standard input asks for it.

    python side_NAME.py TASK JOB.json

A task is a function from the job (a dictionary) to its contenders, {name: function}, and facts about them. The first
line that the program prints says what they are. Each further line answers a request, {"contender": name, …}, with
what the function returned and the seconds that it took. Only the standard library is needed here.
"""

import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

PACKAGES = "tensorflow keras keras-hub tensorflow-text torch transformers tokenizers onnxruntime".split()


def versions():
    """Of the packages of this Python that matter, as one string."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(f"{package} {version}" for package, version in found.items())


def peak_bytes():
    """The greatest memory of this process so far; None where the system does not say."""
    try:
        with open("/proc/self/status", encoding="utf-8") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None


def use_cores(count):
    """Keeps every thread of this process, those of tokenizers and input pipelines too, on so many cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def asked_for(job, contenders):
    """Of the contenders of a task, {name: what makes it}, the one that the job asks for, or all."""
    return {name: contenders[name] for name in contenders if job.get("only", name) == name}


def run(tasks):
    """The main program of a side."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    job = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    contenders, facts = tasks[sys.argv[1]](job)

    def say(answer):
        print(json.dumps(answer, default=lambda array: array.tolist()), file=answers, flush=True)

    say({"contenders": list(contenders), "versions": versions(), **facts})
    for line in sys.stdin:
        request = json.loads(line)
        work = contenders[request.pop("contender")]
        start = time.perf_counter()
        found = work(**request)
        seconds = time.perf_counter() - start
        say({"seconds": seconds, "peak_bytes": peak_bytes(), **(found or {})})
