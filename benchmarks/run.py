"""How fast is the kit, beside its peers? One command.

    python benchmarks/run.py finetune inference --texts news.csv --vocab vocab.txt --peer-pytorch PYTHON --json out.json

A suite is one of

    finetune    raw texts to trained steps
    inference   raw texts to labels, in batches
    serving     one text at a time, and batches, by what a server would run
    pretrain    steps of pre-training, and making their data
    tokenizer   texts to ids
    loading     files to weights
    scaling     the kit alone: cost against length, batch, layers and corpus
    start       every turn a new process, to the import, the first answer, the first step

or "all". Every contender is a process in its own Python, a peer's environment, and gets the same texts, batches,
threads, and number of parameters (that is checked). Each compiles and warms up first; then they take turns, so that the
machine is the same for all, and medians count. Without a peer's Python it is left out. The rate of the machine's
bfloat16 products is measured in the same turns; the share of it that a contender reaches counts real tokens only.
docs/performance.md says more.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

sys.path.insert(0, str(Path(__file__).resolve().parent))  # also where Python is told not to look there

import finetune
import inference
import pretrain
import scaling
import scripts
import serving
import start
from bench import Bench
from report import aligned_rows, machine_line, markdown_rows, text_of_table
from shapes import SHAPES, shape_of

SUITES = {
    "finetune": finetune.run,
    "inference": inference.run,
    "serving": serving.run,
    "pretrain": pretrain.run,
    "tokenizer": scripts.tokenizer,
    "loading": scripts.loading,
    "scaling": scaling.run,
    "start": start.run,
}


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="+", choices=[*SUITES, "all"], metavar="SUITE")
    parser.add_argument("--texts", required=True, help="CSV or TSV file of labelled texts, as read_examples reads it")
    parser.add_argument("--vocab", required=True, help="vocab.txt, uncased")
    parser.add_argument("--corpus", nargs="+", metavar="FILE", help="running text; default: the texts of --texts")
    parser.add_argument("--peer-pytorch", metavar="PYTHON", help="Python with torch and transformers")
    parser.add_argument("--peer-keras-hub", metavar="PYTHON", help="Python with keras-hub and tensorflow-text")
    parser.add_argument("--peer-onnx", metavar="PYTHON", help="Python with torch, transformers, onnx, onnxruntime")
    parser.add_argument("--shape", choices=SHAPES, default="base", help="base: 12 x 768; minilm: 6 x 384")
    parser.add_argument("--layers", type=int, help="another number of layers")
    parser.add_argument("--hidden", type=int, help="another hidden size; heads and feed-forward follow")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads, and cores, of each contender")
    parser.add_argument("--turns", type=int, default=5, help="turns of each contender; the median counts")
    parser.add_argument("--batches", type=int, default=8, help="batches a turn")
    parser.add_argument("--batch-size", type=int, help="default: 16 in training, 32 for answers")
    parser.add_argument("--gelu", choices=("erf", "tanh"), default="erf", help="its form; keras-hub has tanh alone")
    parser.add_argument("--max-length", type=int, default=128, help="tokens a text, longer ones are cut")
    parser.add_argument("--single", type=int, default=200, help="serving: texts that are asked one at a time")
    parser.add_argument(
        "--no-constants",
        dest="constants",
        action="store_false",
        help="only the default exports; constants in float32 take 7 GB to load",
    )
    parser.add_argument("--megabytes", type=int, nargs="+", default=[1, 3, 10, 30], help="scaling: sizes of corpora")
    parser.add_argument("--plots", metavar="DIR", help="scaling: folder for pictures")
    parser.add_argument("--json", metavar="FILE", help="write everything there, each turn's seconds included")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown, for docs/performance.md")
    return parser


def run_suite(name, options):
    """Returns the tables of a suite, and the versions of its sides."""
    with open(options.vocab, encoding="utf-8") as file:
        shape = shape_of(options, vocab_size=sum(1 for _ in file))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        bench = Bench(options, shape, Path(folder), running)
        return SUITES[name](bench), bench.versions


def main():
    options = parser().parse_args()
    layout = markdown_rows if options.markdown else aligned_rows
    names = list(SUITES) if "all" in options.suites else options.suites
    result = {"machine": machine_line(), "versions": {}, "suites": {}}
    print(result["machine"], flush=True)
    for name in names:
        tables, versions = run_suite(name, options)
        result["versions"] |= versions
        result["suites"][name] = [dataclasses.asdict(table) for table in tables]
        for table in tables:
            print(f"\n{text_of_table(table, layout)}", flush=True)
        if options.json:  # after each suite: a later one may fail
            Path(options.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print("\n" + "\n".join(f"* {name}: {versions}" for name, versions in result["versions"].items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
