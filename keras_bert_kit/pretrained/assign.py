"""From named arrays to our variables, with an account of both sides before anything changes."""

import collections

import numpy as np

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained.rows import their_shape, to_ours


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


def assign(arrays, rows, variables, *, left_out, copies, source, num_heads=None):
    """Copies arrays into variables, all of them or none.

    Every array is looked at before the first variable changes, and all faults are listed in one error: tensors that
    are missing, unused, of another shape, not of floating-point numbers, or not finite.

    Args:
        arrays: mapping from their names to NumPy arrays; read twice, so that no copy of all weights is held.
        rows: list of `names.Row`, which together fill every variable.
        variables: dictionary from our paths to `keras.Variable`.
        left_out: names that are not used, for a reason that the caller reports.
        copies: dictionary from names that are left out as copies to the names that they must equal.
        source: what is being read, for messages.
        num_heads: int, attention heads, where rows split them.

    Raises:
        CheckpointError: With every fault. Nothing was assigned.
    """
    rows_by_path = collections.defaultdict(list)
    for row in rows:
        rows_by_path[row.ours].append(row)
    assert rows_by_path.keys() == variables.keys(), "names.py and the model's variables have come apart"

    faults = [fault for row in rows for fault in _faults_of(arrays, row, variables[row.ours], num_heads)]
    used = {row.theirs for row in rows}
    faults += [f"{name}: not known, would be unused" for name in arrays if name not in used and name not in left_out]
    for copy, original in copies.items():
        if copy in arrays and original in arrays and not np.array_equal(arrays[copy], arrays[original]):
            faults.append(f"{copy}: must equal {original}, since BERT ties them; they differ")
    if faults:
        raise CheckpointError(
            f"The tensors of {source} must fit the model exactly. These do not; nothing was assigned:\n  "
            + "\n  ".join(faults)
        )
    for path, variable in variables.items():
        pieces = [to_ours(row, _float32(arrays[row.theirs]), tuple(variable.shape)) for row in rows_by_path[path]]
        variable.assign(pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=-1))


def _faults_of(arrays, row, variable, num_heads):
    """What is wrong with one tensor: a list of no or one line."""
    shape = their_shape(row, tuple(variable.shape), num_heads)
    if row.theirs not in arrays:
        return [f"{row.theirs}: missing, expected with shape {shape}"]
    array = arrays[row.theirs]
    if array.shape != shape:
        return [f"{row.theirs}: expected shape {shape}, received {array.shape}"]
    if not np.issubdtype(array.dtype, np.floating) and array.dtype.name != "bfloat16":
        return [f"{row.theirs}: expected floating-point numbers, received {array.dtype}"]
    if bad := int(array.size - np.count_nonzero(np.isfinite(_float32(array)))):
        return [f"{row.theirs}: {bad} of {array.size} numbers are not finite (NaN or infinity)"]
    return []


def _float32(array):
    return array.astype(np.float32, copy=False)
