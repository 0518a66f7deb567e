"""A small corpus, tokenizer and settings for tests of pre-training data."""

import hashlib
import random

from keras_bert_kit.data import PretrainingSettings
from keras_bert_kit.text import BertTokenizer

WORDS = "the team wins game we love market and bank rise report space robot is in a".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, ".", "##s"]
SETTINGS = {"sequence_length": 32, "block_bytes": 3000, "seed": 3}
FOLDER = "Texte für BERT/文本 v1"


def tokenizer():
    return BertTokenizer(VOCABULARY)


def settings(**changes):
    return PretrainingSettings(**SETTINGS | changes)


def write_corpus(path, num_documents=40, seed=0):
    """Writes documents of random sentences, one a line; returns the path."""
    draw = random.Random(seed)
    documents = [
        "".join(" ".join(draw.choices(WORDS, k=draw.randint(2, 14))) + " .\n" for _ in range(draw.randint(2, 12)))
        for _ in range(num_documents)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(documents), encoding="utf-8")
    return path


def checksums(folder):
    """{file name: sha256} of all files in a folder."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
