"""Other people's names for the variables of BERT, and nothing else.

A table is a list of rows (their name, our name, operation, part); `{i}` stands for the number of the encoder block.

* The operation turns their array into ours: `keep` as it is, `transpose` for dense kernels that are stored as
  (outputs, inputs), as PyTorch does.
* The part is for arrays that are one of three side by side in ours: query, key and value are columns of one kernel.
"""

from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """One tensor: its name in a file, the path of our variable, and how to get from one to the other."""

    theirs: str
    ours: str
    operation: str = "keep"
    part: int | None = None


OPERATIONS = {"keep": lambda array: array, "transpose": np.transpose}
PARTS = 3  # query, key, value


def _dense(theirs, ours, part=None):
    kernel = Row(f"{theirs}.weight", f"{ours}/kernel", "transpose", part)
    return [kernel, Row(f"{theirs}.bias", f"{ours}/bias", "keep", part)]


def _layer_norm(theirs, ours):
    return [Row(f"{theirs}.weight", f"{ours}/gamma"), Row(f"{theirs}.bias", f"{ours}/beta")]


# Hugging Face Transformers, BertModel and the heads on it. Names are those of today, without the prefix `bert.`.
HUGGING_FACE = {
    "encoder": [
        Row("embeddings.word_embeddings.weight", "encoder/embeddings/word_embeddings"),
        Row("embeddings.position_embeddings.weight", "encoder/embeddings/position_embeddings"),
        Row("embeddings.token_type_embeddings.weight", "encoder/embeddings/type_embeddings"),
        *_layer_norm("embeddings.LayerNorm", "encoder/embeddings/layer_norm"),
        *_dense("encoder.layer.{i}.attention.self.query", "encoder/block_{i}/attention/qkv", part=0),
        *_dense("encoder.layer.{i}.attention.self.key", "encoder/block_{i}/attention/qkv", part=1),
        *_dense("encoder.layer.{i}.attention.self.value", "encoder/block_{i}/attention/qkv", part=2),
        *_dense("encoder.layer.{i}.attention.output.dense", "encoder/block_{i}/attention/output"),
        *_layer_norm("encoder.layer.{i}.attention.output.LayerNorm", "encoder/block_{i}/attention_norm"),
        *_dense("encoder.layer.{i}.intermediate.dense", "encoder/block_{i}/intermediate"),
        *_dense("encoder.layer.{i}.output.dense", "encoder/block_{i}/output"),
        *_layer_norm("encoder.layer.{i}.output.LayerNorm", "encoder/block_{i}/output_norm"),
    ],
    "pooler": _dense("pooler.dense", "encoder/pooler/dense"),
    "masked_lm": [
        *_dense("cls.predictions.transform.dense", "masked_lm/dense"),
        *_layer_norm("cls.predictions.transform.LayerNorm", "masked_lm/layer_norm"),
        Row("cls.predictions.bias", "masked_lm/bias"),
    ],
    "next_sentence": _dense("cls.seq_relationship", "next_sentence/dense"),
    "classifier": _dense("classifier", "classifier"),
}

# What Hugging Face's files hold beside the weights: name, and why it is left out.
HUGGING_FACE_LEFT_OUT = {
    "embeddings.position_ids": "the numbers 0, 1, 2, …, a buffer of older versions",
    "cls.predictions.decoder.weight": "the word table once more (tied)",
    "cls.predictions.decoder.bias": "cls.predictions.bias once more",
}
# Those of them that must equal another tensor of the file, since they are left out for that reason.
HUGGING_FACE_COPIES = {
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def todays_name(name):
    """Returns a tensor's name as it is spelled today: without `bert.`, and weight and bias for gamma and beta."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def rows_for(table, groups, num_layers):
    """Lists the rows of some groups of a table, with `{i}` filled in.

    Args:
        table: dictionary of lists of `Row`, such as `HUGGING_FACE`.
        groups: keys of the table.
        num_layers: int, number of encoder blocks.
    """
    rows = []
    for row in [row for group in groups for row in table[group]]:
        layers = range(num_layers) if "{i}" in row.theirs else [0]
        rows += [row._replace(theirs=row.theirs.format(i=i), ours=row.ours.format(i=i)) for i in layers]
    return rows
