"""`describe_variables`: what is trained, decayed, and at which rate, as a table for people to look at before step 1."""

import itertools
import math
import re

import numpy as np


def describe_variables(model, optimizer):
    """Lists a model's variables, one line for all of a layer that are treated alike, and for all layers alike.

    Args:
        model: `keras.Model`.
        optimizer: `keras.optimizers.Optimizer`, built; for `AdamW` and `Lamb` the table knows decay and rates.

    Returns:
        Str, a table with the columns layer, variables, numbers, trained, decayed, rate.

    Raises:
        ValueError: The optimizer is not built.
    """
    if not optimizer.built:
        raise ValueError(
            "The optimizer must be built, since only then does it know the rate of each variable. Received: one that "
            "is not. Give it to Trainer or call optimizer.build(model.trainable_variables) first."
        )
    trained = {id(variable) for variable in model.trainable_variables}
    rows = {}
    for variable in model.weights:
        how = _treatment(variable, optimizer) if id(variable) in trained else ("no", "no", "-")
        count, size = rows.get((_layer_of(variable), how), (0, 0))
        rows[_layer_of(variable), how] = count + 1, size + math.prod(variable.shape)
    lines = [("layer", "variables", "numbers", "trained", "decayed", "rate")]
    kinds = list(dict.fromkeys(_kind(layer) for layer, _ in rows))  # embeddings, block_, pooler, …
    # Sorted, so that blocks which are treated alike stand together: block_0 to block_11.
    ordered = sorted(rows.items(), key=lambda row: (kinds.index(_kind(row[0][0])), row[0][1], _number(row[0][0])))
    for (_, how, count, size), alike in itertools.groupby(ordered, key=_without_number):
        names = [layer for (layer, _), _ in alike]
        name = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        lines.append((name, str(count * len(names)), f"{size * len(names):,}", *how))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _layer_of(variable):
    """The layer of the model that a variable belongs to: `block_3` of `bert_encoder/block_3/attention/qkv/kernel`."""
    parts = variable.path.split("/")
    return parts[1] if len(parts) > 2 else parts[0]


def _treatment(variable, optimizer):
    if not hasattr(optimizer, "rate_factor"):
        return "yes", "?", "1"
    factor = float(np.asarray(optimizer.rate_factor(variable)))
    return "yes", "yes" if optimizer.is_decayed(variable) else "no", f"{factor:.3g}"


def _without_number(row):
    (layer, how), (count, size) = row
    return _kind(layer), how, count, size


def _kind(layer):
    return re.sub(r"\d+", "", layer)


def _number(layer):
    found = re.search(r"\d+", layer)
    return int(found[0]) if found else 0
