"""What every command of `keras-bert-kit` is made with: exit codes, `--json`, and options that several of them take."""

import functools
import json
import os
import re
import sys
from pathlib import Path

import click
import tensorflow as tf
from tqdm import tqdm

from keras_bert_kit.errors import KitError
from keras_bert_kit.training.strategy import is_chief
from keras_bert_kit.version import __version__

# float32 variables in any case; bfloat16 is faster where the processor has instructions for it (`doctor` says).
DTYPES = ("float32", "mixed_bfloat16", "mixed_float16")


class _Path(click.Path):
    """A path in which ~ is the home folder, also where no shell sees to that: in --out=~/model."""

    def convert(self, value, param, ctx):
        return super().convert(os.path.expanduser(value), param, ctx)


PATH = _Path(path_type=Path)  # of what is written
FILE = _Path(dir_okay=False, path_type=Path)  # the same, where it must not be a folder
SOURCE = _Path()  # of what is read: it stays a str, since it may be a handle


def main():
    """Runs the command line and ends the process with its exit code."""
    debug = "--debug" in sys.argv
    try:
        cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        sys.exit(1)
    except (KitError, ImportError, OSError, ValueError, tf.errors.OpError) as error:
        if debug:
            raise
        click.echo("Error: " + _with_options(" ".join(str(error).split())), err=True)
        sys.exit(1)


def _with_options(message):
    """A message with the options of the running command for the arguments of Python that they stand for.

    Arguments of one word, such as `steps`, stay: they may be words of the sentence.
    """
    name = next((word for word in sys.argv[1:] if not word.startswith("-")), None)
    parameters = cli.commands[name].params if name in cli.commands else ()
    options = {p.name: p.opts[0] for p in parameters if isinstance(p, click.Option) and "_" in p.name}
    if not options:
        return message
    argument = r"(?<![\w/.-])({})(?![\w/-])".format("|".join(options))  # not a part of a path
    return re.sub(argument, lambda found: options[found[1]], message)


def say(message):
    """Writes a line for people to standard error, above a progress bar if there is one."""
    tqdm.write(_with_options(str(message)), file=sys.stderr)


def saved_to(out, strategy):
    """The last line of a command that trains: of several workers, the chief saves."""
    return f"saved to {out}" if is_chief(strategy) else f"trained; the chief worker saves to {out}"


def command(function):
    """Makes a subcommand of a function that returns (dictionary for `--json`, text for people)."""

    @functools.wraps(function)
    def run(as_json, debug, **arguments):
        result, text = function(**arguments)
        click.echo(json.dumps(result, ensure_ascii=False) if as_json else text)

    run = click.option("--debug", is_flag=True, help="Show the traceback of a failure.")(run)
    run = click.option("--json", "as_json", is_flag=True, help="Print one JSON object as the last line.")(run)
    name = function.__name__.replace("_", "-")
    return cli.command(name, help=function.__doc__, context_settings={"max_content_width": 100})(run)


@click.group()
@click.version_option(__version__, prog_name="keras-bert-kit")
def cli():
    """BERT for TensorFlow and Keras 3: fine-tune, evaluate, export, predict.

    Every command has --help with an example.
    """
