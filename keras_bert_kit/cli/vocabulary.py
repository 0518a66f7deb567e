"""Commands on vocabularies: `train-vocab`."""

from pathlib import Path

import click

from keras_bert_kit.cli.command import command
from keras_bert_kit.files import require_writable
from keras_bert_kit.text import learn_vocabulary, write_vocabulary


@command
@click.argument("files", nargs=-1, required=True)
@click.option("--vocab-size", default=30522, show_default=True, type=click.IntRange(6), help="Tokens at most.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The vocab.txt to write.")
@click.option("--cased", is_flag=True, help="Keep capital letters and accents.")
@click.option("--seed", default=0, show_default=True, type=int, help="Of the lines drawn with --max-lines.")
@click.option("--max-lines", type=click.IntRange(1), help="Learn from so many lines, drawn at random. Default: all.")
def train_vocab(files, vocab_size, out, cased, seed, max_lines):
    """Learn a WordPiece vocabulary from text files, the same one every time.

    \b
    Example:
      keras-bert-kit train-vocab book.txt --vocab-size 8000 --out vocab.txt
    """
    require_writable(out.parent)
    tokens = learn_vocabulary(list(files), vocab_size, lowercase=not cased, max_lines=max_lines, seed=seed)
    write_vocabulary(tokens, out)
    return {"vocabulary": str(out), "vocab_size": len(tokens)}, f"{len(tokens)} tokens written to {out}"
