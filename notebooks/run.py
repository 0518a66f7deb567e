"""Runs notebooks from top to bottom, says how long each took and what it scored, and fails where one fails.

    python notebooks/run.py                             all of them, on the embedded sample
    python notebooks/run.py 01 --data train.csv test.csv  one, on other data: its cell "data" is changed
    python notebooks/run.py 02 --data ag_news_subset    the same, through tensorflow-datasets
    python notebooks/run.py 02 --dtype mixed_bfloat16 --data train.csv test.csv    faster on some processors
    python notebooks/run.py 01 --write                  and keep the outputs in the file

Needs nbclient and ipykernel: pip install 'keras_bert_kit[notebooks]'. Notebooks are not changed without --write.
"""

import argparse
import dataclasses
import re
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# TensorFlow writes such lines while it is being imported, whatever TF_CPP_MIN_LOG_LEVEL says: they tell of the machine.
_START_UP = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d+\.|WARNING: All log messages before absl::|\s*$")


@dataclasses.dataclass(frozen=True)
class Run:
    """A notebook that ran to its end.

    Attributes:
        notebook: `nbformat.NotebookNode`, with outputs.
        seconds: float.
        score: str, the last line that it printed, which begins with "score: ".
        warnings: list of str, lines on standard error that warn of something.
    """

    notebook: object
    seconds: float
    score: str
    warnings: list


def run(path, data=None, dtype=None, timeout=1200):
    """Runs a notebook in its folder, and leaves the file as it is.

    Args:
        path: the notebook.
        data: None for the data that it names itself; a list of two files, or of one name of tensorflow-datasets.
        dtype: str, the policy that a notebook computes in where it has a choice. Default: its own.
        timeout: int, seconds for one cell; None for no limit.

    Returns:
        `Run`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised an exception, a missed score among them.
        ValueError: other data or another dtype for a notebook that has no choice, or no score at the end.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    if data is not None:
        files = repr(data[0] if len(data) == 1 else tuple(str(Path(file).resolve()) for file in data))
        _change(notebook, "DATA", files)
    if dtype is not None:
        _change(notebook, "DTYPE", repr(dtype))
    start = time.perf_counter()
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=timeout, coalesce_streams=True, resources=resources).execute()
    seconds = time.perf_counter() - start
    _clean(notebook)
    lines = _printed(notebook, "stdout")
    if not lines or not lines[-1].startswith("score: "):
        raise ValueError(f"{path.name} must print its score last. Received: {lines[-1:]}.")
    warnings = [line for line in _printed(notebook, "stderr") if re.search(r"warn|error|deprecat", line, re.IGNORECASE)]
    return Run(notebook, seconds, lines[-1], warnings)


def _change(notebook, name, value):
    """Gives a name another value in the cell that is tagged `data`, where a line begins with it."""
    line = re.compile(rf"^{name} = .*$", flags=re.MULTILINE)
    for cell in notebook.cells:
        if "data" in cell.metadata.get("tags", []) and line.search(cell.source):
            cell.source = line.sub(lambda _: f"{name} = {value}", cell.source, count=1)
            return
    raise ValueError(f"This notebook has no cell that chooses {name}.")


def _clean(notebook):
    """Takes out of the outputs what tells of the machine and not of the notebook: start-up lines, times of cells."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in list(cell.get("outputs", [])):
            if output.get("name") == "stderr":
                kept = [line for line in output.text.splitlines(keepends=True) if not _START_UP.match(line)]
                output.text = "".join(kept)
                if not kept:
                    cell.outputs.remove(output)
    notebook.metadata.language_info = {"name": "python"}


def _printed(notebook, name):
    """Lines on a stream, of all cells."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "".join(output.text for output in outputs if output.get("name") == name).splitlines()


def main():
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0], epilog="example: python notebooks/run.py 02 --data train.csv test.csv"
    )
    parser.add_argument("numbers", nargs="*", help="beginnings of names of notebooks, such as 01; default: all")
    parser.add_argument("--data", nargs="+", metavar="FILE", help="TRAIN TEST, or a name of tensorflow-datasets")
    parser.add_argument("--dtype", help="such as mixed_bfloat16, for notebooks with a choice")
    parser.add_argument("--write", action="store_true", help="keep the outputs in the notebook")
    arguments = parser.parse_args()
    if arguments.data and arguments.write:
        parser.error("outputs on other data are not kept: they may hold texts that are not ours")
    import nbformat  # late, so that --help works without it

    names = tuple(arguments.numbers) or ("",)
    failed = False
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not path.name.startswith(names):
            continue
        done = run(path, arguments.data, arguments.dtype, timeout=None)
        print(f"{path.name}: {done.seconds:.0f} s, {done.score}", flush=True)
        for line in done.warnings:
            print(f"  warns: {line}")
        failed = failed or bool(done.warnings)
        if arguments.write:
            nbformat.write(done.notebook, path)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
