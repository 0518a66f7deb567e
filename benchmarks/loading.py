"""How long does loading take, and how much memory? One command, prints a table.

    python benchmarks/loading.py
    python benchmarks/loading.py --peer-python other_environment/bin/python

Writes the weights of a BERT-base, random ones, in every format that can be read, into a temporary folder. Each load
runs in a process of its own, whose imports are done before the clock starts; the formats take turns, and the median
counts. Files are in the page cache, so this is the time of the program and not of the disk. `--peer-python` names an
environment with PyTorch and Transformers, whose `BertModel.from_pretrained` reads the same safetensors file; ours
makes the tokenizer and the checksum of the file as well.

* seconds: until `load_pretrained` or `from_pretrained` returns.
* in use: until, after that, every weight was read once. Transformers maps its file and reads nothing of it before that.
* memory: greatest growth over what the imports took, in multiples of the bytes of the weights (Linux only).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent))  # also where Python is told not to look there

from report import markdown_rows

TESTS = Path(__file__).resolve().parents[1] / "tests"
BASELINE = "safetensors"  # the format that the others are compared with
WITH_TOKENIZER = "model = BertModel.from_pretrained(sys.argv[1]), BertTokenizerFast.from_pretrained(sys.argv[1])"

# Run in a fresh process with the folder as argument. `imports`, `load` and `weights` are what differs.
MEASURE = """
import json, sys, time
{imports}
def kilobytes(key):
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key))
    except (OSError, StopIteration):
        return float("nan")
try:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the greatest memory is counted from here
except OSError:
    pass
before, start = kilobytes("VmRSS"), time.perf_counter()
{load}
seconds = time.perf_counter() - start
total = sum(float({read}) for weight in {weights})
in_use = time.perf_counter() - start
print(json.dumps(dict(seconds=seconds, in_use=in_use, memory_bytes=1024 * (kilobytes("VmHWM") - before))))
"""
OURS = {
    "imports": "import keras_bert_kit.pretrained as kit\nimport tensorflow as tf",
    "load": "model = kit.load_pretrained(sys.argv[1]).encoder",
    "read": "tf.reduce_sum(weight.value)",
    "weights": "model.weights",
}
THEIRS = {
    "imports": "from transformers import BertModel, BertTokenizerFast, logging\nlogging.set_verbosity_error()",
    "load": "model = BertModel.from_pretrained(sys.argv[1])",
    "read": "weight.sum()",
    "weights": "model.parameters()",
}


def write_all(folder, shape):
    """Writes one model in every format; returns {format: folder} and the bytes of its weights."""
    sys.path.insert(0, str(TESTS))
    import fake_h5
    import fake_torch
    from safetensors.numpy import load_file, save_file

    from keras_bert_kit import BertConfig, BertEncoder, BertTokenizer, save_pretrained

    config = BertConfig(vocab_size=30522, hidden_act="gelu_tanh", **shape)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*specials, *(f"w{i}" for i in range(config.vocab_size - len(specials)))]
    encoder, tokenizer = BertEncoder(config), BertTokenizer(words)
    folders = {}
    for name, format in ((BASELINE, "hf"), ("TF1 checkpoint", "tf1"), ("TF-Hub SavedModel", "tf-hub")):
        folders[name] = folder / format
        save_pretrained(encoder, folders[name], tokenizer=tokenizer, format=format)
        (folders[name] / "kit.json").unlink(missing_ok=True)  # as if another program had written it
    weights = folders[BASELINE] / "model.safetensors"
    tensors = load_file(weights)

    def beside(name, write):
        folders[name] = shutil.copytree(folders[BASELINE], folder / name, ignore=shutil.ignore_patterns(weights.name))
        write(folders[name])

    def write_shards(path):
        places = {name: f"model-{i % 2 + 1:05}-of-00002.safetensors" for i, name in enumerate(tensors)}
        for file in set(places.values()):
            save_file({name: tensors[name] for name in tensors if places[name] == file}, path / file)
        (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}), encoding="utf-8")

    beside("safetensors in shards", write_shards)
    beside("pytorch_model.bin", lambda path: fake_torch.write_torch(path / "pytorch_model.bin", tensors))
    beside("tf_model.h5", lambda path: fake_h5.write_tf_h5(path / "tf_model.h5", tensors, "model"))
    folders["keras-hub preset"] = folder / "keras_hub"
    sizes = {key: value for key, value in config.to_dict().items() if key != "hidden_act"}
    fake_h5.write_preset(folders["keras-hub preset"], **sizes)
    vocabulary = folders["keras-hub preset"] / "assets/tokenizer/vocabulary.txt"
    shutil.copyfile(folders[BASELINE] / "vocab.txt", vocabulary)
    return folders, sum(array.nbytes for array in tensors.values())


def measure(python, program, folder):
    """One load in a fresh process."""
    ran = subprocess.run([python, "-c", program, str(folder)], capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"The load of {folder} failed:\n{ran.stderr[-2000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def rows_of(runs, weight_bytes):
    """Medians of the runs of each format, and how they compare."""
    medians = {
        name: {key: statistics.median(run[key] for run in measured) for key in measured[0]}
        for name, measured in runs.items()
    }
    return [
        {
            "format": name,
            "seconds": round(median["seconds"], 3),
            "in use": round(median["in_use"], 3),
            f"x {BASELINE}": round(median["seconds"] / medians[BASELINE]["seconds"], 2),
            "memory, x weights": round(median["memory_bytes"] / weight_bytes, 2),
        }
        for name, median in medians.items()
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="loads of each format; the median counts")
    parser.add_argument("--layers", type=int, default=12, help="encoder blocks; 12 is BERT-base")
    parser.add_argument("--hidden", type=int, default=768, help="hidden size")
    parser.add_argument("--heads", type=int, default=12, help="attention heads")
    parser.add_argument("--peer-python", help="Python of an environment with PyTorch and Transformers")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shape = {"num_hidden_layers": arguments.layers, "num_attention_heads": arguments.heads}
        shape |= {"hidden_size": arguments.hidden, "intermediate_size": 4 * arguments.hidden}
        folders, weight_bytes = write_all(Path(folder), shape)
        loads = {name: (sys.executable, MEASURE.format(**OURS), path) for name, path in folders.items()}
        if arguments.peer_python:
            with_tokenizer = THEIRS | {"load": WITH_TOKENIZER, "weights": "model[0].parameters()"}
            for name, peer in (("BertModel", THEIRS), ("BertModel and BertTokenizerFast", with_tokenizer)):
                loads[f"safetensors, {name}"] = (arguments.peer_python, MEASURE.format(**peer), folders[BASELINE])
        runs = {name: [] for name in loads}
        for _ in range(arguments.repeats):
            for name, load in loads.items():
                runs[name].append(measure(*load))
    rows = rows_of(runs, weight_bytes)
    print(f"{weight_bytes / 1e6:.0f} MB of weights, {arguments.layers} layers, medians of {arguments.repeats}\n")
    print(markdown_rows(rows))
    if arguments.json:
        print(json.dumps({"weight_bytes": weight_bytes, "rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
