"""Is the tokenizer exact, and is it fast? Two commands, each prints a table.

    python benchmarks/tokenizer.py equality     ids and offsets against Hugging Face's `tokenizers`, per vocabulary
    python benchmarks/tokenizer.py speed        texts per second, side by side with the peers that are installed

Both need the data sets of ../shared (or --data DIR: text files anywhere below it, and vocab/*_vocab.txt; `speed` is
content with --texts FILE and --vocab FILE), and the `tokenizers` library. `speed` also measures tensorflow-text and
keras-hub where they can be imported; tensorflow-text 2.20 with TensorFlow 2.20 is a combination that works.
"""

import argparse
import json
import os
import sys
import time
import unicodedata
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent))  # also where Python is told not to look there

import tensorflow as tf
from report import aligned_rows
from tqdm import tqdm

from keras_bert_kit.data import read_examples
from keras_bert_kit.text import BertTokenizer, faster

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TEXT_SUFFIXES = {".csv", ".tsv", ".txt", ".conll", ".json"}
VOCABULARIES = {"uncased": True, "cased": False, "chinese": True, "multilingual_cased": False}  # name: lowercase
LINES_PER_BATCH = 4096


def all_lines(data):
    """Every line of every text file, and every naughty string, as the texts to compare on."""
    lines = []
    for path in sorted(data.rglob("*")):
        if path.suffix in TEXT_SUFFIXES:
            lines += path.read_bytes().decode("utf-8", "replace").split("\n")
            if path.name == "blns.json":
                lines += json.loads(path.read_text(encoding="utf-8"))
    return lines


def hugging_face(tokenizer):
    from tokenizers import BertWordPieceTokenizer

    ids = {token: i for i, token in enumerate(tokenizer.vocabulary)}
    return BertWordPieceTokenizer(ids, lowercase=tokenizer.lowercase)._tokenizer


def is_reordered(text):
    """Whether NFD moves marks past each other, after which Hugging Face's offsets no longer follow the characters."""
    return unicodedata.normalize("NFD", text) != "".join(unicodedata.normalize("NFD", part) for part in text)


def compare(tokenizer, lines, progress):
    """Counts texts, pieces, and differences in ids and offsets, explained and not."""
    theirs = hugging_face(tokenizer)
    counts = dict.fromkeys(["texts", "pieces", "ids differ", "offsets differ", "of these reordered marks"], 0)
    for start in range(0, len(lines), LINES_PER_BATCH):
        batch = lines[start : start + LINES_PER_BATCH]
        ids, starts, ends = (x.to_list() for x in tokenizer.tokenize_with_offsets(batch))
        encodings = theirs.encode_batch(batch, add_special_tokens=False)
        for i, (text, encoding) in enumerate(zip(batch, encodings, strict=True)):
            counts["texts"] += 1
            counts["pieces"] += len(encoding.ids)
            counts["ids differ"] += ids[i] != encoding.ids
            if list(zip(starts[i], ends[i], strict=True)) != encoding.offsets:
                counts["offsets differ"] += 1
                counts["of these reordered marks"] += is_reordered(text)
        progress.update(len(batch))
    return counts


def equality(arguments):
    lines = all_lines(arguments.data)
    rows = []
    with tqdm(total=len(lines) * len(VOCABULARIES), unit="text", disable=not sys.stderr.isatty()) as progress:
        for name, lowercase in VOCABULARIES.items():
            path = arguments.data / "vocab" / f"{name}_vocab.txt"
            tokenizer = BertTokenizer.from_vocab_file(path, lowercase=lowercase)
            rows.append({"vocabulary": name, **compare(tokenizer, lines, progress)})
    print(aligned_rows(rows))
    unexplained = sum(row["ids differ"] + row["offsets differ"] - row["of these reordered marks"] for row in rows)
    print(f"\nunexplained differences: {unexplained}")
    return 0 if unexplained == 0 else 1


