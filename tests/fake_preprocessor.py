"""Writes what looks like a preprocessing SavedModel of TF-Hub: vocabulary, signature, names of tensorflow-text's ops.

It is made of core ops that are renamed afterwards, so it can be read, and not be run.
"""

import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "fi", "##ne", "ﬁ", "straße", "strasse", "the", "The"]
SPLITS, PIECES, FOLDS = "RegexSplitWithOffsets", "WordpieceTokenizeWithOffsets", "CaseFoldUTF8"


def write_preprocessor(folder, sequence_length=128, ops=(FOLDS, SPLITS, PIECES), bytes_per_word=100, constant="x"):
    """Writes a SavedModel.

    Args:
        folder: `pathlib.Path`.
        sequence_length: int, in the shapes of its outputs.
        ops: names of ops for its graph, at most four.
        bytes_per_word: int, the limit of the op `WordpieceTokenizeWithOffsets`.
        constant: str, a constant of the graph.
    """
    vocabulary = folder.parent / f"vocab-{folder.name}.txt"
    vocabulary.write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    module = tf.Module()
    module.table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            str(vocabulary),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        1,
    )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def preprocess(text):
        text = tf.strings.join([text, tf.constant(constant)])
        for _ in ops:
            text = tf.strings.lower(text)
        ids = tf.cast(module.table.lookup(text), tf.int32)
        return {"input_word_ids": tf.broadcast_to(ids[:, None], [tf.size(ids), sequence_length])}

    module.preprocess = preprocess
    tf.saved_model.save(module, str(folder), signatures=preprocess)
    vocabulary.unlink()
    _rename_ops(folder / "saved_model.pb", ops, bytes_per_word)


def _rename_ops(path, ops, bytes_per_word):
    model = SavedModel()
    model.ParseFromString(path.read_bytes())
    for function in model.meta_graphs[0].graph_def.library.function:
        nodes = [node for node in function.node_def if node.op == "StringLower"]
        for node, op in zip(nodes, ops, strict=False):
            node.op = op
            if op == PIECES:
                node.attr["max_bytes_per_word"].i = bytes_per_word
    path.write_bytes(model.SerializeToString())
