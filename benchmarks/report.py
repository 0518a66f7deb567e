"""What a run says: tables in Markdown, and a line about the machine."""

import dataclasses
import os
import platform
from pathlib import Path

INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")  # names of /proc/cpuinfo


NATURAL, BY_LENGTH = "natural", "by length"  # orders of texts


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows (dictionaries with the same keys) under a title, facts in one line, and the seconds of every turn."""

    title: str
    rows: list
    facts: str = ""
    seconds: dict = dataclasses.field(default_factory=dict)


def text_of(value):
    """A number as people read it."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def cells_of(rows):
    return [list(rows[0]), *([text_of(value) for value in row.values()] for row in rows)]


def markdown_rows(rows):
    header, *lines = cells_of(rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), *lines))


def aligned_rows(rows):
    """For terminals."""
    lines = cells_of(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(f"{cell:>{n}}" for cell, n in zip(line, widths, strict=True)) for line in lines)


def text_of_table(table, layout=aligned_rows):
    return "\n\n".join(filter(None, [f"### {table.title}", table.facts, layout(table.rows)]))


def add_ratios(rows, speed, ours):
    """Adds how many times as fast ours is: in the same order of texts, and in the order that the kit itself chooses.

    Args:
        rows: dictionaries with "contender", "order" and `speed`; changed in place.
        speed: str, the key of what is better where it is higher.
        ours: str, the contender whose speed is divided by that of each row.
    """
    speeds = {row["order"]: row[speed] for row in rows if row["contender"] == ours}
    for row in rows:
        row[f"{ours}, same order"] = speeds[row["order"]] / row[speed]
        row[f"{ours}, {BY_LENGTH}"] = speeds[BY_LENGTH] / row[speed]
    return rows


def machine_line(cpuinfo=Path("/proc/cpuinfo")):
    """Processor, cores, instructions, and system."""
    text = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.is_file() else ""
    models = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    words = set(text.split())
    instructions = " ".join(name for name in INSTRUCTIONS if name in words) or "unknown instructions"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{models[0] if models else platform.processor()}, {cores} cores, {instructions}, {platform.system()}"
