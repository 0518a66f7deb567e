"""`pretrain_bert`: masked words and next sentences, from random weights or on from a checkpoint."""

import collections
import dataclasses
import numbers
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_kit.data import PretrainingBatches
from keras_bert_kit.data.phases import Phases
from keras_bert_kit.data.tokenizer_settings import require_same_tokenizer
from keras_bert_kit.errors import DataError
from keras_bert_kit.models import BertEncoder, BertPretrainer
from keras_bert_kit.plots import has_matplotlib, plot_training
from keras_bert_kit.pretrained import Pretrained
from keras_bert_kit.recipes.arguments import require_a, require_list_of, require_rate
from keras_bert_kit.recipes.same_run import fingerprint_of_source, require_same_run
from keras_bert_kit.training import PretrainingLoss, Trainer, create_optimizer, describe_variables
from keras_bert_kit.training.arguments import require_counts
from keras_bert_kit.training.losses import IGNORED_LABEL
from keras_bert_kit.training.strategy import is_chief


@dataclasses.dataclass(frozen=True)
class PretrainingPlan:
    """What a pre-training run is going to do, for people to look at before it starts.

    Attributes:
        phases: tuple of str, a line each.
        num_steps: int, updates of the weights.
        num_warmup_steps: int, of them, with a rising rate.
        learning_rate: float, the highest rate.
        optimizer_type: str.
        baselines: dictionary of the accuracies on held-out data of an answer that is always the most frequent one,
            `mlm_accuracy` and `nsp_accuracy`: what a model has to beat. Empty without such data.
    """

    phases: tuple
    num_steps: int
    num_warmup_steps: int
    learning_rate: float
    optimizer_type: str
    baselines: dict

    def __str__(self):
        lines = [
            *self.phases,
            f"{self.num_steps} steps of {self.optimizer_type}, {self.num_warmup_steps} of them warm-up, "
            f"rate {self.learning_rate:g}",
        ]
        if self.baselines:
            words, sentences = self.baselines["mlm_accuracy"], self.baselines["nsp_accuracy"]
            lines.append(
                f"always the most frequent answer, held out: masked words {words:.4f} right, "
                f"next sentences {sentences:.4f}"
            )
        return "\n".join(lines)


def default_pretraining_rate(config, further=False):
    """A rate that is safe for pre-training an encoder of this size: the smaller it is, the higher.

    Source: Devlin et al. 2018, appendix A.2 (1e-4 for base and large). For 256, 1e-3 was tried with this code;
    5e-4 lies between and was not tried. What was pre-trained before gets a fifth, so that it is not unlearnt: 2e-5 for
    base, as https://github.com/google-research/bert advises.

    Args:
        config: `BertConfig`.
        further: bool, whether the weights were pre-trained before.
    """
    new = 1e-4 if config.hidden_size >= 768 else 5e-4 if config.hidden_size >= 512 else 1e-3
    return new / 5 if further else new


def new_pretrainer(config, dtype=None):
    """Makes a `BertPretrainer` with random weights; seed it by `keras.utils.set_random_seed`.

    Args:
        config: `BertConfig`.
        dtype: str or dtype policy. Default: Keras' global policy.
    """
    return BertPretrainer(BertEncoder(config, dtype=dtype))


def pretrainer_of(bert):
    """Returns the pre-training model of a loaded source, to train it further.

    A source without a masked-LM head gets new heads on its encoder; one without pooler gets no next-sentence head.

    Args:
        bert: what `load_pretrained` returned.

    Returns:
        Pair of `BertPretrainer` and the names of the heads that are new, a tuple of str.
    """
    if bert.pretrainer is not None:
        return bert.pretrainer, ()
    model = BertPretrainer(bert.encoder, next_sentence=bert.encoder.add_pooler)
    return model, tuple(model.heads())


