"""The shapes of all variables of a model, from its configuration alone: what a file must fit before a model is made."""


def shapes_of(config, heads, num_classes=None):
    """Returns {our path: shape} of the encoder and of heads on it; equals those of the variables that a model has.

    Args:
        config: `BertConfig`.
        heads: iterable of str, as `LoadReport.heads`.
        num_classes: int, where one of the heads is `classifier` or `token_classifier`.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    shapes = {
        "encoder/embeddings/word_embeddings": (config.vocab_size, hidden),
        "encoder/embeddings/position_embeddings": (config.max_position_embeddings, hidden),
        "encoder/embeddings/type_embeddings": (config.type_vocab_size, hidden),
        **_norm("encoder/embeddings/layer_norm", hidden),
    }
    for i in range(config.num_hidden_layers):
        block = f"encoder/block_{i}"
        shapes |= _dense(f"{block}/attention/qkv", hidden, 3 * hidden)
        shapes |= _dense(f"{block}/attention/output", hidden, hidden)
        shapes |= _norm(f"{block}/attention_norm", hidden)
        shapes |= _dense(f"{block}/intermediate", hidden, inner)
        shapes |= _dense(f"{block}/output", inner, hidden)
        shapes |= _norm(f"{block}/output_norm", hidden)
    of_heads = {
        "pooler": lambda: _dense("encoder/pooler/dense", hidden, hidden),
        "masked_lm": lambda: {
            **_dense("masked_lm/dense", hidden, hidden),
            **_norm("masked_lm/layer_norm", hidden),
            "masked_lm/bias": (config.vocab_size,),
        },
        "next_sentence": lambda: _dense("next_sentence/dense", hidden, 2),
        "classifier": lambda: _dense("classifier", hidden, num_classes),
        "token_classifier": lambda: _dense("token_classifier", hidden, num_classes),
        "question_answering": lambda: _dense("question_answering", hidden, 2),
        "multiple_choice": lambda: _dense("multiple_choice", hidden, 1),
    }
    for head in heads:
        shapes |= of_heads[head]()
    return shapes


def _dense(path, inputs, outputs):
    return {f"{path}/kernel": (inputs, outputs), f"{path}/bias": (outputs,)}


def _norm(path, hidden):
    return {f"{path}/gamma": (hidden,), f"{path}/beta": (hidden,)}
