"""The weights of our models under other people's names: what the writers of other formats begin with."""

import numpy as np

from keras_bert_kit.models import BertEncoder
from keras_bert_kit.pretrained.assign import variables_of
from keras_bert_kit.pretrained.names import rows_for
from keras_bert_kit.pretrained.rows import to_theirs


def encoder_of(model):
    """Returns the encoder in a model, or the encoder itself."""
    return model if isinstance(model, BertEncoder) else model.encoder


def heads_of(model, table=None):
    """Lists the heads of a model under the names that `LoadReport` has for them; given a table, those that it has."""
    pooler = ["pooler"] if encoder_of(model).add_pooler else []
    heads = pooler + list({} if isinstance(model, BertEncoder) else model.heads())
    return [head for head in heads if table is None or head in table]


def variables_in(model):
    """Returns {our path: `keras.Variable`} of an encoder, or of a model on one."""
    return variables_of(encoder_of(model), *([] if isinstance(model, BertEncoder) else [model]))


def tensors_of(model, table):
    """Returns a model's weights under the names of a table: {name: float32 array}.

    Args:
        model: `BertEncoder`, or a model on one.
        table: dictionary of lists of `Row`, such as `names.GOOGLE`. Heads that it does not know are left out, which
            `save_pretrained` sees to.
    """
    variables, sizes = variables_in(model), encoder_of(model).config
    return {
        row.theirs: to_theirs(row, np.asarray(variables[row.ours], dtype=np.float32), sizes.num_attention_heads)
        for row in rows_for(table, ["encoder", *heads_of(model, table)], sizes.num_hidden_layers)
    }
