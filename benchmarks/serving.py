"""How fast are answers, from the string to the probabilities? One command, prints a table.

    python benchmarks/serving.py texts.csv
    python benchmarks/serving.py texts.csv --peer-python other_environment/bin/python

A classifier of BERT-base's shape, random weights, answers the texts of a file; what takes time is their length. All
contenders hold the same weights, run in the same minutes, and take turns text by text:

* kit, float32 and bfloat16: `Predictor` on what `export_for_serving` wrote. With `--constants` also with weights as
  constants of the graph (`freeze=True`), which take about 7 GB of memory each while they are loaded.
* TF-Hub's style: a SavedModel that pads every text to 128 tokens and reads float32 variables. Its graph has our
  tokenizer and layers, so that it differs from the kit's export in these things only.
* With `--peer-python`, the Python of an environment with torch, transformers, onnx and onnxruntime: ONNX Runtime with
  float32 and with dynamic int8, after its own fusions for BERT, and PyTorch Transformers with bfloat16. They cut and
  pad to the longest text of a batch, as the kit does.

Columns: milliseconds for one text (median and 99th percentile), texts a second in batches of 32, how many times the
throughput and the median latency are better than TF-Hub's style, and the largest difference of a probability to the
kit's float32, which shows that it is the same model.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import keras_bert_kit as kbk

LENGTH = 128
BATCH_SIZE = 32
WARM_UP = 5
PAUSE_SECONDS = 0.02  # the threads of the last one stop waiting for work
BASELINE, REFERENCE = "TF-Hub's style", "kit float32"
PEER = Path(__file__).with_name("serving_peer.py")


def classifier_of(config, class_names, dtype):
    """A classifier with random weights, the same for every dtype."""
    keras.utils.set_random_seed(0)
    classifier = kbk.BertClassifier(kbk.BertEncoder(config, dtype=dtype), len(class_names), class_names)
    classifier({name: np.ones([1, 4], np.int32) for name in ("input_word_ids", "input_mask", "input_type_ids")})
    return classifier


def write_tf_hub_style(classifier, tokenizer, folder):
    """A SavedModel as with hub.KerasLayer twice: preprocessing to 128 tokens, then an encoder with variables."""
    pack, module = kbk.BertPacker(tokenizer, LENGTH), tf.Module()
    module.classifier, module.pack = classifier, pack

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serve(text):
        return {"probabilities": tf.nn.softmax(classifier(pack(text), training=False))}

    tf.saved_model.save(module, str(folder), signatures=serve)


def timed(answer):
    """A function from texts to (seconds, probabilities)."""

    def ask(texts):
        start = time.perf_counter()
        probabilities = answer(texts)
        return time.perf_counter() - start, np.asarray(probabilities)

    return ask


def of_predictor(folder):
    predictor = kbk.Predictor(folder)
    ask = timed(lambda texts: predictor.predict(texts, batch_size=BATCH_SIZE))

    def rows(texts):
        seconds, predictions = ask(texts)
        return seconds, np.array([list(prediction.probabilities.values()) for prediction in predictions])

    return rows


def of_saved_model(folder):
    loaded = tf.saved_model.load(str(folder))
    serve = loaded.signatures["serving_default"]
    return timed(lambda texts: (loaded, serve(text=tf.constant(texts)))[1]["probabilities"].numpy())


def of_peer(process, name):
    def ask(texts):
        process.stdin.write(json.dumps({"name": name, "texts": texts}) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        return answer["seconds"], np.array(answer["probabilities"])

    return ask


def our_contenders(config, tokenizer, folder, constants):
    """{name: function}; the weights are also in folder / "hf"."""
    contenders, pack = {}, kbk.BertPacker(tokenizer, LENGTH)
    for name, dtype in ((REFERENCE, "float32"), ("kit bfloat16", "mixed_bfloat16")):
        classifier = classifier_of(config, ("World", "Sports", "Business", "Tech"), dtype)
        contenders[name] = of_predictor(kbk.export_for_serving(classifier, pack, folder / dtype))
        if constants:
            version = kbk.export_for_serving(classifier, pack, folder / f"{dtype}-constants", freeze=True)
            contenders[f"{name}, constants"] = of_predictor(version)
        if dtype == "float32":
            write_tf_hub_style(classifier, tokenizer, folder / "tf_hub")
            kbk.save_pretrained(classifier, folder / "hf", tokenizer=tokenizer, format="hf")
    return contenders | {BASELINE: of_saved_model(folder / "tf_hub")}


def measure(contenders, texts, num_single, num_batches):
    """{name: (seconds of each text, seconds of each batch, largest difference to the reference)}."""
    batches = [[text] for text in texts[:num_single]]
    batches += [texts[first : first + BATCH_SIZE] for first in range(0, num_batches * BATCH_SIZE, BATCH_SIZE)]
    seconds = {name: ([], []) for name in contenders}
    difference = dict.fromkeys(contenders, 0.0)
    for ask in contenders.values():
        for batch in (*batches[:WARM_UP], batches[-1]):
            ask(batch)
    for turn, batch in enumerate(batches):
        answers = {}
        names = list(contenders)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            time.sleep(PAUSE_SECONDS)
            spent, answers[name] = contenders[name](batch)
            seconds[name][turn >= num_single].append(spent)
        for name, answer in answers.items():
            difference[name] = max(difference[name], float(np.abs(answer - answers[REFERENCE]).max()))
    return {name: (*seconds[name], difference[name]) for name in contenders}


def row_of(name, measured, baseline):
    single, batches, difference = measured
    throughput = BATCH_SIZE / np.median(batches)
    return {
        "contender": name,
        "p50 ms": round(1e3 * np.percentile(single, 50), 2),
        "p99 ms": round(1e3 * np.percentile(single, 99), 2),
        "texts/s": round(throughput, 1),
        "x latency": round(np.median(baseline[0]) / np.median(single), 2),
        "x throughput": round(np.median(baseline[1]) / np.median(batches), 2),
        "difference": f"{difference:.1g}",
    }


def show(rows):
    """Prints dictionaries as a table in Markdown."""
    print(f"| {' | '.join(rows[0])} |")
    print("|---" * len(rows[0]) + "|")
    for row in rows:
        print(f"| {' | '.join(map(str, row.values()))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", help="texts, in a form that read_examples knows")
    parser.add_argument("--vocab", help="vocab.txt; default: one that is learned from the texts (needs tokenizers)")
    parser.add_argument("--layers", type=int, default=12, help="encoder blocks; 12 is BERT-base")
    parser.add_argument("--single", type=int, default=500, help="texts that are asked one at a time")
    parser.add_argument("--batches", type=int, default=50, help=f"batches of {BATCH_SIZE} texts")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of each contender")
    parser.add_argument("--constants", action="store_true", help="also with weights as constants of the graph")
    parser.add_argument("--peer-python", help="Python with torch, transformers, onnx and onnxruntime")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    arguments = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    texts = list(kbk.read_examples(arguments.csv).texts)
    if len(texts) < max(arguments.single, arguments.batches * BATCH_SIZE):
        parser.error(f"needs {max(arguments.single, arguments.batches * BATCH_SIZE)} texts, {arguments.csv} has fewer")
    vocabulary = arguments.vocab or kbk.learn_vocabulary([arguments.csv])
    tokenizer = kbk.BertTokenizer.from_vocab_file(vocabulary) if arguments.vocab else kbk.BertTokenizer(vocabulary)
    config = kbk.BertConfig(vocab_size=30522, num_hidden_layers=arguments.layers, hidden_act="gelu_erf")
    with tempfile.TemporaryDirectory() as folder:
        contenders = our_contenders(config, tokenizer, Path(folder), arguments.constants)
        command = [arguments.peer_python, PEER, Path(folder) / "hf", str(arguments.threads), str(LENGTH)]
        if arguments.peer_python:
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                if not (ready := process.stdout.readline()):
                    sys.exit(f"{PEER} failed in {arguments.peer_python}: see above.")
                names = json.loads(ready)["ready"]
                contenders |= {name: of_peer(process, name) for name in names}
                measured = measure(contenders, texts, arguments.single, arguments.batches)
                process.stdin.close()
        else:
            measured = measure(contenders, texts, arguments.single, arguments.batches)
    rows = [row_of(name, of_name, measured[BASELINE]) for name, of_name in measured.items()]
    lengths = [len(ids) for ids in tokenizer(texts[: arguments.single])]
    print(
        f"{arguments.layers} layers, {arguments.threads} threads, texts of {np.mean(lengths):.0f} tokens on average\n"
    )
    show(rows)
    if arguments.json:
        print(json.dumps({"rows": rows}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
