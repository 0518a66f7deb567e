"""The length that texts are cut at: `finetune` keeps it beside the weights, and later commands take it from there."""

import json

import click

from keras_bert_kit.cli.command import say
from keras_bert_kit.files import file_written_beside
from keras_bert_kit.pretrained.kit_file import KIT_FILE, read_kit_file

_DEFAULT, _KEY = 128, "max_length"

max_length_option = click.option(
    "--max-length",
    default=_DEFAULT,
    show_default=True,
    type=click.IntRange(3),
    help="Tokens per text; longer are cut.",
)
trained_max_length_option = click.option(
    "--max-length",
    type=click.IntRange(3),
    help=f"Tokens per text; longer are cut. Default: as in training by finetune, else {_DEFAULT}.",
)


def keep_max_length(folder, max_length):
    """Writes the length into the kit.json of a model that was just saved.

    Args:
        folder: `pathlib.Path`.
        max_length: int, tokens per text.
    """
    values, _ = read_kit_file(folder / KIT_FILE)
    with file_written_beside(folder / KIT_FILE) as beside:
        text = json.dumps(values | {_KEY: max_length}, indent=2, ensure_ascii=False)
        beside.write_text(text + "\n", encoding="utf-8")


def max_length_for(folder, given):
    """The length that was given; else, and said, that of training, or the default where nobody kept one.

    Args:
        folder: `pathlib.Path` of a model, or of nothing: what else a source may be keeps no length.
        given: int or None.
    """
    if given is not None:
        return given
    kept = read_kit_file(folder / KIT_FILE)[0].get(_KEY)
    if isinstance(kept, int):
        say(f"texts are cut at {kept} tokens, as in training")
        return kept
    say(f"texts are cut at {_DEFAULT} tokens: --max-length says another")
    return _DEFAULT
