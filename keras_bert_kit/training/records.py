"""`Records`: what happened at each step, in a file of JSON lines that a resumed run continues."""

import json
import os
from pathlib import Path


class Records:
    """A log with one JSON object a line: `{"step": 12, "loss": 0.69, …}`, or `{"step": 12, "validation": {…}}`.

    It holds no times, so that two runs with the same seed write the same bytes. After a restart, lines of steps later
    than the checkpoint are dropped: those steps are done again.

    Args:
        folder: where `log.jsonl` lies, or None to keep the records in memory only.
        step: int, the step that the run goes on from.
        validated: bool, whether the evaluation after that step is done; if not, it is done again.

    Attributes:
        lines: list of dictionaries, all of the run.
    """

    def __init__(self, folder, step=0, validated=True):
        self.path = folder and Path(folder) / "log.jsonl"
        self.lines = []
        if self.path and self.path.is_file():
            done = (step, validated)
            self.lines = [line for line in self._whole_lines() if (line["step"], "validation" in line) <= done]
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside = self.path.with_name(self.path.name + ".tmp")
            beside.write_text("".join(map(_as_line, self.lines)), encoding="utf-8")
            beside.replace(self.path)
            self._file = open(self.path, "a", encoding="utf-8")

    def add(self, step, **values):
        """Adds a line."""
        self.lines.append({"step": step} | values)
        if self.path:
            self._file.write(_as_line(self.lines[-1]))

    def flush(self):
        """Brings all lines to the disk, before a checkpoint relies on them."""
        if self.path:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self):
        """Closes the file."""
        if self.path:
            self._file.close()

    def _whole_lines(self):
        """The lines before the first that a kill cut off."""
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                return


def _as_line(record):
    return json.dumps(record) + "\n"
