"""How fast is a step of pre-training, against PyTorch? One command, prints a table.

    python benchmarks/pretraining.py TEXT… --vocab vocab.txt --peer-python other_environment/bin/python

Both sides train a BERT of the same shape on the same batches, made of the given texts (running text) by
`make-pretraining-data`: masked words and next sentences, with dropout, clipping and AdamW, in bfloat16. Ours is
`BertPretrainer` in the step of the `Trainer`; theirs is `BertForPreTraining` of Transformers under autocast, with
PyTorch's fused AdamW, padded to the longest of the batch as ours. Each is a process of its own that compiles and warms
up first; then they take turns, and medians count. Tokens are real ones; padding does not count.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

PEER = """
import sys, numpy as np, torch
from transformers import BertConfig, BertForPreTraining
torch.set_num_threads(int(sys.argv[3]))
torch.manual_seed(0)
layers, hidden, vocab_size = map(int, sys.argv[2].split("-"))
model = BertForPreTraining(BertConfig(vocab_size=vocab_size, num_hidden_layers=layers, hidden_size=hidden,
    num_attention_heads=hidden // 64, intermediate_size=4 * hidden, hidden_act="gelu_new")).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, eps=1e-6, weight_decay=0.01, fused=True)
def step(b):
    ids = torch.from_numpy(b["input_word_ids"]).long()
    labels = torch.full_like(ids, -100)
    rows, columns = np.nonzero(b["mlm_labels"] != -100)
    labels[rows, b["masked_lm_positions"][rows, columns]] = torch.from_numpy(b["mlm_labels"][rows, columns]).long()
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(ids, torch.from_numpy(b["input_mask"]), torch.from_numpy(b["input_type_ids"]).long(),
            labels=labels, next_sentence_label=torch.from_numpy(b["nsp_labels"]).long()).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())
"""
OURS = """
import sys, numpy as np, tensorflow as tf, keras
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[3]))
import keras_bert_kit as kbk
layers, hidden, vocab_size = map(int, sys.argv[2].split("-"))
keras.utils.set_random_seed(0)
config = kbk.BertConfig(vocab_size=vocab_size, num_hidden_layers=layers, hidden_size=hidden,
    num_attention_heads=hidden // 64, intermediate_size=4 * hidden, hidden_act="gelu_tanh")
model = kbk.BertPretrainer(kbk.BertEncoder(config, dtype="mixed_bfloat16"))
trainer = kbk.Trainer(model, kbk.create_optimizer(1e-4, 10**6, 1), kbk.PretrainingLoss())
compiled = tf.function(trainer.step, reduce_retracing=True)
def step(b):
    inputs = {key: tf.constant(b[key]) for key in b if key.startswith(("input", "masked"))}
    labels = {"mlm_logits": tf.constant(b["mlm_labels"]), "nsp_logits": tf.constant(b["nsp_labels"])}
    logs = compiled((inputs, labels))
    return float(logs[trainer.step.names.index("loss")])
"""
LOOP = """
import json, time
with np.load(sys.argv[1]) as file:
    count = int(file["count"])
    batches = [{key.split("/")[1]: file[key] for key in file if key.startswith(f"{i}/")} for i in range(count)]
for batch in batches[:3]:
    step(batch)
for line in sys.stdin:
    start = time.perf_counter()
    losses = [step(batch) for batch in batches]
    print(json.dumps(dict(seconds=time.perf_counter() - start, loss=losses[-1])), flush=True)
"""


def write_batches(texts, vocab, folder, sequence_length, batch_size, count):
    """Writes batches that both sides read, and returns their (tokens, places, vocabulary size)."""
    import numpy as np

    from keras_bert_kit.data import PretrainingBatches, PretrainingSettings, write_pretraining_data
    from keras_bert_kit.text import BertTokenizer

    tokenizer = BertTokenizer.from_vocab_file(vocab)
    settings = PretrainingSettings(sequence_length=sequence_length, text_format="plain")
    write_pretraining_data(texts, tokenizer, folder / "data", settings, processes=1, report=lambda _: None)
    found, tokens, places = {}, 0, 0
    dataset = PretrainingBatches(folder / "data", batch_size).batches_from(0).take(count)
    for number, (inputs, labels) in enumerate(dataset.as_numpy_iterator()):
        batch = inputs | {"mlm_labels": labels["mlm_logits"], "nsp_labels": labels["nsp_logits"]}
        found |= {f"{number}/{key}": array for key, array in batch.items()}
        tokens, places = tokens + int(inputs["input_mask"].sum()), places + inputs["input_mask"].size
    np.savez(folder / "batches.npz", count=count, **found)
    return tokens, places, tokenizer.vocab_size


def start(python, program, *arguments):
    """Starts one side; it warms up, then trains over all batches once for each line it is sent."""
    command = [python, "-c", program + LOOP, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def turn(name, process):
    """One turn of one side: {"seconds": …, "loss": …}."""
    process.stdin.write("go\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sys.exit(f"{name} ended with exit code {process.wait()}; its error is above.")
    return json.loads(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", help="text files, running text")
    parser.add_argument("--vocab", required=True, help="vocab.txt")
    parser.add_argument("--peer-python", required=True, help="Python of an environment with PyTorch and Transformers")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--batches", type=int, default=6, help="steps a turn")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sizes = (options.sequence_length, options.batch_size, options.batches)
        tokens, places, vocab_size = write_batches(options.texts, options.vocab, Path(folder), *sizes)
        arguments = (f"{folder}/batches.npz", f"{options.layers}-{options.hidden}-{vocab_size}", options.threads)
        sides = {
            "keras_bert_kit": start(sys.executable, OURS, *arguments),
            "Transformers on PyTorch": start(options.peer_python, PEER, *arguments),
        }
        seconds = {name: [] for name in sides}
        for number in range(options.turns + 1):
            for name, process in sides.items():
                found = turn(name, process)
                if number:  # the first turn is a warm-up too: every shape is compiled in it
                    seconds[name].append(found["seconds"])
        for process in sides.values():
            process.stdin.close()
            process.wait()
    speeds = {name: tokens / statistics.median(found) for name, found in seconds.items()}
    ours, theirs = speeds.values()
    print(f"{options.batches} batches of {options.batch_size} rows, {tokens} tokens, {1 - tokens / places:.1%} padding")
    print("| | tokens/s | ratio |\n|---|---|---|")
    for name, speed in speeds.items():
        print(f"| {name} | {speed:.0f} | {speed / theirs:.2f} |")
    if options.json:
        print(json.dumps({"tokens_per_second": speeds, "ratio": ours / theirs}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
