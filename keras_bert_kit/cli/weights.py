"""Commands on files of weights: `inspect`."""

import json
from pathlib import Path

import click

from keras_bert_kit.cli.command import command, max_length_option
from keras_bert_kit.data import read_examples
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.recipes import packer_for
from keras_bert_kit.text import text_statistics


@command
@click.argument("source")
@click.option(
    "--text", "text_path", help="Texts to count tokens in: CSV or TSV, or any other file with one text a line."
)
@max_length_option
def inspect(source, text_path, max_length):
    """Show what a folder of weights holds: format, sizes, heads, which GELU, what was left out and why.

    \b
    With --text, also how its tokenizer meets your texts: lengths, truncation, share of [UNK].
    Example:
      keras-bert-kit inspect all-MiniLM-L6-v2
      keras-bert-kit inspect all-MiniLM-L6-v2 --text train.csv --max-length 64
    """
    bert = load_pretrained(source)
    result, text = json.loads(bert.report.to_json()), str(bert.report)
    if text_path:
        pack = packer_for(bert, min(max_length, bert.config.max_position_embeddings))
        statistics = text_statistics(read_texts(text_path), pack.tokenizer, pack.max_sequence_length)
        result["text"], text = statistics.as_dict(), f"{text}\n\n{statistics}"
    return result, text


def read_texts(path):
    """Reads texts for statistics: the text column of a table, or the lines of another file."""
    if Path(path).suffix.lower() in (".csv", ".tsv", ".tab"):
        return read_examples(path).texts
    return Path(path).read_text(encoding="utf-8").splitlines()
