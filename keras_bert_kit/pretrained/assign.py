"""From named arrays to our variables."""

import collections

import numpy as np

from keras_bert_kit.layers.functions import initializer
from keras_bert_kit.memory import as_tensor, copy_into, new_array
from keras_bert_kit.pretrained.rows import part_of, part_shape, to_ours


def variables_of(encoder, *models):
    """Names the variables of models by the paths that `names.py` uses, whatever the models are called.

    Args:
        encoder: `BertEncoder`.
        *models: models on it, such as `BertPretrainer`: each a `ModelWithEncoder`.

    Returns:
        Dictionary from path, such as `encoder/block_0/attention/qkv/kernel`, to `keras.Variable`.
    """
    parts = {"encoder": encoder}
    for model in models:
        parts |= model.heads()
    named = {}
    for part, layer in parts.items():
        inside = layer.path + "/"
        for variable in layer.weights:
            if variable.path.startswith(inside):  # not the word table, which the tied head holds too
                named[f"{part}/{variable.path.removeprefix(inside)}"] = variable
    return named


def assign(arrays, plan, variables, *, copies, config):
    """Fills the variables of a new model in one pass, and looks at every number on the way.

    One tensor at a time is in memory besides the variables.

    Args:
        arrays: `NamedArrays`, of the shapes that `plan_of` has checked.
        plan: `check.Plan`.
        variables: dictionary from our paths to `keras.Variable`.
        copies: dictionary from names that are left out as copies to the names that they must equal.
        config: `BertConfig`.

    Returns:
        List of faults. If there is one, the model is of no use.
    """
    assert not plan.faults
    assert plan.shapes == {path: tuple(v.shape) for path, v in variables.items()}, "shapes.py is not as the models are"
    copies_of = _copies_of(arrays, copies)
    rows_by_path, faults = collections.defaultdict(list), []
    for row in [*plan.rows, *plan.missing]:
        rows_by_path[row.ours].append(row)

    for path, variable in variables.items():
        shape, rows = plan.shapes[path], rows_by_path[path]
        target = None  # of more than one tensor, or of one that does not lie in memory as the variable does
        for row in rows:
            array = _random_part(row, shape, config) if row in plan.missing else _read(arrays, row, copies_of, faults)
            ours = to_ours(row, array, shape)
            if len(rows) == 1 and ours.flags.c_contiguous:
                target = ours
                continue
            if target is None:
                target = new_array(shape)
            copy_into(part_of(row, target), ours)
        variable.assign(as_tensor(target))
    return faults


def look_at_numbers(arrays, plan, copies):
    """Returns the faults that `assign` would find, without a model to fill."""
    copies_of, faults = _copies_of(arrays, copies), []
    for row in plan.rows:
        _read(arrays, row, copies_of, faults)
    return faults


def _copies_of(arrays, copies):
    """{name: names of those of its copies that are there}."""
    found = collections.defaultdict(list)
    for copy, original in copies.items():
        if copy in arrays:
            found[original].append(copy)
    return found


def _read(arrays, row, copies_of, faults):
    """Reads a tensor, as float32, and lists what is wrong with its numbers or with copies of it."""
    array, name = arrays[row.theirs], arrays.name_in_file(row.theirs)
    for copy in copies_of[row.theirs]:
        if not np.array_equal(array, arrays[copy]):
            faults.append(f"{arrays.name_in_file(copy)}: must equal {name}, since BERT ties them; they differ")
    if array.dtype != np.float32:
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinity, and is found below
            array = array.astype(np.float32)
    if bad := _count_not_finite(array):
        faults.append(f"{name}: {bad} of {array.size} numbers are not finite (NaN or infinity)")
    return array


def _count_not_finite(array):
    numbers = array.reshape(-1)
    with np.errstate(all="ignore"):
        square_sum = np.dot(numbers, numbers)
    if np.isfinite(square_sum):  # then every number is; if it is not, the squares may only have been too large
        return 0
    return int(array.size - np.count_nonzero(np.isfinite(array)))


def _random_part(row, shape, config):
    """Start values of a tensor that the source lacks, as a new layer has them, in the shape of the tensor."""
    shape = part_shape(row, shape)
    if row.ours.endswith(("/bias", "/beta")):
        start = np.zeros(shape, np.float32)
    elif row.ours.endswith("/gamma"):
        start = np.ones(shape, np.float32)
    else:
        start = np.asarray(initializer(config.initializer_range)(shape))
    return np.transpose(start) if row.operation == "transpose" else start
