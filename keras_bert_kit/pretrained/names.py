"""Other people's names for the variables of BERT, and nothing else.

A table is a dictionary of groups, the encoder and the heads; a group is a list of `Row` (their name, our name,
operation, part). `{i}` in a name stands for the number of the encoder block.
"""

import re

from keras_bert_kit.pretrained.rows import Row


def _dense(theirs, ours, part=None, operations=("keep", "keep"), names=("/kernel", "/bias")):
    return [
        Row(theirs + name, ours + our_name, operation, part)
        for name, our_name, operation in zip(names, ("/kernel", "/bias"), operations, strict=True)
    ]


def _linear(theirs, ours, part=None):
    return _dense(theirs, ours, part, ("transpose", "keep"), (".weight", ".bias"))


def _heads(theirs, ours, part):
    return _dense(theirs, ours, part, ("split_heads", "split_heads"))


def _norm(theirs, ours, names=("/gamma", "/beta")):
    return [Row(theirs + names[0], ours + "/gamma"), Row(theirs + names[1], ours + "/beta")]


def _torch_norm(theirs, ours):
    return _norm(theirs, ours, (".weight", ".bias"))


# Hugging Face Transformers, BertModel and the heads on it. Names are those of today, without the prefix `bert.`.
HUGGING_FACE = {
    "encoder": [
        Row("embeddings.word_embeddings.weight", "encoder/embeddings/word_embeddings"),
        Row("embeddings.position_embeddings.weight", "encoder/embeddings/position_embeddings"),
        Row("embeddings.token_type_embeddings.weight", "encoder/embeddings/type_embeddings"),
        *_torch_norm("embeddings.LayerNorm", "encoder/embeddings/layer_norm"),
        *_linear("encoder.layer.{i}.attention.self.query", "encoder/block_{i}/attention/qkv", part=0),
        *_linear("encoder.layer.{i}.attention.self.key", "encoder/block_{i}/attention/qkv", part=1),
        *_linear("encoder.layer.{i}.attention.self.value", "encoder/block_{i}/attention/qkv", part=2),
        *_linear("encoder.layer.{i}.attention.output.dense", "encoder/block_{i}/attention/output"),
        *_torch_norm("encoder.layer.{i}.attention.output.LayerNorm", "encoder/block_{i}/attention_norm"),
        *_linear("encoder.layer.{i}.intermediate.dense", "encoder/block_{i}/intermediate"),
        *_linear("encoder.layer.{i}.output.dense", "encoder/block_{i}/output"),
        *_torch_norm("encoder.layer.{i}.output.LayerNorm", "encoder/block_{i}/output_norm"),
    ],
    "pooler": _linear("pooler.dense", "encoder/pooler/dense"),
    "masked_lm": [
        *_linear("cls.predictions.transform.dense", "masked_lm/dense"),
        *_torch_norm("cls.predictions.transform.LayerNorm", "masked_lm/layer_norm"),
        Row("cls.predictions.bias", "masked_lm/bias"),
    ],
    "next_sentence": _linear("cls.seq_relationship", "next_sentence/dense"),
    # One of the three, which have one name there: `hugging_face_heads.py` finds out which.
    "classifier": _linear("classifier", "classifier"),
    "token_classifier": _linear("classifier", "token_classifier"),
    "multiple_choice": _linear("classifier", "multiple_choice"),
    "question_answering": _linear("qa_outputs", "question_answering"),
}

# What Transformers' classes for TensorFlow saved: kernels are (inputs, outputs), names are brought into one spelling.
HUGGING_FACE_TF = {group: [row._replace(operation="keep") for row in rows] for group, rows in HUGGING_FACE.items()}

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


_HUGGING_FACE_TF_SPELLINGS = (
    (r":0$", ""),
    (r"^([^/]+)/tf_bert[^/]*/(.*)$", r"\1//\2"),  # the layer that holds it, the name of the model, its own name
    (r"^(?:[^/]+//(?!bert/)|bert//)", ""),  # the masked-LM head holds the embeddings again: those keep the layer's name
    (r"\b(?:mlm|nsp)___cls/", "cls/"),
    (r"/layer_\._(\d+)/", r"/layer/\1/"),
    (r"/(?:kernel|gamma|embeddings)$", "/weight"),
    (r"/beta$", "/bias"),
    (r"^bert/", ""),
    (r"(?<!/)/(?!/)", "."),
)


