"""The command `fill-mask`: which words a model expects in a text."""

import sys

import click

from keras_bert_kit.cli.command import SOURCE, command
from keras_bert_kit.fill_mask import fill_in
from keras_bert_kit.fill_mask import fill_mask as guesses_for
from keras_bert_kit.pretrained import load_pretrained


@command
@click.argument("source", type=SOURCE)
@click.argument("texts", nargs=-1)
@click.option("--top-k", default=5, show_default=True, type=click.IntRange(1), help="Tokens for each mask.")
def fill_mask(source, texts, top_k):
    """Guess the words behind each [MASK] of a text; without TEXTS, of each line of standard input.

    \b
    The model needs its masked-LM head, as models have before they are fine-tuned.
    Example:
      keras-bert-kit fill-mask bert-base-uncased "Paris is the [MASK] of France."
    """
    texts = list(texts) or [line.rstrip("\n") for line in sys.stdin]
    if not texts:
        raise click.UsageError("Give at least one text, as an argument or as a line of standard input.")
    answers, lines = [], []
    for text, masks in zip(texts, guesses_for(load_pretrained(source), texts, top_k), strict=True):
        filled = fill_in(text, [guesses[0][0] for guesses in masks])
        guesses = [[{"token": token, "probability": p} for token, p in guesses] for guesses in masks]
        answers.append({"text": text, "filled": filled, "masks": guesses})
        lines += [filled, *(_line(guesses) for guesses in masks)]
    return {"texts": answers}, "\n".join(lines)


def _line(guesses):
    return "  " + "  ".join(f"{token} {probability:.3f}" for token, probability in guesses)
