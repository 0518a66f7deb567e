"""Contenders in processes of their own Python environments, which take turns on the same machine."""

import functools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAUSE_SECONDS = 0.05  # the threads of the last one stop waiting for work


class Side:
    """A program side_NAME.py, started and ready.

    Args:
        python: the Python that runs it.
        name: str, "kit", "pytorch", "keras_hub" or "onnx".
        task: str, one of the tasks of the program.
        job: what the task is told; must fit into JSON.
        folder: where the job is written.

    Attributes:
        ready: dict, what the program said when it was ready: "versions", and facts of the task.
        contenders: {name: function}; the function takes a request and returns the answer, a dictionary.
    """

    def __init__(self, python, name, task, job, folder):
        self.name = name
        path = Path(folder) / f"{name}-{task}.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        search = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TOKENIZERS_PARALLELISM": "true", **os.environ, "PYTHONPATH": search}
        command = [str(python), str(HERE / f"side_{name}.py"), task, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, encoding="utf-8", env=quiet, **pipes)
        self.ready = self._read()
        self.contenders = {name: functools.partial(self.ask, name) for name in self.ready["contenders"]}

    def ask(self, contender, **request):
        self.process.stdin.write(json.dumps({"contender": contender, **request}) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"side_{self.name}.py ended with exit code {self.process.wait()}; its error is above.")
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def take_turns(contenders, requests, warm_up=()):
    """Asks all contenders each request, one contender after the other, and each request beginning with another one.

    Args:
        contenders: {key: function from the request's items to an answer}.
        requests: list of dictionaries.
        warm_up: the same, before the requests; their answers do not count, since graphs are compiled in them.

    Returns:
        {key: list with the answer to each request}.
    """
    answers = {key: [] for key in contenders}
    for number, request in enumerate([*warm_up, *requests]):
        keys = list(contenders)
        first = number % len(keys)
        for key in keys[first:] + keys[:first]:
            time.sleep(PAUSE_SECONDS)
            answer = contenders[key](**request)
            if number >= len(warm_up):
                answers[key].append(answer)
    return answers


def median(answers, key="seconds"):
    """The median of a number over answers."""
    return statistics.median(answer[key] for answer in answers)


def seconds_of(answers):
    """{contender: seconds of each turn}, for the record."""
    return {str(key): [answer["seconds"] for answer in found] for key, found in answers.items()}


def peak_megabytes(answers):
    """The greatest memory of the process that gave the answers, or None."""
    peaks = [answer["peak_bytes"] for answer in answers if answer["peak_bytes"]]
    return round(max(peaks) / 1e6) if peaks else None
