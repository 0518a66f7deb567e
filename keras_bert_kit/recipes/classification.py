"""`finetune_classifier` and `evaluate_classifier`, each a screen of code over data, model and `Trainer`."""

import dataclasses
import math
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_bert_kit.data import (
    Examples,
    class_names_of,
    classification_batches,
    classification_dataset,
    count_tokens,
    label_ids,
)
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.models import BertClassifier
from keras_bert_kit.plots import has_matplotlib, plot_training
from keras_bert_kit.pretrained import Pretrained
from keras_bert_kit.recipes.arguments import require_a, require_rate, require_share
from keras_bert_kit.recipes.plan import Plan, warnings_of
from keras_bert_kit.recipes.same_run import fingerprint_of_examples, fingerprint_of_source, require_same_run
from keras_bert_kit.text import BertPacker
from keras_bert_kit.training import CrossEntropy, Evaluator, Trainer, create_optimizer, describe_variables
from keras_bert_kit.training.arguments import require_counts
from keras_bert_kit.training.strategy import is_chief

_HOW_TO_HAVE_EXAMPLES = "Read a file with read_examples, or make Examples(texts, labels)."
_TOKENS_OF_EMPTY = 2  # [CLS] and [SEP]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How good a classifier is on a set of examples.

    Attributes:
        accuracy: float, share of examples whose most probable class is the right one.
        loss: float, mean cross-entropy in nats.
        num_examples: int.
        class_accuracies: dict from class name to the share of its examples that are answered right.
    """

    accuracy: float
    loss: float
    num_examples: int
    class_accuracies: dict

    def __str__(self):
        classes = ", ".join(f"{name} {accuracy:.4f}" for name, accuracy in self.class_accuracies.items())
        return (
            f"evaluation: accuracy {self.accuracy:.4f} ({classes}), loss {self.loss:.4f}, {self.num_examples} examples"
        )


def default_learning_rate(config):
    """A rate that is safe for fine-tuning an encoder of this size: the smaller it is, the higher.

    Source: Devlin et al. 2018, appendix A.3 (5e-5, 3e-5, 2e-5 for base and large); Turc et al. 2019 (up to 3e-4 for the
    small ones).

    Args:
        config: `BertConfig`.
    """
    if config.hidden_size >= 1024:
        return 2e-5
    return 3e-5 if config.hidden_size >= 768 else 1e-4


def packer_for(bert, max_length):
    """Makes the packer of a loaded model: batches are padded to their longest text, longer ones cut at `max_length`.

    Args:
        bert: what `load_pretrained` returned.
        max_length: int, tokens per text, [CLS] and [SEP] included.

    Returns:
        `BertPacker`.

    Raises:
        CheckpointError: The source of the model holds no vocabulary.
        ValueError: The model has fewer positions than that.
    """
    if bert.tokenizer is None:
        raise CheckpointError(
            f"Texts need a vocabulary. Received: {bert.report.source}, which holds none. "
            "Put the vocab.txt that the model was trained with into the folder."
        )
    if max_length > bert.config.max_position_embeddings:
        raise ValueError(
            f"max_length must not be above the model's max_position_embeddings. Received: max_length={max_length}, "
            f"max_position_embeddings={bert.config.max_position_embeddings}."
        )
    return BertPacker(bert.tokenizer, sequence_length=None, max_sequence_length=max_length)


def finetune_classifier(
    bert,
    train,
    evaluation=None,
    *,
    class_names=None,
    epochs=2,
    batch_size=32,
    learning_rate=None,
    warmup_share=0.1,
    max_length=128,
    seed=0,
    strategy=None,
    accumulation_steps=1,
    checkpoint_dir=None,
    report=print,
):
    """Trains a classifier, the encoder included, on labelled texts.

    Args:
        bert: what `load_pretrained` returned. Its encoder is trained in place.
        train: `Examples`.
        evaluation: `Examples` to evaluate on after each epoch, or None.
        class_names: names in the order of the logits. Default: those found in `train`.
        epochs: int, passes over the examples.
        batch_size: int, examples per step.
        learning_rate: float, the highest rate. Default: see `default_learning_rate`.
        warmup_share: float, share of the steps in which the rate rises.
        max_length: int, tokens per text; longer texts are truncated, batches are padded to their longest.
        seed: int, for the order of examples, the new head and dropout.
        strategy: `tf.distribute.Strategy` in whose scope `bert` was loaded. Default: the current one.
        accumulation_steps: int, see `Trainer`.
        checkpoint_dir: folder of checkpoints, one after each epoch; if there are some, the run goes on from the newest.
            Curves of the run are drawn there too, if matplotlib is installed. Default: no checkpoints.
        report: function that takes, before training, the `Plan` and a table of the variables, and an `Evaluation`
            after each epoch.

    Returns:
        Pair of `BertClassifier` and the list of `Evaluation`, one per epoch (empty without `evaluation`).

    Raises:
        ValueError: An argument is of another class, or a number out of range.
        DataError: Labels do not fit the classes, or there is only one class.
        CheckpointError: The run in `checkpoint_dir` began with other settings or texts, or from another source.
    """
    require_a(Pretrained, "bert", bert, "It is what load_pretrained returns, not its encoder or its folder.")
    require_a(Examples, "train", train, _HOW_TO_HAVE_EXAMPLES)
    if evaluation is not None:
        require_a(Examples, "evaluation", evaluation, _HOW_TO_HAVE_EXAMPLES)
    require_counts(epochs=epochs, batch_size=batch_size, max_length=max_length, accumulation_steps=accumulation_steps)
    require_rate(learning_rate)
    require_share("warmup_share", warmup_share)
    keras.utils.set_random_seed(seed)  # of the new head; the order of examples and dropout have their own
    class_names = tuple(class_names or class_names_of(train))
    pack = packer_for(bert, max_length)
    tokens = count_tokens(train, pack)
    batches = classification_batches(train, pack, class_names, batch_size, seed, np.minimum(tokens, max_length))
    held_out = None if evaluation is None else evaluation_dataset(evaluation, pack, class_names)

    num_steps = epochs * batches.steps_per_epoch
    num_warmup_steps = int(warmup_share * num_steps)
    counts = np.bincount(label_ids(train, class_names), minlength=len(class_names))
    truncated = int(np.sum(tokens > max_length))
    rate = default_learning_rate(bert.config) if learning_rate is None else learning_rate
    plan = Plan(
        num_examples=len(train),
        class_names=class_names,
        class_counts=tuple(counts.tolist()),
        num_truncated=truncated,
        num_steps=num_steps,
        num_warmup_steps=num_warmup_steps,
        learning_rate=rate,
        warnings=warnings_of(bert, train, truncated, counts, rate, default_learning_rate(bert.config)),
        num_empty=int(np.sum(tokens == _TOKENS_OF_EMPTY)),
        text_columns=train.text_columns,
    )
    report(plan)

    strategy = strategy or tf.distribute.get_strategy()
    if checkpoint_dir:
        checkpoint_dir = Path(checkpoint_dir).expanduser()
        settings = dict(epochs=epochs, batch_size=batch_size, learning_rate=rate, warmup_share=warmup_share)
        settings |= dict(max_length=max_length, seed=seed, num_examples=len(train), class_names=class_names)
        fingerprints = dict(examples=fingerprint_of_examples(train), source=fingerprint_of_source(bert))
        require_same_run(checkpoint_dir, strategy, settings, fingerprints)

    with strategy.scope():
        model = BertClassifier(bert.encoder, len(class_names), class_names)
        optimizer = create_optimizer(rate, num_steps, num_warmup_steps)
    trainer = Trainer(
        model,
        optimizer,
        CrossEntropy(class_names),
        strategy=strategy,
        accumulation_steps=accumulation_steps,
        seed=seed,
    )
    report(describe_variables(model, optimizer))
    history = trainer.fit(
        batches,
        num_steps,
        validation_dataset=held_out,
        validate_every=batches.steps_per_epoch,
        checkpoint_dir=checkpoint_dir,
        save_every=batches.steps_per_epoch,
        on_validation=lambda step, results: report(_evaluation_of(results, evaluation, class_names)),
    )
    if checkpoint_dir and has_matplotlib() and is_chief(strategy):
        plot_training(history.records, checkpoint_dir / "training.png")
    return model, [_evaluation_of(results, evaluation, class_names) for _, results in history.validations]


def evaluate_classifier(model, pack, examples, batch_size=64):
    """Measures a classifier on labelled texts; every example counts once.

    Args:
        model: `BertClassifier`.
        pack: `BertPacker`.
        examples: `Examples`.
        batch_size: int.

    Returns:
        `Evaluation`.

    Raises:
        ValueError: An argument is of another class.
        DataError: Labels are not among the model's classes.
    """
    require_a(BertClassifier, "model", model, "It is what finetune_classifier returns, or bert.classifier.")
    require_a(BertPacker, "pack", pack, "Make it with packer_for(bert, max_length).")
    require_a(Examples, "examples", examples, _HOW_TO_HAVE_EXAMPLES)
    require_counts(batch_size=batch_size)
    dataset = evaluation_dataset(examples, pack, model.class_names, batch_size)
    results = Evaluator(model, CrossEntropy(model.class_names))(dataset)
    return _evaluation_of(results, examples, model.class_names)


def evaluation_dataset(examples, pack, class_names, batch_size=64):
    """Batches for an evaluation. Texts of similar length share one, which saves padding and changes no answer."""
    examples = examples.select(sorted(range(len(examples)), key=lambda i: len(examples.texts[i])))
    return classification_dataset(examples, pack, class_names, batch_size)


def _evaluation_of(results, examples, class_names):
    accuracies = {name: results[f"accuracy of {name}"] for name in class_names}
    return Evaluation(
        accuracy=results["accuracy"],
        loss=results["loss"],
        num_examples=len(examples),
        class_accuracies={name: accuracy for name, accuracy in accuracies.items() if not math.isnan(accuracy)},
    )
