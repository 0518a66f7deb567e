"""`check-export`: a look at an exported model before it serves."""

import dataclasses
import sys
from pathlib import Path

import click

from keras_bert_kit.cli.classification import require_classifier
from keras_bert_kit.cli.command import SOURCE, command
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.recipes import packer_for
from keras_bert_kit.serving.inspection import inspect_export
from keras_bert_kit.serving.predictor import newest_version, read_kit_file


@command
@click.argument("saved_model", type=SOURCE)
@click.option("--model", type=SOURCE, help="Folder of the trained model; answers are compared with it.")
@click.option("--python", default=sys.executable, help="Python with another TensorFlow to load the model with, too.")
def check_export(saved_model, model, python):
    """Show what an exported model holds and how fast it is, and check that it answers everywhere alike.

    \b
    Ops, signatures, sizes, latency by text length; every signature is asked here and in another process that has
    only TensorFlow. Fails if an op is not of core TensorFlow, or an answer differs.
    Example:
      keras-bert-kit check-export saved_models/my_model
      keras-bert-kit check-export saved_models/my_model --model my_model --python other/bin/python
    """
    trained = {}
    if model is not None:
        kit_file = read_kit_file(newest_version(Path(saved_model)))
        bert = load_pretrained(model, dtype=kit_file["dtype"])
        pack = packer_for(bert, kit_file["max_sequence_length"])
        pack.truncation = kit_file["truncation"]
        trained = {"model": require_classifier(bert), "pack": pack}
    inspection = inspect_export(saved_model, python=python, **trained)
    return dataclasses.asdict(inspection), str(inspection)