def peers(tokenizer, path):
    """Name and function (list of texts, tensor of texts) of everything that can be measured here."""
    theirs = hugging_face(tokenizer)
    found = {
        "ours, core ops": lambda texts, tensor: tokenizer(tensor),
        "tokenizers encode_batch_fast": lambda texts, tensor: theirs.encode_batch_fast(texts, add_special_tokens=False),
        "tokenizers encode_batch": lambda texts, tensor: theirs.encode_batch(texts, add_special_tokens=False),
    }
    fast = faster(tokenizer)
    if fast is tokenizer:
        print("tensorflow-text cannot be imported: its paths are not measured.")
        return found
    fast = tf.function(fast, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    found["ours, tensorflow-text"] = lambda texts, tensor: fast(tensor)
    import tensorflow_text

    bert = tensorflow_text.FastBertTokenizer(
        vocab=tokenizer.vocabulary, token_out_type=tf.int32, lower_case_nfd_strip_accents=True
    )
    bert = tf.function(bert.tokenize, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    found["tensorflow-text FastBertTokenizer"] = lambda texts, tensor: bert(tensor)
    try:
        import keras_hub
    except ImportError:
        return found
    hub = keras_hub.tokenizers.BertTokenizer(vocabulary=str(path), lowercase=True)
    found["keras-hub BertTokenizer, called"] = lambda texts, tensor: hub(tensor)
    hub_graph = tf.function(hub, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    found["keras-hub BertTokenizer, tf.function"] = lambda texts, tensor: hub_graph(tensor)
    return found


def best_seconds(functions, batches, repeats):
    """The best of several rounds, in which the functions take turns, so that none has a quieter machine."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats + 1):  # the first round compiles and warms up
        for name, function in functions.items():
            start = time.perf_counter()
            for batch in batches:
                function(*batch)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def speed(arguments):
    path = arguments.vocab or arguments.data / "vocab" / "uncased_vocab.txt"
    start = time.perf_counter()
    tokenizer = BertTokenizer.from_vocab_file(path)
    print(f"building the tokenizer, 30,522 tokens: {time.perf_counter() - start:.2f} s")
    texts = read_examples(arguments.texts or arguments.data / "ag_news" / "test.csv").texts
    functions = peers(tokenizer, path)
    rows = []
    for batch_size in (1, 32, 256, 1024, len(texts)):
        used = texts[: min(len(texts), batch_size * 30)]
        batches = [used[i : i + batch_size] for i in range(0, len(used), batch_size)]
        seconds = best_seconds(functions, [(batch, tf.constant(batch)) for batch in batches], arguments.repeats)
        base = seconds["tokenizers encode_batch_fast"]
        for name in functions:
            rows.append(
                {
                    "batch": batch_size,
                    "tokenizer": name,
                    "texts/s": f"{len(used) / seconds[name]:,.0f}",
                    "ms a batch": f"{1000 * seconds[name] / len(batches):.2f}",
                    "x encode_batch_fast": f"{base / seconds[name]:.2f}",
                }
            )
    print(aligned_rows(rows))
    if arguments.json:
        print(json.dumps({"rows": rows}))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["equality", "speed"])
    parser.add_argument("--data", type=Path, default=SHARED_DATA, help="folder of texts and of vocab/*_vocab.txt")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of `speed`; the best one counts")
    parser.add_argument("--texts", help="for `speed`: file of labelled texts; default: AG News of --data")
    parser.add_argument("--vocab", help="for `speed`: vocab.txt, uncased; default: that of --data")
    parser.add_argument("--json", action="store_true", help="for `speed`: print one JSON object as the last line")
    arguments = parser.parse_args()
    given = arguments.command == "speed" and arguments.texts and arguments.vocab
    if not given and not (arguments.data / "vocab").is_dir():
        parser.error(f"needs vocabularies in a folder vocab below --data. Received: {arguments.data}.")
    return equality(arguments) if arguments.command == "equality" else speed(arguments)


if __name__ == "__main__":
    sys.exit(main())