def hugging_face_tf_name(path):
    """Returns a tensor's name in today's spelling from its path in a `tf_model.h5`.

    >>> hugging_face_tf_name("bert/tf_bert_model/bert/pooler/dense/kernel:0")
    'pooler.dense.weight'
    >>> hugging_face_tf_name("mlm___cls/tf_bert_for_masked_lm/bert/embeddings/LayerNorm/beta:0")
    'cls//bert.embeddings.LayerNorm.bias'
    """
    for pattern, today in _HUGGING_FACE_TF_SPELLINGS:
        path = re.sub(pattern, today, path)
    return path


# The original BERT, google-research/bert: names in its TF1 checkpoints. `output_weights` is run_classifier.py's,
# `cls/squad` run_squad.py's.
GOOGLE = {
    "encoder": [
        Row("bert/embeddings/word_embeddings", "encoder/embeddings/word_embeddings"),
        Row("bert/embeddings/position_embeddings", "encoder/embeddings/position_embeddings"),
        Row("bert/embeddings/token_type_embeddings", "encoder/embeddings/type_embeddings"),
        *_norm("bert/embeddings/LayerNorm", "encoder/embeddings/layer_norm"),
        *_dense("bert/encoder/layer_{i}/attention/self/query", "encoder/block_{i}/attention/qkv", part=0),
        *_dense("bert/encoder/layer_{i}/attention/self/key", "encoder/block_{i}/attention/qkv", part=1),
        *_dense("bert/encoder/layer_{i}/attention/self/value", "encoder/block_{i}/attention/qkv", part=2),
        *_dense("bert/encoder/layer_{i}/attention/output/dense", "encoder/block_{i}/attention/output"),
        *_norm("bert/encoder/layer_{i}/attention/output/LayerNorm", "encoder/block_{i}/attention_norm"),
        *_dense("bert/encoder/layer_{i}/intermediate/dense", "encoder/block_{i}/intermediate"),
        *_dense("bert/encoder/layer_{i}/output/dense", "encoder/block_{i}/output"),
        *_norm("bert/encoder/layer_{i}/output/LayerNorm", "encoder/block_{i}/output_norm"),
    ],
    "pooler": _dense("bert/pooler/dense", "encoder/pooler/dense"),
    "masked_lm": [
        *_dense("cls/predictions/transform/dense", "masked_lm/dense"),
        *_norm("cls/predictions/transform/LayerNorm", "masked_lm/layer_norm"),
        Row("cls/predictions/output_bias", "masked_lm/bias"),
    ],
    "next_sentence": [
        Row("cls/seq_relationship/output_weights", "next_sentence/dense/kernel", "transpose"),
        Row("cls/seq_relationship/output_bias", "next_sentence/dense/bias"),
    ],
    "classifier": [
        Row("output_weights", "classifier/kernel", "transpose"),
        Row("output_bias", "classifier/bias"),
    ],
    "question_answering": [
        Row("cls/squad/output_weights", "question_answering/kernel", "transpose"),
        Row("cls/squad/output_bias", "question_answering/bias"),
    ],
}


def tf1_hub_name(name):
    """Returns the original BERT's name of a variable in a TF1 module, which may stand under `module/` there."""
    return re.sub(r"^module(_\d+)?/(?=bert/|cls/)", "", name)


# TF-Models (tensorflow/models, official/nlp): full names of variables in its checkpoints and in TF-Hub's SavedModels.
TF_MODELS = {
    "encoder": [
        Row("word_embeddings/embeddings", "encoder/embeddings/word_embeddings"),
        Row("position_embedding/embeddings", "encoder/embeddings/position_embeddings"),
        Row("type_embeddings/embeddings", "encoder/embeddings/type_embeddings"),
        *_norm("embeddings/layer_norm", "encoder/embeddings/layer_norm"),
        *_heads("transformer/layer_{i}/self_attention/query", "encoder/block_{i}/attention/qkv", part=0),
        *_heads("transformer/layer_{i}/self_attention/key", "encoder/block_{i}/attention/qkv", part=1),
        *_heads("transformer/layer_{i}/self_attention/value", "encoder/block_{i}/attention/qkv", part=2),
        *_dense(
            "transformer/layer_{i}/self_attention/attention_output",
            "encoder/block_{i}/attention/output",
            operations=("split_input_heads", "keep"),
        ),
        *_norm("transformer/layer_{i}/self_attention_layer_norm", "encoder/block_{i}/attention_norm"),
        *_dense("transformer/layer_{i}/intermediate", "encoder/block_{i}/intermediate"),
        *_dense("transformer/layer_{i}/output", "encoder/block_{i}/output"),
        *_norm("transformer/layer_{i}/output_layer_norm", "encoder/block_{i}/output_norm"),
    ],
    "pooler": _dense("pooler_transform", "encoder/pooler/dense"),
    "masked_lm": [
        *_dense("cls/predictions/transform/dense", "masked_lm/dense"),
        *_norm("cls/predictions/transform/LayerNorm", "masked_lm/layer_norm"),
        Row("cls/predictions/output_bias/bias", "masked_lm/bias"),
    ],
}

