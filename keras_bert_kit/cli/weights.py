"""Commands on files of weights: `inspect` and `convert`."""

import json
from pathlib import Path

import click

from keras_bert_kit.cli.classification import column_options, read
from keras_bert_kit.cli.command import PATH, SOURCE, command
from keras_bert_kit.cli.max_length import max_length_for, trained_max_length_option
from keras_bert_kit.data.rows import FORMAT_OF_ENDING
from keras_bert_kit.data.tfds import PREFIX
from keras_bert_kit.pretrained import inspect_pretrained, load_pretrained
from keras_bert_kit.pretrained.convert import convert as convert_weights
from keras_bert_kit.pretrained.save import FORMATS
from keras_bert_kit.recipes import packer_for
from keras_bert_kit.text import text_statistics


@command
@click.argument("source", type=SOURCE)
@click.option(
    "--text",
    "text_path",
    type=SOURCE,
    help="Texts to count tokens in: what finetune takes, or any other file with one text a line.",
)
@trained_max_length_option
@column_options
def inspect(source, text_path, max_length, label_column, text_columns):
    """Show what a folder of weights holds: format, sizes, heads, which GELU, what was left out and why.

    \b
    Names, shapes and types of all tensors are checked; no model is made, and their numbers are not looked at.
    With --text, also how its tokenizer meets your texts: lengths, truncation, share of [UNK].
    Example:
      keras-bert-kit inspect all-MiniLM-L6-v2
      keras-bert-kit inspect all-MiniLM-L6-v2 --text train.csv --max-length 64
    """
    if not text_path:
        report = inspect_pretrained(source)
        return json.loads(report.to_json()), str(report)
    bert = load_pretrained(source)
    length = max_length_for(Path(source), max_length)
    pack = packer_for(bert, min(length, bert.config.max_position_embeddings))
    texts = read_texts(text_path, label_column, text_columns)
    statistics = text_statistics(texts, pack.tokenizer, pack.max_sequence_length)
    return json.loads(bert.report.to_json()) | {"text": statistics.as_dict()}, f"{bert.report}\n\n{statistics}"


def read_texts(path, label_column, text_columns):
    """Reads texts for statistics: the text column of a table, or the lines of another file."""
    is_table = path.startswith(PREFIX) or Path(path).suffix.lower() in FORMAT_OF_ENDING
    if is_table or label_column or text_columns:
        return read(path, label_column, text_columns).texts
    return Path(path).read_text(encoding="utf-8").splitlines()


@command
@click.argument("source", type=SOURCE)
@click.argument("out", type=PATH)
@click.option("--to", "format", required=True, type=click.Choice(list(FORMATS)), help="Format to write.")
@click.option("--head", "heads", multiple=True, help="A head to keep; may be given again. Default: all of them.")
def convert(source, out, format, heads):
    """Write a model in another format: Hugging Face, TF1 checkpoint, or SavedModel as on TF-Hub.

    \b
    Weights stay the same, bit for bit. A head that the format has no place for is an error, unless those
    to keep are named; --head pooler keeps the encoder alone.
    Example:
      keras-bert-kit convert uncased_L-12_H-768_A-12 bert_hf --to hf
      keras-bert-kit convert uncased_L-12_H-768_A-12 bert_hub --to tf-hub --head masked_lm
    """
    report, dropped = convert_weights(source, out, format, heads)
    result = {"out": str(out), "format": format, "dropped_heads": dropped} | json.loads(report.to_json())
    lines = [str(report), *([f"dropped     heads {', '.join(dropped)}"] if dropped else []), f"written     {out}"]
    return result, "\n".join(lines)
