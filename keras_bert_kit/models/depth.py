"""Where in a model its layers lie: for freezing the lower ones, and for rates that fall with depth."""


def layers_by_depth(model):
    """Groups the layers of a BERT model from the input to the output.

    Args:
        model: `BertEncoder`, or a model on one.

    Returns:
        Dictionary from name to list of layers, in order: `embeddings`, `block_0`, `block_1`, …, `head` (the pooler and
        what stands on the encoder). Together they hold every variable of the model.
    """
    encoder = getattr(model, "encoder", model)
    groups = {"embeddings": [encoder.embeddings]}
    groups |= {f"block_{i}": [block] for i, block in enumerate(encoder.blocks)}
    head = [encoder.pooler] if encoder.pooler else []
    if model is not encoder:
        head += list(model.heads().values())
    return groups | {"head": head}


def freeze(model, *parts, layers=()):
    """Takes parts of a model out of training, until `unfreeze`. What is trained must be settled before `Trainer`.

    Args:
        model: `BertEncoder`, or a model on one.
        *parts: names of `layers_by_depth`, such as `"embeddings"`.
        layers: numbers of encoder blocks, such as `range(8)`.

    Raises:
        ValueError: There is no such part.

    Example:

    >>> freeze(classifier, "embeddings", layers=range(8))
    """
    _set_trainable(model, parts, layers, False)


def unfreeze(model, *parts, layers=()):
    """The reverse of `freeze`; without parts and layers, everything is trained again."""
    everything = layers_by_depth(model) if not parts and not list(layers) else parts
    _set_trainable(model, everything, layers, True)


def rates_by_depth(model, layer_decay):
    """Learning rates that fall with depth, relative to that of the head: what lies lower changes less.

    Source: ELECTRA (Clark et al. 2020, https://arxiv.org/abs/2003.10555), `layerwise_lr_decay`, 0.8 for base.

    Args:
        model: `BertEncoder`, or a model on one.
        layer_decay: float in (0, 1], the factor from one block to the one below; the embeddings lie below block 0.

    Returns:
        List of (variable, factor), for `create_optimizer`'s `rate_factors`.
    """
    if not 0 < layer_decay <= 1:
        raise ValueError(f"layer_decay must be above 0 and at most 1. Received: layer_decay={layer_decay}.")
    groups = list(layers_by_depth(model).values())
    return [
        (variable, layer_decay ** (len(groups) - 1 - depth))
        for depth, layers in enumerate(groups)
        for layer in layers
        for variable in layer.trainable_variables
    ]


def _set_trainable(model, parts, layers, trainable):
    groups = layers_by_depth(model)
    wanted = [*parts, *(f"block_{i}" for i in layers)]
    if unknown := [name for name in wanted if name not in groups]:
        raise ValueError(f"Parts of this model are {', '.join(groups)}. Received: {', '.join(unknown)}.")
    for layer in [layer for name in wanted for layer in groups[name]]:
        layer.trainable = trainable
