"""The curves of a run."""

import numpy as np

from keras_bert_kit.plots.figures import finished, new_figure

_COLORS = ("tab:blue", "tab:orange", "tab:green")


def plot_training(records, path=None, *, title=None):
    """Draws the curves of a run: loss, accuracies and learning rate by step, and the evaluations.

    Args:
        records: list of dictionaries, `History.records`, or the lines of a `log.jsonl`.
        path: file to write, `.png`, `.pdf` or `.svg`. The folder must exist. Default: none.
        title: str above the picture.

    Returns:
        `pathlib.Path` of the file; without `path` the `matplotlib.figure.Figure`.

    Raises:
        ValueError: There is no step among the records.
    """
    steps = [record for record in records if "loss" in record]
    evaluations = [record for record in records if "validation" in record]
    if not steps:
        raise ValueError(f"records must hold at least one step. Received: {len(records)} records.")
    numbers = [record["step"] for record in steps]
    at = [record["step"] for record in evaluations]
    figure = new_figure(10.0, 8.0)
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
                label = f"{_readable(name)}, held out: {held_out[-1]:.4f} at the end"
                axes.plot(at, held_out, "o--", color=color, label=label)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        axes.set_ylabel(kind)
        axes.set_ylim(0.0, 1.02 if kind == "accuracy" else None)
    panels[0].set_title(title or "Training")
    rates.plot(numbers, [record["learning_rate"] for record in steps], color="tab:gray")
    rates.set_ylabel("learning rate")
    rates.set_xlabel("step (one update of the weights)")
    return finished(figure, path, dpi=100)


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