# How TF-Models spelled names before 2020, and what stood before them: pattern, today's spelling.
_TF_MODELS_SPELLINGS = (
    (r"^.*/?cls/predictions/", "cls/predictions/"),
    (r"^bert_model/", ""),
    (r"^embedding_postprocessor/type_embeddings$", "type_embeddings/embeddings"),
    (r"^embedding_postprocessor/position_embeddings$", "position_embedding/embeddings"),
    (r"^embedding_postprocessor/layer_norm/", "embeddings/layer_norm/"),
    (r"^encoder/layer_", "transformer/layer_"),
    (r"/self_attention_output/", "/self_attention/attention_output/"),
)


def tf_models_name(name):
    """Returns the name of one of TF-Models' variables as it is spelled today."""
    for pattern, today in _TF_MODELS_SPELLINGS:
        name = re.sub(pattern, today, name)
    return name


def todays_name(name):
    """Returns a tensor's name as it is spelled today: without `module.` and `bert.`, and weight and bias for gamma
    and beta."""
    name = name.removeprefix("module.").removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


# keras-hub: paths in the HDF5 files of a preset; `task:` stands before those of the task's own file.
_BLOCK = "layers/transformer_encoder_{i}"
_SPLIT = ("split_heads", "split_heads")
_VARS = ("/vars/0", "/vars/1")
KERAS_HUB = {
    "encoder": [
        Row("layers/reversible_embedding/vars/0", "encoder/embeddings/word_embeddings"),
        Row("layers/position_embedding/vars/0", "encoder/embeddings/position_embeddings"),
        Row("layers/embedding/vars/0", "encoder/embeddings/type_embeddings"),
        *_norm("layers/layer_normalization", "encoder/embeddings/layer_norm", _VARS),
        *_dense(f"{_BLOCK}/_self_attention_layer/query_dense", "encoder/block_{i}/attention/qkv", 0, _SPLIT, _VARS),
        *_dense(f"{_BLOCK}/_self_attention_layer/key_dense", "encoder/block_{i}/attention/qkv", 1, _SPLIT, _VARS),
        *_dense(f"{_BLOCK}/_self_attention_layer/value_dense", "encoder/block_{i}/attention/qkv", 2, _SPLIT, _VARS),
        *_dense(
            f"{_BLOCK}/_self_attention_layer/output_dense",
            "encoder/block_{i}/attention/output",
            operations=("split_input_heads", "keep"),
            names=_VARS,
        ),
        *_norm(f"{_BLOCK}/_self_attention_layer_norm", "encoder/block_{i}/attention_norm", _VARS),
        *_dense(f"{_BLOCK}/_feedforward_intermediate_dense", "encoder/block_{i}/intermediate", names=_VARS),
        *_dense(f"{_BLOCK}/_feedforward_output_dense", "encoder/block_{i}/output", names=_VARS),
        *_norm(f"{_BLOCK}/_feedforward_layer_norm", "encoder/block_{i}/output_norm", _VARS),
    ],
    "pooler": _dense("layers/dense", "encoder/pooler/dense", names=_VARS),
    "masked_lm": [
        *_dense("task:layers/masked_lm_head/_intermediate_dense", "masked_lm/dense", names=_VARS),
        *_norm("task:layers/masked_lm_head/_intermediate_layer_norm", "masked_lm/layer_norm", _VARS),
        Row("task:layers/masked_lm_head/vars/0", "masked_lm/bias"),
    ],
    "classifier": _dense("task:layers/dense", "classifier", names=_VARS),
}


def keras_hub_name(path):
    """Returns the path of a dataset of keras-hub with a number for the first block too, which has none there."""
    return path.replace("layers/transformer_encoder/", "layers/transformer_encoder_0/")


def keras_hub_path(name):
    """Returns the path of a dataset as keras-hub has it: the reverse of `keras_hub_name`."""
    return name.replace("layers/transformer_encoder_0/", "layers/transformer_encoder/")


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


def heads_in(table, names):
    """Lists the groups of a table, besides the encoder, of which at least one tensor is there."""
    return [group for group in table if group != "encoder" and any(row.theirs in names for row in table[group])]
