"""Commands of pre-training: `make-pretraining-data`."""

from pathlib import Path

import click

from keras_bert_kit.cli.command import PATH, SOURCE, command, say
from keras_bert_kit.data import PretrainingSettings, write_pretraining_data
from keras_bert_kit.data.documents import TEXT_FORMATS
from keras_bert_kit.data.manifest import MANIFEST, read_manifest
from keras_bert_kit.data.pretraining_settings import MASKINGS
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.text import BertTokenizer


@command
@click.argument("files", nargs=-1, required=True, type=SOURCE)
@click.option(
    "--vocab",
    type=SOURCE,
    required=True,
    help="A vocab.txt, or what pretrain takes as --source or --data: as it is there.",
)
@click.option("--out", required=True, type=PATH, help="Folder; new, or of a run cut short.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of pairs and static masks.")
@click.option(
    "--max-seq-length",
    "--max-length",
    "sequence_length",
    default=128,
    show_default=True,
    type=click.IntRange(5),
    help="Tokens a row.",
)
@click.option("--max-predictions-per-seq", type=click.IntRange(1), help="Masked tokens a sequence. Default: by share.")
@click.option("--masked-lm-prob", default=0.15, show_default=True, type=float, help="Share of the tokens to mask.")
@click.option("--short-seq-prob", default=0.1, show_default=True, type=float, help="Share of shorter sequences.")
@click.option("--dupe-factor", type=click.IntRange(1), help="Passes over the text. Default: 1, or 10 if static.")
@click.option("--whole-word", is_flag=True, help="Mask words, not pieces of them.")
@click.option(
    "--masking",
    default="dynamic",
    show_default=True,
    type=click.Choice(MASKINGS),
    help="Mask anew each time that a row is read, or once, here.",
)
@click.option("--packed", is_flag=True, help="Several sequences share a row, so that little of it is padding.")
@click.option(
    "--text-format", default=TEXT_FORMATS[0], show_default=True, type=click.Choice(TEXT_FORMATS), help="Of FILES."
)
@click.option("--processes", type=click.IntRange(1), help="At once; shards do not depend on it. Default: one per core.")
@click.option(
    "--cased", is_flag=True, help="Keep capital letters and accents, as the vocabulary of a cased model does."
)
def make_pretraining_data(files, vocab, out, processes, cased, **options):
    """Make shards of sentence pairs from text files, to pre-train on.

    \b
    FILES have one sentence a line and an empty line between documents, as Google's script wants them;
    with --text-format plain, running text: an empty line between paragraphs, two between documents.
    A run that was cut short goes on when the same command is run again.
    Data to train a model further needs all settings of its tokenizer: give its folder as --vocab.
    Example:
      keras-bert-kit make-pretraining-data book.txt --vocab vocab.txt --out data --seed 1
      keras-bert-kit make-pretraining-data book.txt --vocab bert-base-german --out data
    """
    tokenizer = tokenizer_of(vocab, cased)
    settings = PretrainingSettings(**options)
    made = write_pretraining_data(files, tokenizer, out, settings, processes, report=say)
    result = {"out": str(out), "shards": made.num_shards, "shards_kept": made.num_kept_shards}
    result |= {"sequences": made.num_sequences, "rows": made.num_rows}
    return result | {"settings": settings.to_dict(), "statistics": made.statistics.to_dict()}, str(made)


def tokenizer_of(vocab, cased):
    """The tokenizer of a vocab.txt; or of a model or of other data, with all its settings."""
    folder = Path(vocab)
    if not folder.is_dir() and "://" not in vocab:
        return BertTokenizer.from_vocab_file(vocab, lowercase=not cased)
    if cased:
        raise click.UsageError("--cased is for a vocab.txt: a model and other data say themselves what they are.")
    if (folder / MANIFEST).is_file():
        return read_manifest(folder)[2]
    bert = load_pretrained(vocab)
    if bert.tokenizer is None:
        raise CheckpointError(f"The model must hold a vocabulary. Received: {vocab}, which has none. Give a vocab.txt.")
    return bert.tokenizer
