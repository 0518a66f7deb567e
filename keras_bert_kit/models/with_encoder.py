"""What the models on top of an encoder share: they hold it, and are saved and opened with it."""

import keras

from keras_bert_kit.layers.frozen import freeze_inside, frozen_inside, keep_frozen
from keras_bert_kit.layers.functions import initializer
from keras_bert_kit.models.encoder import BertEncoder

# Losses that take probabilities, as `compile` has them by default: by function or by its name.
_OF_PROBABILITIES = [
    keras.losses.sparse_categorical_crossentropy,
    keras.losses.categorical_crossentropy,
    keras.losses.binary_crossentropy,
]
OF_PROBABILITIES = [*_OF_PROBABILITIES, *(function.__name__ for function in _OF_PROBABILITIES)]


class ModelWithEncoder(keras.Model):
    """Base of the models that are a `BertEncoder` and a head or two.

    Args:
        encoder: `BertEncoder`. It is used, not copied: training the model trains it.
        needs_pooler: bool, whether the model uses the pooled output.

    Raises:
        ValueError: It is no `BertEncoder`; or the model needs a pooler, and the encoder has none.
    """

    def __init__(self, encoder, needs_pooler, **kwargs):
        require_encoder(encoder)
        kwargs.setdefault("dtype", encoder.dtype_policy)
        super().__init__(**kwargs)
        if needs_pooler and not encoder.add_pooler:
            raise ValueError(
                "encoder must have a pooler. Received: an encoder with add_pooler=False, so without pooled_output. "
                "Load it with allow_missing=['pooler'] to start from a new one."
            )
        self.encoder = encoder
        self.needs_pooler = needs_pooler

    def heads(self):
        """Returns a dictionary from the name of each head, as reports of loading spell it, to its layer."""
        raise NotImplementedError

    def build(self, *_):
        """Makes the variables of the heads; their shapes follow from the encoder's config."""
        for layer in self.heads().values():
            if not layer.built:
                layer.build((None, self.encoder.config.hidden_size))
        keep_frozen(self)
        self.built = True

    @property
    def trainable_variables(self):
        """As of any Keras model, without a pooler that is there and not used: no gradient would reach it."""
        return self._without_unused_pooler(super().trainable_variables)

    @property
    def trainable_weights(self):
        """The same."""
        return self._without_unused_pooler(super().trainable_weights)

    def _without_unused_pooler(self, variables):
        unused = self.encoder.pooler.variables if self.encoder.pooler and not self.needs_pooler else []
        return [variable for variable in variables if not any(variable is one for one in unused)]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """As of any Keras model, after a look at the loss of `compile`: these models give logits.

        Raises:
            ValueError: The loss takes logits for probabilities, as Keras' losses do by default.
        """
        for loss in keras.tree.flatten(self.loss):
            if loss in OF_PROBABILITIES or getattr(loss, "from_logits", True) is False:
                raise ValueError(
                    f"The loss must take logits. Received: {loss!r}, which takes probabilities: its numbers would have "
                    "no meaning. Compile with keras.losses.SparseCategoricalCrossentropy(from_logits=True)."
                )
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def new_dense(self, num_outputs):
        """Returns a dense layer for a head, with variables (hidden, outputs) and (outputs,)."""
        start = initializer(self.encoder.config.initializer_range)
        return keras.layers.Dense(num_outputs, kernel_initializer=start, dtype=self.dtype_policy, name="logits")

    def new_dropout(self, rate):
        """Returns the dropout before a head. `rate`: float, or None for `hidden_dropout_prob` of the config."""
        rate = self.encoder.config.hidden_dropout_prob if rate is None else rate
        return keras.layers.Dropout(rate, dtype=self.dtype_policy, name="dropout")

    def get_config(self):
        """Returns the constructor's arguments, and what is frozen."""
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return super().get_config() | {"encoder": encoder, "frozen": frozen_inside(self)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Makes the model again, with its encoder and the same parts frozen."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"], custom_objects)
        arguments = {name: value for name, value in config.items() if name != "frozen"}
        model = super().from_config(arguments | {"encoder": encoder})
        freeze_inside(model, config.get("frozen", []))
        return model


def require_encoder(encoder):
    """Refuses what is no `BertEncoder`, such as all of what `load_pretrained` returns.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(encoder, BertEncoder):
        hint = " Give its .encoder." if hasattr(encoder, "encoder") else ' load_pretrained("…").encoder is one.'
        raise ValueError(f"encoder must be a BertEncoder. Received: a {type(encoder).__name__}.{hint}")


def checked_class_names(num_classes, class_names):
    """Returns the names of classes as a tuple of str; `LABEL_0`, `LABEL_1`, … where there are none.

    Args:
        num_classes: int.
        class_names: iterable of str, or None.

    Raises:
        ValueError: Fewer than two classes, or another number of different names.
    """
    names = [f"LABEL_{i}" for i in range(num_classes)] if class_names is None else list(class_names)
    if num_classes < 2 or len(names) != num_classes or len(set(names)) != num_classes:
        raise ValueError(
            "num_classes must be 2 or more, and class_names must hold that many different names. "
            f"Received: num_classes={num_classes}, class_names={names[:20]}."
        )
    return tuple(names)
