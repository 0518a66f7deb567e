"""The suite `scaling`: how the kit's own cost grows with length, batch, layers and corpus. Tables and pictures."""

import dataclasses
from pathlib import Path

from pretraining_data import perturbed_file
from report import Table

LENGTHS = (16, 32, 64, 128, 256, 512)
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
DEPTHS = (1, 2, 4, 8, 12)
LENGTH, BATCH_SIZE = 64, 16  # of what does not vary
SECONDS = 2.0  # of work a point, at least


def run(bench):
    """Milliseconds of a text in bfloat16, without padding; seconds and memory of making pre-training data."""
    layers, depths = bench.shape.layers, [n for n in DEPTHS if n <= bench.shape.layers]
    by_length = costs(bench, layers, [(BATCH_SIZE, n) for n in LENGTHS])
    by_batch = costs(bench, layers, [(n, LENGTH) for n in BATCH_SIZES])
    by_depth = [costs(bench, n, [(BATCH_SIZE, LENGTH)])[0] for n in depths]
    rows = {
        "length": rows_of("tokens a text", LENGTHS, by_length),
        "batch": rows_of("texts a batch", BATCH_SIZES, by_batch),
        "layers": rows_of("layers", depths, by_depth),
    }
    fixed = {"length": f"batch {BATCH_SIZE}", "batch": f"{LENGTH} tokens", "layers": f"{BATCH_SIZE} x {LENGTH} tokens"}
    tables = {name: Table(f"Cost and {name}", rows[name], bench.facts(fixed[name])) for name in rows}
    tables["corpus"] = Table("Making pre-training data", corpus_rows(bench), "one process; peak of all of its memory")
    if bench.options.plots:
        for name, table in tables.items():
            plot(table, Path(bench.options.plots) / f"scaling-{name}.png", has_trend=name != "batch")
    return list(tables.values())


def costs(bench, layers, points):
    """Milliseconds a text of a model with so many layers, {"training": …, "inference": …} for each batch and length."""
    config = dataclasses.replace(bench.shape, layers=layers).config
    with bench.start("kit", "cost", bench.job() | {"config": config}) as side:
        return [
            {
                name: 1e3 * ask(batch_size=batch_size, length=length, seconds=SECONDS)["seconds"] / batch_size
                for name, ask in side.contenders.items()
            }
            for batch_size, length in points
        ]


def rows_of(what, values, found):
    return [
        {what: value} | {f"{name}, ms a text": milliseconds for name, milliseconds in of_value.items()}
        for value, of_value in zip(values, found, strict=True)
    ]


def corpus_rows(bench):
    """Of corpora of some sizes, made of the texts with words exchanged."""
    rows = []
    for megabytes in bench.options.megabytes:
        path = bench.folder / f"{megabytes}.txt"
        perturbed_file(bench.corpus(), path, megabytes * 1_000_000)
        made = bench.script("pretraining_data.py", "peak", "--vocab", bench.options.vocab, "--file", path)
        rows.append({"MB of text": megabytes, "seconds": made["seconds"], "peak MB": made["peak, MB"]})
        path.unlink()
    return rows


def plot(table, path, has_trend):
    """Draws the columns of a table against its first one, on logarithmic axes, as PNG.

    With a trend, also what a cost that is proportional to the first column would be.
    """
    from matplotlib.figure import Figure

    x, *columns = table.rows[0]
    values = [row[x] for row in table.rows]
    figure = Figure(figsize=(4.5 * len(columns), 3.6), layout="constrained")
    for axes, column, color in zip(figure.subplots(1, len(columns)), columns, ("tab:blue", "tab:orange"), strict=True):
        measured = [row[column] for row in table.rows]
        axes.loglog(values, measured, "o-", color=color, label="measured")
        if has_trend and not column.startswith("peak"):
            trend = [measured[-1] * value / values[-1] for value in values]
            axes.loglog(values, trend, "--", color="gray", linewidth=1, label="proportional")
            axes.legend(frameon=False)
        axes.set_xticks(values, map(str, values), minor=False)
        axes.set_xticks([], minor=True)
        axes.set_xlabel(x)
        axes.set_title(column, fontsize=11)
        axes.grid(which="major", alpha=0.3)
        if column.startswith("peak"):
            axes.set_yscale("linear")
            axes.set_ylim(0, 1.3 * max(measured))
        else:
            label_with_numbers(axes)
    figure.suptitle(table.title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def label_with_numbers(axes):
    """Ticks as 1, 2, 5, 10, 20, …, never as powers; room around what hardly varies."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.2, high * 1.2)
