"""The command `pretrain`: from the data that `make-pretraining-data` writes to a BERT."""

import click
import keras

from keras_bert_kit.cli.command import DTYPES, PATH, SOURCE, command, saved_to, say
from keras_bert_kit.config import SIZES, BertConfig
from keras_bert_kit.data import PretrainingBatches
from keras_bert_kit.errors import DataError
from keras_bert_kit.files import require_free
from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.recipes import new_pretrainer, pretrain_bert, pretrainer_of
from keras_bert_kit.training.strategy import KINDS as STRATEGIES
from keras_bert_kit.training.strategy import describe, is_chief, make_strategy


@command
@click.option(
    "--data", type=SOURCE, required=True, multiple=True, help="Folder that make-pretraining-data wrote; one a phase."
)
@click.option("--steps", required=True, multiple=True, type=click.IntRange(1), help="Steps; one number a phase.")
@click.option(
    "--batch-size", default=(32,), show_default=True, multiple=True, type=click.IntRange(1), help="Rows a step."
)
@click.option("--eval", "eval_path", type=SOURCE, help="Folder of held-out data, made in the same way.")
@click.option("--source", type=SOURCE, help="Train these weights further. Default: start from random ones.")
@click.option("--config", type=PATH, help="A config.json with the sizes of a new model.")
@click.option("--size", help=f"Or a name: {', '.join(SIZES)}, or L-4_H-256_A-4.")
@click.option("--out", required=True, type=PATH, help="Folder for the model; must be new.")
@click.option("--optimizer", default="adamw", show_default=True, type=click.Choice(["adamw", "lamb"]))
@click.option(
    "--learning-rate", type=float, help="The highest rate. Default: by size, 1e-4 to 1e-3; with --source a fifth."
)
@click.option("--warmup-steps", type=click.IntRange(0), help="Default: a tenth of all steps, 10,000 at most.")
@click.option("--max-seq-length", "--max-length", type=int, help="Refuse data of another length.")
@click.option("--max-predictions-per-seq", type=int, help="Refuse data with another number of masked tokens.")
@click.option("--seed", default=0, show_default=True, type=int, help="Of new weights, data order, masks and dropout.")
@click.option("--strategy", default="auto", show_default=True, type=click.Choice(STRATEGIES), help="Devices.")
@click.option("--replicas", type=click.IntRange(1), help="With --strategy mirrored: how many.")
@click.option("--accumulation-steps", default=1, show_default=True, type=click.IntRange(1), help="To save memory.")
@click.option("--dtype", default="float32", show_default=True, type=click.Choice(DTYPES), help="What is computed in.")
@click.option("--validate-every", type=click.IntRange(1), help="Steps. Default: a tenth of all.")
@click.option("--checkpoint-dir", type=PATH, help="A run that was stopped goes on from there.")
@click.option("--save-every", type=click.IntRange(1), help="Steps between checkpoints. Default: a tenth of all.")
def pretrain(
    data,
    steps,
    batch_size,
    eval_path,
    source,
    config,
    size,
    out,
    optimizer,
    warmup_steps,
    max_seq_length,
    max_predictions_per_seq,
    seed,
    strategy,
    replicas,
    dtype,
    **options,
):
    """Pre-train a BERT on masked words and next sentences, and save it.

    \b
    Give exactly one of --source (go on from these weights), --config and --size (start from random ones).
    Phases: give --data and --steps several times, for example sequences of 128 tokens, then of 512.

    \b
    Example:
      keras-bert-kit make-pretraining-data books.txt --vocab vocab.txt --out data128
      keras-bert-kit pretrain --data data128 --steps 10000 --size small --out my_bert
    """
    require_free(out)
    if sum(value is not None for value in (source, config, size)) != 1:
        raise click.UsageError("Give exactly one of --source, --config and --size.")
    if len(steps) != len(data) or len(batch_size) not in (1, len(data)):
        raise click.UsageError("Give --steps, and --batch-size if not one for all, as often as --data.")
    strategy = make_strategy(strategy, replicas)  # before anything of TensorFlow runs
    say(describe(strategy))
    sizes = batch_size * len(data) if len(batch_size) == 1 else batch_size
    phases = [PretrainingBatches(folder, size, seed) for folder, size in zip(data, sizes, strict=True)]
    evaluation = PretrainingBatches(eval_path, max(sizes), seed) if eval_path else None
    sets = [*phases, evaluation] if evaluation else phases
    for batches in sets:
        _require(batches, "--max-seq-length", "sequence_length", max_seq_length)
        _require(batches, "--max-predictions-per-seq", "max_predictions_per_seq", max_predictions_per_seq)
    tokenizer = phases[0].tokenizer

    bert = None
    keras.utils.set_random_seed(seed)  # of new weights
    with strategy.scope():
        if source is not None:
            bert = load_pretrained(source, dtype=dtype)
            model, new = pretrainer_of(bert)
            if new:
                say(f"{source} holds no masked-LM head: new, random heads {', '.join(new)}")
        else:
            vocabulary = {"vocab_size": tokenizer.vocab_size}
            model = new_pretrainer(
                BertConfig.from_json_file(config) if config else BertConfig.from_name(size, **vocabulary), dtype
            )
    options |= dict(optimizer_type=optimizer, num_warmup_steps=warmup_steps, seed=seed, strategy=strategy, source=bert)
    history = pretrain_bert(model, phases, list(steps), evaluation, report=say, **options)
    if is_chief(strategy):
        save_pretrained(model, out, tokenizer=tokenizer)
    result = {"model": str(out), "steps": history.step}
    if history.validations:
        result |= history.validations[-1][1]
    return result, saved_to(out, strategy)


def _require(batches, option, name, wanted):
    """Refuses data of other sizes than an option asks for; sizes are those of the data in any case."""
    found = getattr(batches.settings, name)
    if wanted is not None and wanted != found:
        raise DataError(
            f"The data must have the sizes that are asked for. Received: {option}={wanted}, and {found} in "
            f"{batches.folder}. Leave the option out, or make the data anew with it."
        )
