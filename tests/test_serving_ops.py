"""Which ops an exported graph may hold."""

import pytest
import tensorflow as tf

from keras_bert_kit.errors import ExportError
from keras_bert_kit.serving.ops import is_core_op, require_core_ops, served_ops


def saved(function, path, **tracked):
    """Writes a SavedModel with one signature from text to numbers."""
    module = tf.Module()
    for name, value in tracked.items():
        setattr(module, name, value)
    signature = tf.function(function, input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    tf.saved_model.save(module, str(path), signatures={"serving_default": signature})
    return path


@pytest.mark.parametrize("op", ["MatMul", "UnicodeDecode", "StatelessWhile", "LookupTableFindV2", "Assert", "Const"])
def test_core_ops(op):
    assert is_core_op(op)


@pytest.mark.parametrize(
    "op",
    ["PyFunc", "EagerPyFunc", "ReadFile", "WriteFile", "MatchingFiles", "TextLineDataset", "RestoreV2", "PrintV2"]
    + ["InitializeTableFromTextFileV2", "TFText>RoundRobinTrim", "CaseFoldUTF8", "FastWordpieceTokenizeWithOffsets"],
)
def test_other_ops(op):
    assert not is_core_op(op)


def test_ops_inside_functions_are_found(tmp_path):
    def lengths(text):
        return {"length": tf.map_fn(lambda one: tf.strings.length(one), text, fn_output_signature=tf.int32)}

    ops = require_core_ops(saved(lengths, tmp_path / "model"))
    assert {"StringLength", "Placeholder"} <= set(ops)
    assert not {"SaveV2", "RestoreV2", "MergeV2Checkpoints"} & set(ops), "the saver of every SavedModel is left out"


def test_ops_inside_branches_are_refused(tmp_path):
    def sizes(text):
        content = tf.cond(tf.size(text) > 0, lambda: tf.io.read_file(text[0]), lambda: tf.constant(""))
        tf.print(content)
        return {"size": tf.strings.length(content)}

    with pytest.raises(ExportError, match="Received: PrintV2, ReadFile. Write that part of the model in plain"):
        require_core_ops(saved(sizes, tmp_path / "model"))


def test_saver_with_variables_is_left_out(tmp_path):
    weight = tf.Variable([1.0])
    ops = served_ops(saved(lambda text: {"weight": weight + 0.0}, tmp_path / "model", weight=weight))
    assert "ReadVariableOp" in ops and "RestoreV2" not in ops
