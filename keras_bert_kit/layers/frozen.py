"""What is out of training stays out of it in a saved and reopened model.

Keras saves of a layer whether it is trained as a whole. It says nothing of layers inside one that makes them itself,
and a layer that is frozen before it is built gets inner layers that are not.
"""


def set_trainable(layer, trainable):
    """Sets `layer.trainable`, and that of all layers inside, which Keras passes over if the layer has it already."""
    layer.trainable = not trainable
    layer.trainable = trainable


def keep_frozen(layer):
    """At the end of `build`: freezes what it has made, if the layer itself is frozen, as when a file is opened."""
    if not layer.trainable:
        set_trainable(layer, False)


def frozen_inside(layer):
    """Returns the frozen layers inside of one, as paths such as `"block_0/attention"`; none inside of a frozen one."""
    paths = []
    for name, inner in _layers_of(layer).items() if layer.trainable else ():
        paths += [f"{name}/{path}" for path in frozen_inside(inner)] if inner.trainable else [name]
    return paths


def freeze_inside(layer, paths):
    """The reverse: freezes the layers at these paths."""
    for path in paths:
        inner = layer
        for name in path.split("/"):
            inner = _layers_of(inner)[name]
        set_trainable(inner, False)


def _layers_of(layer):
    """The layers that one holds itself, by name."""
    return {inner.name: inner for inner in layer._flatten_layers(include_self=False, recursive=False)}
