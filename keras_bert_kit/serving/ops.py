"""Which ops an exported graph may hold: those of core TensorFlow that run no foreign code and touch no file.

TF Serving, Triton and the C library know the ops of core TensorFlow and no others: a graph with an op of
tensorflow-text fails there with "Op type not registered". And a served model is a program that answers strangers:
nothing in it should run Python, open files or print.
"""

import re
from pathlib import Path

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_bert_kit.errors import ExportError

# Python callbacks, files, data pipelines, printing, remote calls; by parts of names, so that a new ReadFileV3 is met.
_UNWANTED = re.compile("PyFunc|File|Reader|Dataset|Save|Restore|Checkpoint|Summary|Debug|Print|Rpc|LoadAndRemap")


def require_core_ops(saved_model, also=()):
    """Lists the ops that serving an exported model may run, and refuses those that a server lacks or should not run.

    Args:
        saved_model: path of a SavedModel folder. Its graph is read, not run.
        also: names of other ops that it may hold, since who exported it asked for them.

    Returns:
        list of str, the names of the ops, sorted.

    Raises:
        ExportError: there are such ops; it names them.
    """
    ops = served_ops(saved_model)
    if refused := [op for op in ops if op not in also and not is_core_op(op)]:
        raise ExportError(
            "An exported graph must hold ops of core TensorFlow only, and none that runs Python, touches files or "
            f"prints. Received: {', '.join(refused)}. Write that part of the model in plain tf.* ops."
        )
    return ops


def is_core_op(op):
    """Says whether any TensorFlow server has an op and may run it.

    `tf.raw_ops` is the list of ops that TensorFlow itself publishes. Ops of libraries that happen to be loaded in this
    process are not in it.
    """
    return hasattr(tf.raw_ops, op) and not _UNWANTED.search(op)


def served_ops(saved_model):
    """Names of all ops in the graph of a SavedModel and its functions, sorted.

    Left out is what every SavedModel holds to save and restore its variables: it does read and write files, in the
    model's own folder, when the model is loaded.
    """
    content = saved_model_pb2.SavedModel.FromString((Path(saved_model) / "saved_model.pb").read_bytes())
    ops = set()
    for meta_graph in content.meta_graphs:
        graph, saver = meta_graph.graph_def, meta_graph.saver_def
        functions = {function.signature.name: function.node_def for function in graph.library.function}
        saver_names = {name.split(":")[0] for name in (saver.save_tensor_name, saver.restore_op_name)}
        saver_nodes = [node for node in graph.node if node.name in saver_names]
        for name in _functions_called(saver_nodes, functions):
            del functions[name]
        bodies = [graph.node, *functions.values()]
        ops |= {node.op for body in bodies for node in body if node.name not in saver_names}
    return sorted(ops)


def _functions_called(nodes, functions):
    """Names of the functions that nodes call, directly or through other functions."""
    called, pending = set(), list(nodes)
    while pending:
        attributes = pending.pop().attr.values()
        names = {function.name for attribute in attributes for function in (attribute.func, *attribute.list.func)}
        for name in (names & functions.keys()) - called:
            called.add(name)
            pending.extend(functions[name])
    return called
