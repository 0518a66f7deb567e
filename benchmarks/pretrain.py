"""The suite `pretrain`: steps of pre-training, and making their data."""

import numpy as np
from report import Table
from shapes import TRAINING
from sides import median, seconds_of, take_turns

from keras_bert_kit.data import PretrainingBatches, PretrainingSettings, write_pretraining_data
from keras_bert_kit.text import BertTokenizer


def write_batches(bench, batch_size):
    """Writes batches that all sides read; returns the tokens of each row, places with padding, and predictions."""
    options, folder = bench.options, bench.folder
    tokenizer = BertTokenizer.from_vocab_file(options.vocab)
    settings = PretrainingSettings(sequence_length=options.max_length, text_format="plain")
    write_pretraining_data(bench.corpus(), tokenizer, folder / "data", settings, processes=1, report=lambda _: None)
    dataset = PretrainingBatches(folder / "data", batch_size).batches_from(0).take(options.batches)
    found, lengths, places, predictions = {}, [], 0, 0
    for number, (inputs, labels) in enumerate(dataset.as_numpy_iterator()):
        batch = inputs | {"mlm_labels": labels["mlm_logits"], "nsp_labels": labels["nsp_logits"]}
        found |= {f"{number}/{key}": array for key, array in batch.items()}
        lengths += inputs["input_mask"].sum(axis=1).tolist()
        places += inputs["input_mask"].size
        predictions += int((labels["mlm_logits"] != -100).sum())
    np.savez(folder / "batches.npz", numbers=np.arange(options.batches), **found)
    return lengths, places, predictions


def run(bench):
    """Masked words and next sentences, the same batches for all; then data, against Google's algorithm on one core."""
    options, batch_size = bench.options, bench.options.batch_size or 16
    lengths, places, predictions = write_batches(bench, batch_size)
    contenders = {"matmul": bench.matmul()}
    for side in bench.start_sides("pretrain", bench.job(batches=str(bench.folder / "batches.npz")), ("pytorch",)):
        contenders |= side.contenders
    answers = take_turns(contenders, [{}] * options.turns, warm_up=[{}])
    rate = median(answers.pop("matmul"), "rate")
    operations = TRAINING * bench.shape.pretraining_operations(lengths, predictions)
    ours = median(answers["kit bfloat16"])
    rows = [
        {
            "contender": name,
            "tokens/s": sum(lengths) / median(found),
            "of the matmul rate": operations / median(found) / rate,
            "loss": found[-1]["loss"],
            "kit bfloat16": median(found) / ours,
        }
        for name, found in answers.items()
    ]
    padding = 1 - sum(lengths) / places
    turns = f"{options.batches} batches of {batch_size} rows a turn, medians of {options.turns} turns"
    facts = bench.facts(f"{turns}, {padding:.1%} padding", rate=rate)
    arguments = ("--corpus", *bench.corpus(), "--vocab", options.vocab, "--repeats", min(options.turns, 3))
    data = bench.script("pretraining_data.py", "speed", *arguments)
    return [
        Table("Pre-training, steps", rows, facts, seconds_of(answers)),
        Table("Pre-training data, text to compressed records on one core", data["rows"]),
    ]
