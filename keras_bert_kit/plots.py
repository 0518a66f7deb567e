"""Pictures: which tokens look at which."""

import importlib.util
from pathlib import Path

import numpy as np

from keras_bert_kit.errors import KitError


def require_matplotlib():
    """Checks that the extra for pictures is installed.

    Raises:
        KitError: It is not; the message says how to install it.
    """
    if importlib.util.find_spec("matplotlib") is None:
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
