"""Pictures: which tokens look at which, and how a run went."""

import importlib.util
from pathlib import Path

import numpy as np

from keras_bert_kit.errors import KitError

_COLORS = ("tab:blue", "tab:orange", "tab:green")


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
    """Saves the curves of a run as PNG: loss, accuracies and learning rate by step, and the evaluations.

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
    numbers = [record["step"] for record in steps]
    at = [record["step"] for record in evaluations]
    figure = Figure(figsize=(10.0, 8.0), layout="constrained")
    kinds = {"loss in nats": ["loss"], "accuracy": [name for name in steps[0] if name.endswith("accuracy")]}
    kinds = {kind: names for kind, names in kinds.items() if names}
    *panels, rates = figure.subplots(len(kinds) + 1, 1, sharex=True, height_ratios=[3] * len(kinds) + [1])
    for axes, (kind, names) in zip(panels, kinds.items(), strict=True):
        for name, color in zip(names, _COLORS, strict=False):
            values = np.array([record[name] for record in steps])
            axes.plot(numbers, values, color=color, alpha=0.25, linewidth=0.8)
            axes.plot(numbers, _smoothed(values), color=color, label=f"{_readable(name)}, running mean")
            if evaluations:
                held_out = [record["validation"][name] for record in evaluations]
                axes.plot(at, held_out, "o--", color=color, label=f"{_readable(name)}, held out")
                text = f"{held_out[-1]:.4f}"
                axes.annotate(text, (at[-1], held_out[-1]), (-4, 8), textcoords="offset points", ha="right")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        axes.set_ylabel(kind)
        axes.set_ylim(0.0, 1.0 if kind == "accuracy" else None)
    panels[0].set_title(title or "Training")
    rates.plot(numbers, [record["learning_rate"] for record in steps], color="tab:gray")
    rates.set_ylabel("learning rate")
    rates.set_xlabel("step (one update of the weights)")
    figure.savefig(path, dpi=100)
    return Path(path)


def _readable(name):
    """How a metric is called in a legend."""
    return name.replace("_", " ").replace("mlm", "MLM").replace("nsp", "NSP")


def _smoothed(values):
    """The mean over a window that grows up to a twentieth of the run, and never looks ahead."""
    window = max(len(values) // 20, 1)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[ends] - sums[starts]) / (ends - starts)
