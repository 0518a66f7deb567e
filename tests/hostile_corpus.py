"""Gives every hostile and every damaged file to `load_pretrained`, and counts what comes of it.

    python tests/hostile_corpus.py                  all: 350 malicious files, more than 1,000 damaged ones
    python tests/hostile_corpus.py --mutants 5      five damaged copies of each source

Malicious files (`hostile_*.py`) must all be refused. A damaged one (`mutants.py`) must be refused too, or load with
everything as in the original (the byte meant nothing), or differ from it only in numbers and words that no checksum of
the format covers: those are counted apart. Every file is loaded in a process that is told how long and how much memory
it may take, and watched for what it writes and starts.
"""

import argparse
import collections
import contextlib
import ctypes
import dataclasses
import faulthandler
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
SECONDS, EXTRA_BYTES = 10, 64 << 20  # what one file may take, in time and in memory over its own size
GOOD = ("refused", "harmless", "numbers changed, no checksum", "settings or words changed, no checksum")
BAD = ("SILENT WRONG LOAD", "PARTIAL LOAD", "MALICIOUS BUT LOADED", "ANOTHER EXCEPTION", "WROTE OR STARTED", "CRASHED")


def run(mutants_of_each, jobs=2, malicious=True):
    """Writes the files, loads each, and returns a list of dictionaries, one a file; see `load_one`."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        folder = Path(folder)
        maker = [sys.executable, __file__, "--make", folder, "--mutants", str(mutants_of_each)]
        made = subprocess.run([*maker, *(["--malicious"] if malicious else [])], capture_output=True, text=True)
        assert made.returncode == 0, made.stderr[-4000:]
        return load_in_processes(folder, jobs)


def load_in_processes(folder, jobs=2):
    """Loads the cases that `make` wrote below a folder; a process that dies of one is followed by another."""
    cases = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    parts = [list(range(job, len(cases), jobs)) for job in range(jobs)]
    results, waiting = [], [(part, _start(folder, part)) for part in parts if part]
    while waiting:
        part, process = waiting.pop(0)
        lines = [json.loads(line) for line in process.communicate()[0].splitlines() if line.startswith("{")]
        results += lines
        if len(lines) < len(part):
            name = cases[part[len(lines)]]["name"]
            died = {"outcome": "CRASHED", "error": "", "extra": 0, "seconds": 0, "malicious": False}
            results.append({"case": name} | died)
            rest = part[len(lines) + 1 :]
            waiting += [(rest, _start(folder, rest))] if rest else []
    return results


def _start(folder, part):
    command = [sys.executable, __file__, "--load", folder, "--cases", ",".join(map(str, part))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def make(folder, mutants_of_each, malicious):
    """Writes all files below a folder, and `cases.json` that lists them."""
    from hostile_archives import hostile_archives
    from hostile_checkpoints import hostile_checkpoints, hostile_graphs
    from hostile_h5 import hostile_h5
    from hostile_settings import hostile_settings
    from hostile_weights import hostile_pickles, hostile_safetensors
    from mutants import mutants, sources

    warnings.simplefilter("ignore")
    cases, groups = [], [hostile_archives, hostile_checkpoints, hostile_graphs, hostile_settings]
    for group in [*groups, hostile_h5, hostile_pickles, hostile_safetensors] if malicious else []:
        (place := folder / group.__name__).mkdir()
        cases += [{"name": name, "path": str(path), "source": None} for name, path in group(place)]
    (folder / "sources").mkdir()
    (folder / "mutants").mkdir()
    paths, tensors = sources(folder / "sources")
    for mutant in mutants(folder / "mutants", paths, tensors, mutants_of_each):
        fields = {"source": str(paths[mutant.source]), "path": str(mutant.path), "checked": mutant.checked}
        cases.append({"name": f"{mutant.source}: {mutant.change}"} | fields)
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")


def load_all(folder, numbers):
    """Loads the cases of those numbers and prints one line of JSON for each."""
    from fake_weights import write_hf_folder

    from keras_bert_kit.pretrained import load_pretrained

    warnings.simplefilter("ignore")
    cases = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        (warm_up := Path(temporary, "warm-up")).mkdir()
        write_hf_folder(warm_up, heads=("classifier",))
        load_pretrained(warm_up)
        tempfile.tempdir = str(Path(temporary, "tmp"))
        os.mkdir(tempfile.tempdir)
        os.chdir(tempfile.tempdir)
        offences, originals = _watch(tempfile.tempdir), {}
        gc.freeze()  # or each collection below would look at all of TensorFlow
        for number in numbers:
            case = cases[number]
            if case["source"] and case["source"] not in originals:
                originals[case["source"]] = contents_of(load_pretrained(case["source"]))
            print(json.dumps(load_one(case, originals.get(case["source"]), offences)), flush=True)


def load_one(case, original, offences):
    """Loads one file.

    Returns:
        Dictionary: `case` its name, `malicious`, `outcome` one of GOOD or BAD, `error` the message, `extra` bytes of
        memory over the file's size, `seconds`.
    """
    from keras_bert_kit.errors import KitError
    from keras_bert_kit.pretrained import load_pretrained

    path = Path(case["path"])
    before, error = _files_below(path), ""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    memory, start = _memory("VmRSS"), time.perf_counter()
    offences.clear()
    try:
        contents = contents_of(load_pretrained(path))
        outcome = _outcome(contents, original, case) if original else "MALICIOUS BUT LOADED"
    except KitError as caught:
        outcome, error = "refused", str(caught)
    except BaseException as caught:  # whatever it is: that is what is counted
        outcome, error = "ANOTHER EXCEPTION", f"{type(caught).__name__}: {caught}"
    seconds, peak = time.perf_counter() - start, _memory("VmHWM")
    faulthandler.cancel_dump_traceback_later()
    if offences or _files_below(path) != before or os.listdir(tempfile.tempdir):
        outcome, error = "WROTE OR STARTED", f"{offences} {os.listdir(tempfile.tempdir)}"
    extra = max(peak - memory - sum(size for _, size in before), 0)
    result = {"case": case["name"], "malicious": original is None, "outcome": outcome, "error": error[:2000]}
    return result | {"extra": extra, "seconds": seconds}


def contents_of(bert):
    """What was loaded, to be compared: settings, and arrays by the name of the model and the path in it."""
    import keras
    import numpy as np

    models = {field.name: getattr(bert, field.name) for field in dataclasses.fields(bert)}
    models = {name: model for name, model in models.items() if isinstance(model, keras.Model)}
    arrays = {f"{name} {weight.path}": np.asarray(weight) for name, model in models.items() for weight in model.weights}
    settings = {name: model.get_config() for name, model in models.items()}
    settings["tokenizer"] = bert.tokenizer and {**bert.tokenizer.get_config(), "name": "tokenizer"}
    return json.dumps(settings, default=str, sort_keys=True), arrays


def _outcome(contents, original, case):
    import numpy as np

    (settings, arrays), (settings_before, arrays_before) = contents, original
    shapes, shapes_before = ({name: array.shape for name, array in part.items()} for part in (arrays, arrays_before))
    equal = shapes == shapes_before and all(np.array_equal(arrays[name], arrays_before[name]) for name in arrays)
    if equal and settings == settings_before:
        return "harmless"
    if shapes.keys() != shapes_before.keys():
        return "PARTIAL LOAD"
    if case["checked"] or shapes != shapes_before:
        return "SILENT WRONG LOAD"
    return GOOD[2] if settings == settings_before else GOOD[3]


def _watch(allowed):
    """Returns a list that fills with whatever this process opens for writing elsewhere, starts or connects to."""
    offences = []
    started = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "socket.connect")
    made = ("os.mkdir", "os.symlink", "os.link", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.truncate")

    def hook(event, arguments):
        if event in started:
            offences.append(f"{event} {arguments}")
        elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            written(arguments[0])
        elif event in made:
            written(arguments[1] if event in ("os.symlink", "os.link", "os.rename") else arguments[0])

    def written(path):
        inside = isinstance(path, int) or Path(os.path.realpath(os.fsdecode(path))).is_relative_to(allowed)
        if not inside and path not in (os.devnull, "/proc/self/clear_refs"):
            offences.append(f"written: {path}")

    sys.addaudithook(hook)
    return offences


def _files_below(path):
    """Sorted pairs of each path and its size."""
    paths = [path] if path.is_file() else [path.parent / "executed", *path.rglob("*")]
    with contextlib.suppress(OSError):
        return sorted((str(path), path.stat().st_size if path.is_file() else 0) for path in paths if path.exists())
    return [(str(path), 0) for path in paths]


def _memory(key):
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def report(results):
    """Returns the text of a table: how many files came to which end, and the greatest extra memory."""
    counts = collections.Counter(result["outcome"] for result in results)
    largest = max(results, key=lambda result: result["extra"])
    lines = [f"{result['outcome']}: {result['case']}: {result['error']:.300}" for result in failures(results)]
    lines += [f"{counts[outcome]:6d}  {outcome}" for outcome in (*GOOD, *BAD)]
    for kind, malicious in (("malicious", True), ("damaged", False)):
        refused = [result["outcome"] == "refused" for result in results if result["malicious"] == malicious]
        lines.append(f"{kind} files, refused / total: {sum(refused)} / {len(refused)}")
    lines.append(f"all files, refused / total: {counts['refused']} / {len(results)}")
    extra = f"{largest['extra'] / 2**20:.1f} MB over the file's own size, of {EXTRA_BYTES >> 20}"
    lines.append(f"greatest extra memory: {extra} ({largest['case']})")
    return "\n".join(lines)


def failures(results):
    """The results that must not be."""
    return [result for result in results if result["outcome"] in BAD or result["extra"] > EXTRA_BYTES]


def main():
    sys.path.append(str(Path(__file__).parent))  # PYTHONSAFEPATH, which .ci/run sets, leaves it out
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mutants", type=int, default=70, help="damaged copies of each source")
    for option in ("--make", "--load"):
        parser.add_argument(option, type=Path, help=argparse.SUPPRESS)  # what this program tells its own processes
    parser.add_argument("--cases", help=argparse.SUPPRESS)
    parser.add_argument("--malicious", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.make, options.mutants, options.malicious)
    elif options.load:
        load_all(options.load, [int(number) for number in options.cases.split(",")])
    else:
        results = run(options.mutants)
        print(report(results))
        sys.exit(bool(failures(results)))


if __name__ == "__main__":
    main()
