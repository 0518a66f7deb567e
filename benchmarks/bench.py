"""What the suites of run.py share: the command line's choices as jobs, sides, and rows."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

from shapes import Shape
from sides import HERE, Side, median

RATE_SECONDS = 1.0  # of products a turn, from which the machine's rate is taken


@dataclasses.dataclass
class Bench:
    """One suite's run.

    Attributes:
        options: the command line.
        shape: `Shape`.
        folder: Path, a temporary folder.
        running: ExitStack that ends the sides.
        versions: {side: its packages}, filled as sides start.
    """

    options: object
    shape: Shape
    folder: Path
    running: contextlib.ExitStack
    versions: dict = dataclasses.field(default_factory=dict)
    python: str = sys.executable

    def job(self, work=None, **more):
        """What a side is told."""
        names = work.class_names if work else ("0", "1")
        options = {name: getattr(self.options, name) for name in ("threads", "vocab", "max_length", "gelu")}
        return {"config": self.shape.config, "class_names": names, **options, **more}

    def start(self, name, task, job):
        """Starts one side."""
        python = self.python if name == "kit" else getattr(self.options, f"peer_{name}")
        print(f"{name}: {task} gets ready", file=sys.stderr, flush=True)
        side = Side(python, name, task, job, self.folder)
        self.versions[name] = side.ready["versions"]
        return side

    def start_sides(self, task, job, peers, **expected):
        """Starts the kit and those of the peers that the command line names.

        What they say of "parameters" and "tokens" must be the same for all, and what is expected.
        """
        names = ["kit", *(name for name in peers if getattr(self.options, f"peer_{name}"))]
        sides = [self.running.enter_context(self.start(name, task, job)) for name in names]
        for fact in ("parameters", "tokens"):
            found = {side.name: side.ready[fact] for side in sides if fact in side.ready}
            found |= {"expected": expected[fact]} if fact in expected else {}
            if len(set(found.values())) > 1:
                sys.exit(f"All sides must have the same {fact}. Received: {found}.")
        return sides

    def matmul(self):
        """A contender whose answers have the machine's own "rate", in operations a second."""
        side = self.start("kit", "matmul", self.job(seconds=RATE_SECONDS))
        return self.running.enter_context(side).contenders["matmul"]

    def row(self, contender, order, work, answers, operations, rate):
        """Of a contender that went through a `Workload` in each of its answers."""
        seconds = median(answers)
        fixed_length = work.max_length if contender.startswith("keras-hub") else None
        return {
            "contender": contender,
            "order": order,
            "texts/s": len(work.lengths[order]) / seconds,
            "tokens/s": work.tokens / seconds,
            "of the matmul rate": operations / seconds / rate,
            "padding": work.padding(order, fixed_length),
        }

    def facts(self, *more, rate=None):
        """Of the model and the run, as one string."""
        shape = self.shape
        model = f"{shape.layers} layers, hidden {shape.hidden}, {shape.parameters / 1e6:.1f} M parameters"
        alone = [f"bfloat16 products of this shape alone: {rate / 1e9:,.0f} GFLOP/s"] if rate else []
        return "; ".join([model, f"{self.options.threads} threads", *more, *alone])

    def corpus(self):
        """Paths of running text: those of the command line, or the texts, 20 in a document."""
        if self.options.corpus:
            return self.options.corpus
        from keras_bert_kit.data import read_examples

        texts, path = read_examples(self.options.texts).texts, self.folder / "corpus.txt"
        documents = ["\n\n".join(texts[first : first + 20]) for first in range(0, len(texts), 20)]
        path.write_text("\n\n\n".join(documents) + "\n", encoding="utf-8")
        return [str(path)]

    def script(self, name, *arguments, python=None):
        """Runs another script of this folder with --json; returns the object that it prints last."""
        search = os.pathsep.join(filter(None, [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH")]))
        command = [python or self.python, HERE / name, *arguments, "--json"]
        settings = {"stdout": subprocess.PIPE, "text": True, "check": False}
        ran = subprocess.run(list(map(str, command)), env=os.environ | {"PYTHONPATH": search}, **settings)
        if ran.returncode:
            sys.exit(f"{name} ended with exit code {ran.returncode}; its error is above.")
        return json.loads(ran.stdout.splitlines()[-1])
