"""`describe_variables`: what is trained, decayed, and at which rate, as a table for people to look at before step 1."""

import math

import numpy as np


def describe_variables(model, optimizer):
    """Lists a model's variables, one line for all that share a layer and are treated alike.

    Args:
        model: `keras.Model`.
        optimizer: `keras.optimizers.Optimizer`, built; for `AdamW` and `Lamb` the table knows decay and rates.

    Returns:
        Str, a table with the columns layer, variables, numbers, trained, decayed, rate.
    """
    trained = {id(variable) for variable in model.trainable_variables}
    rows = {}
    for variable in model.weights:
        layer = "/".join(variable.path.split("/")[1:3]) if variable.path.count("/") > 2 else variable.path.split("/")[0]
        is_trained = id(variable) in trained
        decayed = is_trained and getattr(optimizer, "is_decayed", lambda _: False)(variable)
        rate = _rate(optimizer, variable) if is_trained else "-"
        key = layer, "yes" if is_trained else "no", "yes" if decayed else "no", rate
        count, size = rows.get(key, (0, 0))
        rows[key] = count + 1, size + math.prod(variable.shape)
    lines = [(layer, str(count), f"{size:,}", *rest) for (layer, *rest), (count, size) in rows.items()]
    lines.insert(0, ("layer", "variables", "numbers", "trained", "decayed", "rate"))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _rate(optimizer, variable):
    """The factor on the rate, or the range of it where it changes with the step."""
    if not hasattr(optimizer, "rate_factor"):
        return "1"
    factor = optimizer.rate_factor(variable)
    return f"{float(np.asarray(factor)):.3g}"
