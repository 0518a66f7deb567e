"""From named arrays to our variables, and the numbers in them looked at on the way."""

import collections

import numpy as np

from keras_bert_kit.layers.functions import initializer
from keras_bert_kit.memory import as_tensor, copy_into, is_for_tensorflow, new_array
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


def start_values(plan, config):
    """Returns {row: array} with random numbers for the tensors that a source may lack, as a new layer has them.

    Args:
        plan: `check.Plan`.
        config: `BertConfig`.
    """
    return {row: _random_tensor(row, part_shape(row, plan.shapes[row.ours]), config) for row in plan.missing}


def read_arrays(arrays, plan, copies, starts):
    """Reads the tensors of a plan into arrays as our variables are, and looks at every number on the way.

    Args:
        arrays: `NamedArrays`.
        plan: `check.Plan`. If something in it does not fit, numbers are looked at, and no array is kept.
        copies: dictionary from names that are left out as copies to the names that they must equal.
        starts: dictionary from rows to arrays, of `start_values`.

    Returns:
        Pair of a dictionary from our paths to float32 arrays, and a list of faults: numbers that are not finite, and
        copies that differ.
    """
    copies_of, rows_by_path, faults = _copies_of(arrays, copies), collections.defaultdict(list), []
    for row in [*plan.rows, *starts]:
        rows_by_path[row.ours].append(row)
    filled = {}
    for path, rows in rows_by_path.items():
        shape = plan.shapes[path]  # of the variable
        tensors = (starts[row] if row in starts else _read(arrays, row, copies_of, faults) for row in rows)
        array = _as_one(zip(rows, tensors, strict=True), shape)
        if not plan.faults:
            filled[path] = array
    return filled, faults


def assign(filled, variables):
    """Fills all variables of a new model. Their memory becomes that of the arrays, so that nothing is there twice.

    Args:
        filled: dictionary from our paths to arrays, which is empty afterwards.
        variables: dictionary from our paths to `keras.Variable`.
    """
    shapes = {path: tuple(variable.shape) for path, variable in variables.items()}
    assert shapes == {path: array.shape for path, array in filled.items()}, "shapes.py is not as the models are"
    for path, variable in variables.items():
        variable.assign(as_tensor(filled.pop(path)))


def _as_one(parts, shape):
    """The array of a variable from pairs of a row and the array of its tensor, one at a time in memory."""
    whole = None
    for row, array in parts:
        ours = to_ours(row, array, shape)
        if row.part is None and is_for_tensorflow(ours):
            return ours
        whole = new_array(shape) if whole is None else whole
        copy_into(part_of(row, whole), ours)
    return whole


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
    with np.errstate(all="ignore"):
        total = array.sum()
    if np.isfinite(total):  # then every number is; if it is not, the sum may only have been too large
        return 0
    return int(array.size - np.count_nonzero(np.isfinite(array)))


def _random_tensor(row, shape, config):
    if row.ours.endswith(("/bias", "/beta")):
        start = np.zeros(shape, np.float32)
    elif row.ours.endswith("/gamma"):
        start = np.ones(shape, np.float32)
    else:
        start = np.asarray(initializer(config.initializer_range)(shape))
    return np.transpose(start) if row.operation == "transpose" else start
