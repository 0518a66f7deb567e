"""Heat maps of attention: a row for each token that looks, a column for each token that is looked at.

Blocks and heads are counted from 0, as in `encoder.blocks`.
"""

import numpy as np

from keras_bert_kit.plots.figures import finished, new_figure, style_of_tokens

_COLUMNS = 4  # of pictures side by side
_LARGEST_PIXELS = 6000  # of a side; with more, the same picture has fewer of them per inch


def plot_attention(scores, tokens, path=None, *, title=None):
    """Draws the attention of one head, or the mean over several.

    Args:
        scores: array or tensor (sequence, sequence), each row sums to 1; or (heads, sequence, sequence), of which the
            mean over heads is drawn.
        tokens: list of str, as many as the sequence is long, without padding. Longer scores are cut.
        path: file to write, `.png`, `.pdf` or `.svg`. The folder must exist. Default: none.
        title: str above the picture.

    Returns:
        `pathlib.Path` of the file; without `path` the `matplotlib.figure.Figure`.

    Raises:
        ValueError: The scores are no square, or there are more tokens than rows.
    """
    scores = np.asarray(scores, dtype=np.float32)
    if scores.ndim == 3:
        scores = scores.mean(axis=0)
    scores = square_scores(scores, tokens, 2)
    inches = 2.0 + 0.28 * len(tokens)
    figure = new_figure(inches + 1.0, inches)
    axes = figure.subplots()
    image = _draw(axes, scores, tokens, font_size=10)
    axes.set_xlabel("is looked at")
    axes.set_ylabel("looks")
    axes.set_title(title or "Attention, mean over heads")
    figure.colorbar(image, ax=axes, shrink=0.8, label="attention score")
    return finished(figure, path, dpi=_dpi(inches, 150))


def plot_attention_heads(scores, tokens, path=None, *, title=None):
    """Draws the attention of every head of a block, side by side in one scale of colours.

    Args:
        scores: array or tensor (heads, sequence, sequence), each row sums to 1.
        tokens, path: see `plot_attention`.
        title: str above the picture.

    Returns:
        See `plot_attention`.

    Raises:
        ValueError: See `plot_attention`.
    """
    scores = square_scores(scores, tokens, 3)
    heads = len(scores)
    columns = min(heads, _COLUMNS)
    rows = -(-heads // columns)
    names = [f"head {head}" for head in range(heads)]
    return _grid(scores, tokens, (rows, columns), names, title or "Attention, all heads", path)


def plot_all_attention(scores, tokens, path=None, *, title=None):
    """Draws the attention of every head of every block: a row of pictures for each block, a column for each head.

    Args:
        scores: list of arrays or tensors (heads, sequence, sequence), one for each block; of what the encoder returns
            as `attention_scores`, one text of the batch: `[scores[0] for scores in outputs["attention_scores"]]`.
        tokens, path: see `plot_attention`.
        title: str above the picture.

    Returns:
        See `plot_attention`.

    Raises:
        ValueError: See `plot_attention`.
    """
    scores = square_scores(scores, tokens, 4)
    blocks, heads = scores.shape[:2]
    names = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    panels = scores.reshape(blocks * heads, *scores.shape[2:])
    return _grid(panels, tokens, (blocks, heads), names, title or "Attention, all blocks and heads", path)


def square_scores(scores, tokens, rank):
    """Checks attention scores, and cuts them to the tokens.

    Args:
        scores: array, or list of arrays; the last two axes are (sequence, sequence).
        tokens: list of str.
        rank: int, axes that the scores must have.

    Returns:
        float32 array of that rank, whose last two axes are as long as `tokens`.

    Raises:
        ValueError: Another rank, no square, or more tokens than rows.
    """
    scores = np.asarray(scores, dtype=np.float32)
    shapes = {2: "(sequence, sequence) or (heads, sequence, sequence)", 3: "(heads, sequence, sequence)"}
    wanted = shapes.get(rank, "(blocks, heads, sequence, sequence)")
    size = len(tokens)
    if scores.ndim != rank or scores.shape[-1] != scores.shape[-2] or not 1 <= size <= scores.shape[-1]:
        raise ValueError(
            f"scores must be {wanted}, of one text, with at least as many rows as tokens, and at least one. "
            f"Received: shape {scores.shape}, {size} tokens."
        )
    return scores[..., :size, :size]


def _grid(panels, tokens, shape, names, title, path):
    """Draws (pictures, sequence, sequence) in rows and columns; only the outer pictures name the tokens."""
    rows, columns = shape
    inches = max(1.3, 0.16 * len(tokens))  # of a side of one picture
    width, height = columns * (inches + 0.1) + 2.2, rows * (inches + 0.3) + 1.1
    figure = new_figure(width, height)
    from matplotlib.colors import PowerNorm

    axes = figure.subplots(rows, columns, squeeze=False)
    # The root makes small scores visible beside the few that are near 1.
    colors = PowerNorm(0.5, vmin=0.0, vmax=float(panels.max()))
    for number, place in enumerate(axes.flat):
        if number >= len(panels):
            place.set_axis_off()
            continue
        image = _draw(place, panels[number], tokens, font_size=8, colors=colors)
        place.set_title(names[number], fontsize=9)
        if number % columns:
            place.set_yticks([])
        if number + columns < len(panels):
            place.set_xticks([])
    figure.suptitle(title, fontsize=12)
    figure.supxlabel("is looked at", fontsize=10)
    figure.supylabel("looks", fontsize=10)
    bar = {"fraction": 0.4 / width, "pad": 0.15 / width, "shrink": min(1.0, 3.0 / height), "aspect": 18}
    figure.colorbar(image, ax=axes, label="attention score", **bar)
    return finished(figure, path, dpi=_dpi(max(width, height), 120))


def _draw(axes, scores, tokens, font_size, colors=None):
    """One heat map with its tokens. `colors`: matplotlib's norm; default: from 0 to the largest score, evenly."""
    image = axes.imshow(scores, cmap="Blues", norm=colors, vmin=None if colors else 0.0)
    style = style_of_tokens(font_size)
    axes.set_xticks(range(len(tokens)), tokens, rotation=90, **style)
    axes.set_yticks(range(len(tokens)), tokens, **style)
    axes.tick_params(length=2)
    return image


def _dpi(inches, wanted):
    """Pixels per inch, so that a side has not more than `_LARGEST_PIXELS`."""
    return min(wanted, int(_LARGEST_PIXELS / inches))
