"""Accounts for every tensor of a source and every variable of its model, from headers alone.

Nothing large is read or made here: a file that does not fit its configuration costs no more than its header.
"""

import math
from typing import NamedTuple

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.heads import HEADS, ON_POOLED_OUTPUT
from keras_bert_kit.pretrained.names import rows_for
from keras_bert_kit.pretrained.rows import their_shape
from keras_bert_kit.pretrained.shapes import shapes_of

_FLOATS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_BYTES = _FLOATS | {"int64": 8, "uint64": 8, "int32": 4, "uint32": 4, "int16": 2, "uint16": 2}  # of others: 1


class Plan(NamedTuple):
    """What becomes of each tensor of a source, and of each variable; and what does not fit.

    Attributes:
        heads: tuple of str, the heads that are loaded.
        new_pooler: bool, whether there is a pooler that the source has not.
        rows: list of `Row`, the tensors that fit, and the variables they go to.
        missing: list of `Row`, tensors that the source has not, as was allowed.
        shapes: dictionary from our paths to the shapes of all variables.
        left_out: dictionary from the names of all other tensors to the reason.
        faults: list of str, one for each tensor that is missing, unused, of another shape or not of floating-point
            numbers, and for each name that was allowed for nothing.
    """

    heads: tuple
    new_pooler: bool
    rows: list
    missing: list
    shapes: dict
    left_out: dict
    faults: list


def plan_of(read, path, *, heads=None, allow_missing=(), allow_unused=()):
    """Compares the tensors of a source with the variables of its model.

    Args:
        read: `Source`.
        path: where it was read, for messages.
        heads: see `load_pretrained`.
        allow_missing: see `load_pretrained`.
        allow_unused: see `load_pretrained`.

    Returns:
        `Plan`.

    Raises:
        CheckpointError: A head is not there, or there are fewer tensors than layers.
        ValueError: An argument is not valid.
    """
    for argument, names in (("allow_missing", allow_missing), ("allow_unused", allow_unused)):
        if isinstance(names, str):
            raise ValueError(f"{argument} must be a list of names. Received: {names!r}, one string.")
    arrays, layers, num_heads = read.arrays, read.config.num_hidden_layers, read.config.num_attention_heads
    if layers > len(arrays):  # the rows of a billion layers would be the first large thing here
        raise faults_error(path, [f"num_hidden_layers={layers} of the configuration: there are {len(arrays)} tensors"])

    chosen = _chosen_heads(read, path, heads)
    new_pooler = "pooler" in allow_missing and not any(row.theirs in arrays for row in read.table["pooler"])
    loaded = [head for head in chosen if head != "pooler" or not new_pooler]
    shapes = shapes_of(read.config, chosen + ["pooler"] * new_pooler, len(read.class_names))
    rows = rows_for(read.table, ["encoder", *loaded], layers)
    not_asked_for = rows_for(read.table, [head for head in read.heads if head not in chosen], layers)
    left_out = read.left_out | {row.theirs: "not asked for" for row in not_asked_for if row.theirs in arrays}

    misfits = {row: _fault_of(arrays, row, shapes[row.ours], num_heads) for row in rows if row.theirs in arrays}
    absent = [row for row in rows if row.theirs not in arrays]
    missing = [row for row in absent if row.theirs in allow_missing]
    known = left_out.keys() | {row.theirs for row in rows}
    unknown = [name for name in arrays if name not in known]
    unused = [name for name in unknown if {name, arrays.name_in_file(name)} & set(allow_unused)]
    faults = [
        f"{row.theirs}: missing, expected with shape {their_shape(row, shapes[row.ours], num_heads)}"
        for row in absent
        if row not in missing
    ]
    faults += [f"{arrays.name_in_file(row.theirs)}: {fault}" for row, fault in misfits.items() if fault]
    faults += [f"{arrays.name_in_file(name)}: not known, would be unused" for name in unknown if name not in unused]
    not_missing = set(allow_missing) - {row.theirs for row in missing} - {"pooler"}
    not_unused = set(allow_unused) - {*unused, *map(arrays.name_in_file, unused)}
    faults += [f"{name}: in allow_missing, and not missing" for name in sorted(not_missing)]
    faults += [f"{name}: in allow_unused, and not unused" for name in sorted(not_unused)]
    left_out |= dict.fromkeys(unused, "not known; allow_unused names it")
    return Plan(
        heads=tuple(loaded),
        new_pooler=new_pooler,
        rows=[row for row, fault in misfits.items() if not fault],
        missing=missing + read.table["pooler"] * new_pooler,
        shapes=shapes,
        left_out={arrays.name_in_file(name): reason for name, reason in left_out.items()},
        faults=faults,
    )


def faults_error(path, faults):
    """Returns the error that lists all faults of a source's tensors."""
    listed = "\n  ".join(faults)
    return CheckpointError(
        f"The tensors of {path} must fit the model exactly. These do not; nothing was assigned:\n  {listed}"
    )


def tensor_bytes_of(arrays):
    """Returns how many bytes the numbers in all tensors of `NamedArrays` take."""
    return sum(math.prod(arrays.shape(name)) * _BYTES.get(arrays.dtype(name), 1) for name in arrays)


def _chosen_heads(read, path, asked):
    """The heads to load: those asked for, and the pooler where they need it; in the order of the source."""
    if asked is None:
        return list(read.heads)
    if isinstance(asked, str) or not set(asked) <= set(HEADS):
        raise ValueError(f"heads must be some of {', '.join(HEADS)}. Received: heads={asked!r}.")
    if absent := [head for head in asked if head not in read.heads]:
        raise CheckpointError(
            f"The heads asked for must be in the source. Received: {path}, without {', '.join(absent)}. "
            f"There are: {', '.join(read.heads) or 'none'}. Ask for those, or make a new head on the encoder."
        )
    pooler = {"pooler"} if ON_POOLED_OUTPUT & set(asked) else set()
    return [head for head in read.heads if head in pooler | set(asked)]


def _fault_of(arrays, row, shape, num_heads):
    """What the header says that does not fit, or None."""
    expected, received = their_shape(row, shape, num_heads), tuple(arrays.shape(row.theirs))
    if received != expected:
        return f"expected shape {expected}, received {received}"
    if arrays.dtype(row.theirs) not in _FLOATS:
        return f"expected floating-point numbers, received {arrays.dtype(row.theirs)}"
    return None
