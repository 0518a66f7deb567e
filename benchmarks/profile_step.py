"""Where does a step of fine-tuning spend its time? Milliseconds by kind of operation, from TensorFlow's profiler.

    python benchmarks/profile_step.py --layers 12 --hidden 768

A batch of 16 texts of about 52 tokens, random ids, bfloat16. Operations run side by side on the cores, so that the sum
is more than the time of the step, which is printed above, measured without the profiler.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

import keras_bert_kit as kbk

TEXTS, LONGEST = 16, 64


def make_batch(vocab_size):
    """Inputs and labels, lengths as of short news."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.normal(52, 8, TEXTS), 30, LONGEST).astype(int)
    mask = (np.arange(LONGEST) < lengths[:, None]).astype("int32")
    ids = rng.integers(5, vocab_size, mask.shape, dtype="int32") * mask
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": 0 * mask}
    return {name: tf.constant(value) for name, value in inputs.items()}, tf.constant(
        rng.integers(0, 4, TEXTS), tf.int32
    )


def make_step(layers, hidden):
    """The step of the `Trainer`, compiled, as a function without arguments."""
    config = kbk.BertConfig(
        vocab_size=30522,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
    )
    model = kbk.BertClassifier(kbk.BertEncoder(config, dtype="mixed_bfloat16"), num_classes=4)
    trainer = kbk.Trainer(model, kbk.create_optimizer(3e-5, 10**6, 0), kbk.CrossEntropy())
    compiled, batch = tf.function(trainer.step), make_batch(config.vocab_size)
    return lambda: compiled(batch).numpy()


def milliseconds_by_operation(step, count):
    """Counter from kinds of operations to their milliseconds in a step."""
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            for _ in range(count):
                step()
        (path,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
        space = XSpace.FromString(path.read_bytes())
    found = Counter()
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            name, _, operation = plane.event_metadata[event.metadata_id].name.rpartition(":")
            if name and not name.startswith("$"):
                found[operation] += event.duration_ps / 1e9 / count
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    step, seconds = make_step(options.layers, options.hidden), []
    for _ in range(3):
        step()
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(f"step: {1e3 * statistics.median(seconds):.0f} ms")
    for operation, milliseconds in milliseconds_by_operation(step, 2).most_common(25):
        print(f"{milliseconds:9.2f} ms  {operation}")


if __name__ == "__main__":
    main()
