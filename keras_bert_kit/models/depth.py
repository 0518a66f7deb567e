"""Where in a model its layers lie: for freezing the lower ones, and for rates that fall with depth."""

from keras_bert_kit.layers.frozen import set_trainable
from keras_bert_kit.models.encoder import BertEncoder
from keras_bert_kit.models.with_encoder import ModelWithEncoder

BERTS = (BertEncoder, ModelWithEncoder)


def layers_by_depth(model):
    """Groups the layers of a BERT model from the input to the output.

    Args:
        model: `BertEncoder`, a model of the kit on one, or any `keras.Model` with one of these among its layers.

    Returns:
        Dictionary from name to list of layers, in order: `embeddings`, `block_0`, `block_1`, …, `head` (the pooler and
        everything else of the model). Together they hold every variable of the model.

    Raises:
        ValueError: There is no encoder in the model, or there are several.
    """
    layers = [model] if isinstance(model, BERTS) else getattr(model, "layers", [])
    berts = [layer for layer in layers if isinstance(layer, BERTS)]
    if len(berts) != 1:
        raise ValueError(
            "model must be a BertEncoder, a model of the kit on one, or a Keras model with one of these among its "
            f"layers. Received: a {type(model).__name__} with {len(berts)} of them. Give the encoder itself."
        )
    (bert,) = berts
    encoder = bert.encoder if isinstance(bert, ModelWithEncoder) else bert
    head = [encoder.pooler] if encoder.pooler else []
    head += bert.heads().values() if bert is not encoder else []
    head += [layer for layer in layers if layer is not bert and layer.weights]
    blocks = {f"block_{i}": [block] for i, block in enumerate(encoder.blocks)}
    return {"embeddings": [encoder.embeddings], **blocks, "head": head}


def freeze(model, *parts, layers=()):
    """Takes parts of a model out of training, until `unfreeze`. What is trained must be settled before `Trainer`.

    Args:
        model: as in `layers_by_depth`.
        *parts: names of `layers_by_depth`, such as `"embeddings"`.
        layers: numbers of encoder blocks, such as `range(8)`, or one of them.

    Raises:
        ValueError: There is no such part, or no encoder in the model.

    Example:

    >>> freeze(classifier, "embeddings", layers=range(8))
    """
    _set_trainable(model, parts, layers, False)


def unfreeze(model, *parts, layers=()):
    """The reverse of `freeze`; without parts and layers, everything is trained again."""
    _set_trainable(model, parts, layers, True)


def rates_by_depth(model, layer_decay):
    """Learning rates that fall with depth, relative to that of the head: what lies lower changes less.

    Source: ELECTRA (Clark et al. 2020, https://arxiv.org/abs/2003.10555), `layerwise_lr_decay`, 0.8 for base.

    Args:
        model: as in `layers_by_depth`.
        layer_decay: float in (0, 1], the factor from one block to the one below; the embeddings lie below block 0.

    Returns:
        List of (variable, factor), for `create_optimizer`'s `rate_factors`.
    """
    if not 0 < layer_decay <= 1:
        raise ValueError(f"layer_decay must be above 0 and at most 1. Received: layer_decay={layer_decay}.")
    groups, factors = list(layers_by_depth(model).values()), {}
    for depth, layers in enumerate(groups):
        for variable in [variable for layer in layers for variable in layer.trainable_variables]:
            # The masked-LM head shares the word table, whose rate is that of the embeddings.
            factors.setdefault(id(variable), (variable, layer_decay ** (len(groups) - 1 - depth)))
    return list(factors.values())


def _set_trainable(model, parts, layers, trainable):
    groups = layers_by_depth(model)
    wanted = [*parts, *(f"block_{i}" for i in ([layers] if isinstance(layers, int) else layers))]
    if trainable and not wanted:
        wanted = list(groups)
    if unknown := [name for name in wanted if name not in groups]:
        raise ValueError(f"Parts of this model are {', '.join(groups)}. Received: {', '.join(unknown)}.")
    for layer in [layer for name in wanted for layer in groups[name]]:
        set_trainable(layer, trainable)