def pretrain_bert(
    model,
    data,
    steps,
    evaluation=None,
    *,
    source=None,
    optimizer_type="adamw",
    learning_rate=None,
    num_warmup_steps=None,
    seed=0,
    strategy=None,
    accumulation_steps=1,
    validate_every=None,
    checkpoint_dir=None,
    save_every=None,
    report=print,
):
    """Trains a `BertPretrainer` on masked words and next sentences.

    Args:
        model: `BertPretrainer`, made in the scope of `strategy`. It is trained in place.
        data: list of `PretrainingBatches`, one a phase.
        steps: list of int, steps of each phase.
        evaluation: `PretrainingBatches` to evaluate on, or None.
        source: what `load_pretrained` returned, where `model` is the one that `pretrainer_of` made of it, to be trained
            further. Data must have been made with its tokenizer. Default: the weights of `model` are new.
        optimizer_type: `"adamw"`, or `"lamb"` for batches of thousands.
        learning_rate: float, the highest rate. Default: see `default_pretraining_rate`.
        num_warmup_steps: int, steps in which the rate rises; or float below 1, their share of all. Default: a tenth of
            all, 10,000 at most.
        seed: int, of dropout; that of the data is theirs.
        strategy: `tf.distribute.Strategy`. Default: the current one.
        accumulation_steps: int, see `Trainer`.
        validate_every: int, steps between evaluations. Default: a tenth of all.
        checkpoint_dir: folder of checkpoints; if there are some, the run goes on from the newest. Curves are drawn
            there too, if matplotlib is installed. Default: no checkpoints.
        save_every: int, steps between checkpoints. Default: a tenth of all.
        report: function that takes, before training, the `PretrainingPlan` and a table of the variables, and a line
            after each evaluation.

    Returns:
        `History`.

    Raises:
        ValueError: An argument is of another class, or a number out of range.
        DataError: The data does not fit the model (vocabulary size, sequence length), or not each other (tokenizer,
            packed or not).
        CheckpointError: The run in `checkpoint_dir` began with other settings or data, or from another source.
    """
    require_a(BertPretrainer, "model", model, "Make it with new_pretrainer(config), or pretrainer_of(bert).")
    require_list_of(PretrainingBatches, "data", data, "Give [PretrainingBatches(folder, batch_size)], one a phase.")
    require_list_of(numbers.Integral, "steps", steps, "Give [1000], for example: the steps of each phase.")
    if evaluation is not None:
        require_a(PretrainingBatches, "evaluation", evaluation, "Give PretrainingBatches(folder, batch_size), or None.")
    if source is not None:
        require_a(Pretrained, "source", source, "It is what load_pretrained returns, not its folder.")
    require_counts(accumulation_steps=accumulation_steps)
    require_rate(learning_rate)
    for batches in (*data, *([evaluation] if evaluation else [])):
        require_fitting(batches, model)
        require_same_tokenizer(batches.tokenizer, batches.folder, data[0].tokenizer, data[0].folder)
    if source and source.tokenizer:
        require_same_tokenizer(data[0].tokenizer, data[0].folder, source.tokenizer, source.report.source)
    require_one_form(data)
    phases = Phases(data, steps)
    num_steps = phases.num_steps
    if num_warmup_steps is None:
        num_warmup_steps = min(num_steps // 10, 10_000)
    elif 0 < num_warmup_steps < 1:
        num_warmup_steps = int(num_warmup_steps * num_steps)
    further = source is not None
    rate = default_pretraining_rate(model.encoder.config, further) if learning_rate is None else learning_rate
    held_out = evaluation and evaluation.once()
    baselines = baselines_of(held_out) if evaluation else {}
    lines = tuple(_phase_line(batches, count) for batches, count in zip(data, steps, strict=True))
    report(PretrainingPlan(lines, num_steps, num_warmup_steps, rate, optimizer_type, baselines))

    strategy = strategy or tf.distribute.get_strategy()
    if checkpoint_dir:
        checkpoint_dir = Path(checkpoint_dir).expanduser()
        settings = dict(steps=list(steps), learning_rate=rate, num_warmup_steps=num_warmup_steps, seed=seed)
        settings |= dict(optimizer_type=optimizer_type, batch_sizes=[batches.batch_size for batches in data])
        settings |= dict(data=[batches.fingerprint for batches in data])
        fingerprints = dict(source=source and fingerprint_of_source(source))
        require_same_run(checkpoint_dir, strategy, settings, fingerprints)

    with strategy.scope():
        optimizer = create_optimizer(rate, num_steps, num_warmup_steps, optimizer_type=optimizer_type)
    loss = PretrainingLoss(next_sentence=model.next_sentence)
    options = dict(strategy=strategy, accumulation_steps=accumulation_steps, seed=seed)
    trainer = Trainer(model, optimizer, loss, **options)
    report(describe_variables(model, optimizer))
    history = trainer.fit(
        phases,
        num_steps,
        validation_dataset=held_out,
        validate_every=validate_every or max(num_steps // 10, 1),
        checkpoint_dir=checkpoint_dir,
        save_every=save_every or max(num_steps // 10, 1),
        on_validation=lambda step, results: report(_evaluation_line(step, num_steps, results)),
    )
    if checkpoint_dir and has_matplotlib() and is_chief(strategy):
        plot_training(history.records, checkpoint_dir / "training.png", title="Pre-training")
    return history


def require_fitting(batches, model):
    """Checks that data was made for a model.

    Raises:
        DataError: The data has another vocabulary size than the model, or longer sequences.
    """
    config = model.encoder.config
    if batches.tokenizer.vocab_size > config.vocab_size:
        raise DataError(
            f"The data must have been made with the vocabulary of the model. Received: {batches.tokenizer.vocab_size} "
            f"tokens in {batches.folder}, vocab_size={config.vocab_size}. Make the data with the model's vocab.txt."
        )
    if batches.settings.sequence_length > config.max_position_embeddings:
        raise DataError(
            "The data must not have longer sequences than the model has positions. Received: sequence_length="
            f"{batches.settings.sequence_length} in {batches.folder}, "
            f"max_position_embeddings={config.max_position_embeddings}. Make the data with shorter sequences."
        )


def require_one_form(data):
    """Checks that phases are all packed or all not: batches of both have other inputs, and cannot follow each other.

    Raises:
        DataError: Some are packed and others are not.
    """
    packed = [batches.settings.packed for batches in data]
    if len(set(packed)) > 1:
        found = ", ".join(f"packed={one} in {batches.folder}" for one, batches in zip(packed, data, strict=True))
        raise DataError(
            f"The data of all phases must be packed, or none. Received: {found}. Make one of them anew, with or "
            "without --packed."
        )


def baselines_of(dataset):
    """The accuracies that guessing gives, if the guess is always the most frequent answer.

    Args:
        dataset: batches (inputs, labels), finite.

    Returns:
        Dictionary of floats: `mlm_accuracy`, `nsp_accuracy`.
    """
    counts = {"mlm": collections.Counter(), "nsp": collections.Counter()}
    for _, labels in dataset:
        for task, counter in counts.items():
            found = np.asarray(labels[f"{task}_logits"])
            counter.update(found[found != IGNORED_LABEL].tolist())
    return {f"{task}_accuracy": max(counter.values()) / counter.total() for task, counter in counts.items()}


def _phase_line(batches, steps):
    epochs = steps * batches.batch_size / batches.num_examples
    return (
        f"{batches.folder}: {batches.num_examples} rows of up to {batches.settings.sequence_length} tokens; "
        f"{steps} steps of {batches.batch_size} rows, {epochs:.1f} epochs"
    )


def _evaluation_line(step, num_steps, results):
    line = (
        f"step {step} of {num_steps}, held out: masked words {results['mlm_accuracy']:.4f} right, "
        f"perplexity {results['mlm_perplexity']:.2f}"
    )
    return line + (f", next sentences {results['nsp_accuracy']:.4f}" if "nsp_accuracy" in results else "")
