"""How fast are pre-training data made, and in how much memory? Two commands, each prints a table.

    python benchmarks/pretraining_data.py speed      text per second against Google's algorithm, on one core
    python benchmarks/pretraining_data.py memory     peak memory for 3 MB and for 300 MB of text, one process

Both need texts and a vocabulary: --corpus FILE… and --vocab FILE, or those of ../shared (--data DIR).
Everything is timed: reading, tokens, pairs, masks, and writing TFRecords (ours compressed, Google's not). Seconds of
`speed` are those of the processor, so that other work on the machine does not count; the two take turns.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent))  # also where Python is told not to look there

import google_pretraining_data as google
import tensorflow as tf
from report import aligned_rows
from side import peak_bytes

from keras_bert_kit.data.documents import plan_blocks, read_documents
from keras_bert_kit.data.pretraining import records_of_block
from keras_bert_kit.data.pretraining_settings import PretrainingSettings
from keras_bert_kit.data.shards import write_records
from keras_bert_kit.data.write_pretraining import write_pretraining_data
from keras_bert_kit.text import BertTokenizer

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TEXTS = ("wikitext-2/test.txt", "wikitext-2/valid.txt", "gutenberg_1342_pride_and_prejudice.txt")
CASES = {"static, 5 times": ("static", 5), "static, 10 times": ("static", 10), "dynamic": ("dynamic", 1)}


def sentences_file(paths, folder):
    """The texts as one file, a sentence a line, documents divided by an empty line."""
    documents = []
    for path in paths:
        for block in plan_blocks([Path(path)], "plain"):
            documents += read_documents(block, "plain")
    path = Path(folder) / "sentences.txt"
    path.write_text("\n\n".join("\n".join(sentences) for sentences in documents) + "\n", encoding="utf-8")
    return path


def make_ours(path, tokenizer, settings, folder):
    """Returns the number of tokens in the sequences."""
    tokens = 0
    for number, block in enumerate(plan_blocks([path], settings.text_format, settings.block_bytes)):
        documents = read_documents(block, settings.text_format)
        records, counts = records_of_block(number, documents, tokenizer, settings)
        write_records(Path(folder) / f"ours-{number}.tfrecord.gz", records)
        tokens += counts.tokens
    return tokens


def make_googles(path, vocabulary, settings, folder):
    """Returns the number of tokens in the sequences."""
    instances = google.make_instances([path], vocabulary, settings)
    google.write_instances(instances, vocabulary, settings, f"{folder}/google.tfrecord")
    return sum(len(instance[0]) for instance in instances)


def speed(arguments):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tokenizer = BertTokenizer.from_vocab_file(arguments.vocab)
    vocabulary = {token: i for i, token in enumerate(tokenizer.vocabulary)}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = sentences_file(arguments.corpus, folder)
        makers = {"Google's": (make_googles, vocabulary), "ours": (make_ours, tokenizer)}
        make_ours(path, tokenizer, PretrainingSettings(), folder)  # the first call builds graphs
        for case, (masking, dupe_factor) in CASES.items():
            settings = PretrainingSettings(masking=masking, dupe_factor=dupe_factor, seed=1)
            seconds, tokens = {name: [] for name in makers}, {}
            for _ in range(arguments.repeats):
                for name, (make, words) in makers.items():
                    start = time.process_time()
                    tokens[name] = make(path, words, settings, folder)
                    seconds[name].append(time.process_time() - start)
            median = {name: statistics.median(times) for name, times in seconds.items()}
            googles = median["Google's"]
            for name in makers:
                rows.append(
                    {
                        "case": case,
                        "maker": name,
                        "seconds": f"{median[name]:.2f}",
                        "MB of text/s": f"{path.stat().st_size / median[name] / 1e6:.3f}",
                        "tokens made/s": f"{tokens[name] / median[name]:,.0f}",
                        "x Google's": f"{googles / median[name]:.1f}",
                    }
                )
    return rows


def perturbed_file(sources, path, size_bytes):
    """Repeats the documents of files up to a size, each time with 1 of 50 words replaced by another of their words."""
    rng = random.Random(0)
    lines = "\n".join(Path(source).read_text(encoding="utf-8") for source in sources).split("\n")
    words = [word for line in lines for word in line.split()]
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        while written < size_bytes:
            for line in lines:
                changed = [rng.choice(words) if rng.random() < 0.02 else word for word in line.split()]
                written += file.write(" ".join(changed) + "\n")


def memory(arguments):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        source = sentences_file(arguments.corpus, folder)
        for megabytes in arguments.megabytes:
            path = Path(folder) / f"{megabytes}.txt"
            perturbed_file([source], path, megabytes * 1_000_000)
            words = [sys.executable, __file__, "peak", "--vocab", arguments.vocab, "--file", path]
            printed = subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout
            rows.append({"text, MB": megabytes, **json.loads(printed.splitlines()[-1])})
            path.unlink()
    for row in rows:
        row["x the first"] = f"{row['peak, MB'] / rows[0]['peak, MB']:.3f}"
    return rows


def peak(arguments):
    """In a process of its own, for `memory`: peak resident memory of making data of one file."""
    tokenizer = BertTokenizer.from_vocab_file(arguments.vocab)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        write_pretraining_data([arguments.file], tokenizer, f"{folder}/data", PretrainingSettings(), processes=1)
    seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 1), "peak, MB": round(peak_bytes() / 1e6)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["speed", "memory", "peak"])
    parser.add_argument("--data", type=Path, default=SHARED_DATA, help="folder of pretrain_text/ and vocab/")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of `speed`; the median counts")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[3, 300], help="sizes for `memory`")
    parser.add_argument("--file", type=Path, help="for `peak`")
    parser.add_argument("--corpus", nargs="+", help="files of running text; default: those of --data")
    parser.add_argument("--vocab", help="vocab.txt, uncased; default: that of --data")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    arguments = parser.parse_args()
    arguments.vocab = arguments.vocab or arguments.data / "vocab" / "uncased_vocab.txt"
    arguments.corpus = arguments.corpus or [arguments.data / "pretrain_text" / name for name in TEXTS]
    if arguments.command == "peak":
        return print(json.dumps(peak(arguments)))
    if missing := [str(path) for path in arguments.corpus if not Path(path).is_file()]:
        parser.error(f"needs texts: --corpus, or a folder pretrain_text below --data. Received: {', '.join(missing)}.")
    rows = speed(arguments) if arguments.command == "speed" else memory(arguments)
    print(aligned_rows(rows))
    if arguments.json:
        print(json.dumps({"rows": rows}))
    return None


if __name__ == "__main__":
    main()
