"""The suites `tokenizer` and `loading`: what tokenizer.py and loading.py print, brought under one command."""

from report import Table


def tokenizer(bench):
    """Texts a second of tokenizers alone. With --peer-keras-hub in its Python, so that all are in one process."""
    options = bench.options
    python = options.peer_keras_hub or bench.python
    arguments = ("speed", "--texts", options.texts, "--vocab", options.vocab, "--repeats", options.turns)
    return [Table("Tokenizers", bench.script("tokenizer.py", *arguments, python=python)["rows"])]


def loading(bench):
    """Seconds and memory of loading random weights in every format."""
    options, shape = bench.options, bench.shape
    arguments = ["--layers", shape.layers, "--hidden", shape.hidden, "--heads", shape.heads]
    arguments += ["--repeats", options.turns]
    if options.peer_pytorch:
        arguments += ["--peer-python", options.peer_pytorch]
    found = bench.script("loading.py", *arguments)
    return [Table("Loading", found["rows"], f"{found['weight_bytes'] / 1e6:.0f} MB of weights")]
