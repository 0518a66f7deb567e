"""The card beside pre-training data: what it was made from, how, and what came out, for people to look at."""

_BARS, _BAR_WIDTH = 16, 40


def statistics_card(plan, statistics):
    """Writes the card.

    Args:
        plan: dictionary of `plan_of`.
        statistics: `BlockStatistics` of all shards.

    Returns:
        str, Markdown.
    """
    settings = plan["settings"]
    parts = [
        "# Pre-training data",
        "Shards of sentence pairs for BERT's two objectives, masked words and next sentences, made by "
        "`keras-bert-kit make-pretraining-data`. `manifest.json` holds checksums, `statistics.json` these numbers.",
        "## What came out",
        _table(("what", "how many"), _results(settings, statistics)),
        "## Lengths of the sequences",
        f"```\n{length_histogram(statistics.lengths)}\n```",
        "## How it was made",
        _table(("setting", "value"), [(f"`{name}`", f"`{value}`") for name, value in settings.items()]),
        _table(("tokenizer", "value"), [(f"`{name}`", f"`{value}`") for name, value in plan["tokenizer"].items()]),
        "## From what",
        _table(
            ("text", "bytes", "sha256"),
            [(_cell(source["name"]), f"{source['bytes']:,}", source["sha256"]) for source in plan["sources"]],
        ),
        "## How to read it",
        "```python\nimport keras_bert_kit as kbk\n\nbatches = kbk.PretrainingBatches(folder, batch_size=32, seed=0)\n"
        "dataset = batches.batches_from(0)   # endless, shuffled; or batches.once(), for evaluation\n```",
    ]
    return "\n\n".join(parts) + "\n"


def length_histogram(lengths):
    """Draws how many sequences have how many tokens.

    Args:
        lengths: ints, how many sequences have 0, 1, 2, … tokens.

    Returns:
        str, a line per bar.
    """
    width = max(1, -(-(len(lengths) - 1) // _BARS))
    # The last bar ends with the longest length that there may be, which most sequences have.
    bars = [(end - width + 1, end) for end in range(len(lengths) - 1, 0, -width)][::-1]
    counts = [sum(lengths[max(first, 0) : end + 1]) for first, end in bars]
    total, most = max(sum(counts), 1), max([*counts, 1])
    lines = (
        f"{max(first, 1):>4} to {end:<4} {count:>11,}  {count / total:>6.1%}  {'#' * round(_BAR_WIDTH * count / most)}"
        for (first, end), count in zip(bars, counts, strict=True)
    )
    return "\n".join(line.rstrip() for line in lines)


def _results(settings, found):
    """Rows of the table of results."""
    per_sequence = found.tokens / found.sequences
    rows = [
        ("documents", f"{found.documents:,}"),
        ("sentences", f"{found.sentences:,}"),
        ("tokens of the text", f"{found.text_tokens:,}, {found.unknown_tokens / found.text_tokens:.2%} of them [UNK]"),
        ("pairs of segments", f"{found.sequences:,}, of {per_sequence:.1f} tokens on average, special ones counted"),
        ("B follows A (label 0)", f"{found.next_pairs:,} ({found.next_pairs / found.sequences:.1%})"),
        (
            "B from elsewhere (label 1)",
            f"{found.random_pairs:,} ({found.random_pairs_share:.1%}; a last sentence alone always gets such a B)",
        ),
        ("rows", f"{found.rows:,}{f', {found.sequences / found.rows:.2f} pairs each' if settings['packed'] else ''}"),
        ("padding", f"{found.padding_share:.1%}, were each row padded to {settings['sequence_length']} tokens"),
        ("masked tokens", _masked(settings, found)),
    ]
    if settings["masking"] == "static":
        rows += [
            (f"… {name}", f"{count:,} ({count / max(found.predictions, 1):.1%})")
            for name, count in (
                ("became [MASK]", found.masked_mask),
                ("became a random token", found.masked_random),
                ("stayed", found.masked_kept),
            )
        ]
    if found.cut_documents:
        rows.append(("cuts in long documents", f"{found.cut_documents:,}"))
    return rows


def _masked(settings, found):
    masked = f"{found.predictions:,} ({found.masked_share:.1%} of the tokens of the pairs)"
    if settings["masking"] == "static":
        return masked
    return f"about {masked}, chosen anew at each reading: 80% become [MASK], 10% a random token, 10% stay"


def _table(header, rows):
    lines = [header, ["--"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text):
    return text.replace("|", "\\|")
