"""Pictures: which tokens look at which, and how a run went."""

import importlib.util
from pathlib import Path

import numpy as np

from keras_bert_kit.errors import KitError


def has_matplotlib():
    """Says whether the extra for pictures is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib():
    """Checks that the extra for pictures is installed.

    Raises:
        KitError: It is not; the message says how to install it.
    """
    if not has_matplotlib():
        raise KitError("Pictures need matplotlib, which is not installed. Run: pip install 'keras_bert_kit[plots]'")


def plot_attention(scores, tokens, path, *, title=None):
    """Saves a heat map of attention as PNG: a row per token that looks, a column per token that is looked at.

    Args:
        scores: array or tensor (sequence, sequence), each row sums to 1; or (heads, sequence, sequence), of which the
            mean over heads is drawn.
        tokens: list of str, as many as the sequence is long, without padding. Longer scores are cut.
        path: file to write, `.png`, `.pdf` or `.svg`. The folder must exist.
        title: str above the picture.

    Returns:
        `pathlib.Path` of the file.

    Raises:
        ValueError: The scores are no square, or there are more tokens than rows.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    scores = np.asarray(scores, dtype=np.float32)
    if scores.ndim == 3:
        scores = scores.mean(axis=0)
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1] or len(tokens) > scores.shape[0]:
        raise ValueError(
            "scores must be (sequence, sequence) or (heads, sequence, sequence), with at least as many rows as tokens. "
            f"Received: shape {scores.shape}, {len(tokens)} tokens."
        )
    size = len(tokens)
    inches = 2.0 + 0.28 * size
    figure = Figure(figsize=(inches + 1.0, inches), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(scores[:size, :size], cmap="Blues", vmin=0.0)
    axes.set_xticks(range(size), tokens, rotation=90)
    axes.set_yticks(range(size), tokens)
    axes.set_xlabel("is looked at")
    axes.set_ylabel("looks")
    axes.set_title(title or "Attention, mean over heads")
    figure.colorbar(image, ax=axes, shrink=0.8, label="attention score")
    figure.savefig(path, dpi=150)
    return Path(path)


def plot_training(records, path, *, title=None):
    """Saves the curves of a run as PNG: loss and learning rate by step, and the evaluations.

    Args:
        records: list of dictionaries, `History.records`, or the lines of a `log.jsonl`.
        path: file to write, `.png`, `.pdf` or `.svg`. The folder must exist.
        title: str above the picture.

    Returns:
        `pathlib.Path` of the file.

    Raises:
        ValueError: There is no step among the records.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    steps = [record for record in records if "loss" in record]
    evaluations = [record for record in records if "validation" in record]
    if not steps:
        raise ValueError(f"records must hold at least one step. Received: {len(records)} records.")
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    numbers = [record["step"] for record in steps]
    losses = np.array([record["loss"] for record in steps])
    upper.plot(numbers, losses, color="tab:blue", alpha=0.3, linewidth=0.8, label="loss of a step")
    upper.plot(numbers, _smoothed(losses), color="tab:blue", label="loss, running mean")
    at = [record["step"] for record in evaluations]
    held_out = [record["validation"]["loss"] for record in evaluations]
    if evaluations:
        upper.plot(at, held_out, "o-", color="tab:red", label="loss, held out")
    upper.set_ylabel("loss in nats")
    upper.set_ylim(bottom=0.0)
    upper.legend(loc="upper right")
    upper.set_title(title or "Training")
    if evaluations and "accuracy" in evaluations[0]["validation"]:
        for record, place in zip(evaluations, zip(at, held_out, strict=True), strict=True):
            text = f"accuracy {record['validation']['accuracy']:.4f}"
            upper.annotate(text, place, (0, 10), textcoords="offset points", ha="right")
    lower.plot(numbers, [record["learning_rate"] for record in steps], color="tab:green")
    lower.set_ylabel("learning rate")
    lower.set_xlabel("step (one update of the weights)")
    figure.savefig(path, dpi=150)
    return Path(path)


def _smoothed(values):
    """The mean over a window that grows up to a twentieth of the run, and never looks ahead."""
    window = max(len(values) // 20, 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)
