"""Pictures of texts and of answers: how long the texts are, and which class is taken for which."""

import numpy as np

from keras_bert_kit.plots.figures import finished, new_figure


def plot_confusion_matrix(labels, predictions, class_names, path=None, *, title=None):
    """Draws which class is taken for which: a row for each true class, a column for each answer.

    A field holds the number of examples and their share of the row; the colour is the share, so that a rare class is
    seen as well as a frequent one. What lies beside the diagonal are the errors.

    Args:
        labels: int array (examples,), the true classes.
        predictions: int array (examples,), the answers.
        class_names: list of str, in the order of the numbers.
        path: file to write, `.png`, `.pdf` or `.svg`. The folder must exist. Default: none.
        title: str above the picture. Default: the accuracy.

    Returns:
        `pathlib.Path` of the file; without `path` the `matplotlib.figure.Figure`.

    Raises:
        ValueError: Not one answer for each label, no example, or a number that is no class.
    """
    counts = confusion_matrix(labels, predictions, len(class_names))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    inches = 2.2 + 0.9 * len(class_names)
    figure = new_figure(inches + 0.8, inches)
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    axes.set_xticks(range(len(class_names)), class_names, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(class_names)), class_names)
    axes.set_xlabel("answer")
    axes.set_ylabel("true class")
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, f"{count}\n{shares[row, column]:.0%}", ha="center", va="center", color=color)
    total = counts.sum()
    axes.set_title(title or f"{np.trace(counts)} of {total} right: accuracy {np.trace(counts) / total:.4f}")
    figure.colorbar(image, ax=axes, shrink=0.8, label="share of the true class")
    return finished(figure, path, dpi=100)


def confusion_matrix(labels, predictions, num_classes):
    """Counts the pairs of true class and answer.

    Args:
        labels, predictions: see `plot_confusion_matrix`.
        num_classes: int.

    Returns:
        int64 array (classes, classes): rows are true classes, columns answers.

    Raises:
        ValueError: See `plot_confusion_matrix`.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.ndim != 1 or labels.shape != predictions.shape or not len(labels):
        raise ValueError(
            "labels and predictions must be one number each for at least one example, (examples,). "
            f"Received: shapes {labels.shape} and {predictions.shape}."
        )
    both = np.stack([labels, predictions])
    if not np.issubdtype(both.dtype, np.integer) or both.min() < 0 or both.max() >= num_classes:
        raise ValueError(
            f"labels and predictions must be class numbers from 0 to {num_classes - 1}. Received: dtype {both.dtype}, "
            f"from {both.min()} to {both.max()}. Probabilities become numbers by argmax(axis=-1)."
        )
    counts = np.zeros((num_classes, num_classes), np.int64)
    np.add.at(counts, (labels, predictions), 1)
    return counts


def plot_token_lengths(lengths, path=None, *, max_length=None, title=None):
    """Draws how many texts have how many tokens, to choose the length of a packer by.

    Args:
        lengths: int array (texts,), for example `keras_bert_kit.data.count_tokens(examples, pack)`.
        path: see `plot_confusion_matrix`.
        max_length: int, where texts are going to be cut: drawn as a line, with the share of texts that are longer.
        title: str above the picture.

    Returns:
        See `plot_confusion_matrix`.

    Raises:
        ValueError: There is no text.
    """
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or not len(lengths):
        raise ValueError(f"lengths must hold a number for at least one text. Received: shape {lengths.shape}.")
    figure = new_figure(8.0, 3.6)
    axes = figure.subplots()
    width = max(1, -(-int(lengths.max() - lengths.min() + 1) // 50))  # whole tokens, at most about 50 bars
    edges = np.arange(lengths.min(), lengths.max() + width + 1, width) - 0.5
    axes.hist(lengths, bins=edges, color="tab:blue", edgecolor="white", linewidth=0.5)
    middle, high = np.percentile(lengths, [50, 95])
    axes.axvline(middle, color="tab:gray", linestyle=":", label=f"median: {middle:.0f}")
    axes.axvline(high, color="tab:gray", linestyle="--", label=f"95 % have at most {high:.0f}")
    if max_length is not None:
        longer = np.mean(lengths > max_length)
        axes.axvline(max_length, color="tab:red", label=f"cut at {max_length}: {longer:.1%} are longer")
    axes.legend(framealpha=1.0, edgecolor="white")  # it may lie on a line
    axes.set_xlabel("tokens of a text, [CLS] and [SEP] included")
    axes.set_ylabel("texts")
    axes.set_title(title or f"Lengths of {len(lengths)} texts")
    return finished(figure, path, dpi=100)
