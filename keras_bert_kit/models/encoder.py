"""`BertEncoder`: ids in, vectors out, under the names of TF-Hub's BERT encoders."""

import keras
import tensorflow as tf

from keras_bert_kit.config import BertConfig
from keras_bert_kit.layers import BertEmbeddings, EncoderBlock, Pooler, TokenLayout, separate_sequences
from keras_bert_kit.layers.frozen import freeze_inside, frozen_inside, keep_frozen
from keras_bert_kit.layers.functions import require_below, shape_of

ENCODER_INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
SEQUENCE_IDS = "input_sequence_ids"  # of packed rows

# In training without padding, sequences and the flat list of tokens are filled up to multiples of these.
SEQUENCE_MULTIPLE, TOKENS_MULTIPLE = 16, 64


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertEncoder(keras.Model):
    """Embeddings, then a stack of encoder blocks, then the pooler. Takes the place of `hub.KerasLayer` in Keras 3.

    Its variables exist as soon as it is made, random until weights are loaded (`load_pretrained`).

    Args:
        config: `BertConfig`, or a dictionary of its fields.
        add_pooler: bool, whether there is a pooler. Without one there is no `pooled_output`. Some checkpoints hold
            none, for example those of question answering.
        empty: bool, whether embeddings and blocks start as zeros instead of random numbers, which costs neither time
            nor memory: for a loader, which replaces them all.

    Call arguments:
        inputs: dictionary of int tensors (batch, sequence), as `BertPacker` makes them:
            `input_word_ids` (ids of word pieces), `input_mask` (1 for tokens, 0 for padding), `input_type_ids`
            (0 for the first segment, 1 for the second). For rows into which several sequences were packed, also
            `input_sequence_ids`, such as 1, 1, 2, 2, 2, 0 (`separate_sequences`): each sequence gives what it gives
            alone, except for the pooled output, which is that of the first of the row.
        training: bool, whether dropout is on.
        return_hidden_states: bool, adds `hidden_states`.
        return_attention_scores: bool, adds `attention_scores`.
        only: for heads that do not look at all outputs, so that the rest need not be computed. "tokens": padding is
            left out; `sequence_output` is 0 there, and there are no outputs but it, `pooled_output` and `default`.
            "pooled_output": that alone, for which the last block computes [CLS] alone, from all tokens. Default: all.
        at: int tensor (batch, picked), in the place of `only`: the positions that a head looks at, each in
            [0, sequence). The last block computes these alone, from all tokens, and there is no output but
            `sequence_output`, (batch, picked, hidden). What it gives at padding has no meaning.

    Returns:
        Dictionary of float tensors:
            `pooled_output`: (batch, hidden), tanh of a dense layer on [CLS]. Not an average.
            `default`: the same tensor, as in TF-Hub's encoders.
            `sequence_output`: (batch, sequence, hidden), of the last block.
            `encoder_outputs`: list of (batch, sequence, hidden), one per block; the last is `sequence_output`.
            `hidden_states`: if asked for, the output of the embeddings followed by `encoder_outputs`.
            `attention_scores`: if asked for, list of (batch, heads, sequence, sequence), one per block.

    Raises:
        ValueError: A tensor is missing or has not two axes, `only` is something else, or `only` and `at` are given.
        tf.errors.InvalidArgumentError: A position of `at` is outside of the sequence.

    Source: https://arxiv.org/abs/1810.04805; the dictionary is that of `export_tfhub_lib.py` in tensorflow/models.

    Example:

    >>> bert = BertEncoder(BertConfig(vocab_size=100, hidden_size=16, num_hidden_layers=2, num_attention_heads=2))
    >>> ids = tf.ones((1, 5), tf.int32)
    >>> bert({"input_word_ids": ids, "input_mask": ids, "input_type_ids": 0 * ids})["pooled_output"].shape
    TensorShape([1, 16])
    """

    block_class = EncoderBlock  # what the stack is made of

    def __init__(self, config, add_pooler=True, empty=False, **kwargs):
        super().__init__(**kwargs)
        self.config = config if isinstance(config, BertConfig) else BertConfig(**config)
        self.add_pooler = add_pooler
        sizes, policy = self.config, self.dtype_policy
        initializer_range = 0.0 if empty else sizes.initializer_range
        self.embeddings = BertEmbeddings(
            sizes.vocab_size,
            sizes.hidden_size,
            sizes.max_position_embeddings,
            sizes.type_vocab_size,
            sizes.hidden_dropout_prob,
            sizes.layer_norm_eps,
            initializer_range,
            dtype=policy,
            name="embeddings",
        )
        self.blocks = [
            self.block_class(
                sizes.num_attention_heads,
                sizes.intermediate_size,
                sizes.hidden_act,
                sizes.hidden_dropout_prob,
                sizes.attention_probs_dropout_prob,
                sizes.layer_norm_eps,
                initializer_range,
                dtype=policy,
                name=f"block_{i}",
            )
            for i in range(sizes.num_hidden_layers)
        ]
        self.pooler = Pooler(sizes.initializer_range, dtype=policy, name="pooler") if add_pooler else None
        self.build()

    def build(self, *_):
        """Makes all variables; their shapes follow from the config alone."""
        self.embeddings.build()
        for block in self.blocks:
            block.build((None, None, self.config.hidden_size))
        if self.pooler:
            self.pooler.build((None, None, self.config.hidden_size))
        keep_frozen(self)
        self.built = True

    @property
    def gradient_checkpointing(self):
        """Whether each block keeps only its inputs for the backward pass, and computes the rest once more: a fraction
        of the memory, about a third more time. A switch for training; it is not saved."""
        return self.blocks[0].gradient_checkpointing

    @gradient_checkpointing.setter
    def gradient_checkpointing(self, on):
        for block in self.blocks:
            block.gradient_checkpointing = on

    def call(
        self,
        inputs,
        training=None,
        return_hidden_states=False,
        return_attention_scores=False,
        only=None,
        at=None,
    ):
        """See the class."""
        if only is not None or at is not None:
            return self._call_without_padding(inputs, training, only, at)
        word_ids, mask, type_ids = require_inputs(inputs, ENCODER_INPUTS)
        mask = tf.cast(mask, tf.bool)  # Keras carries it along with the outputs, for losses, metrics and later layers
        positions = None
        if SEQUENCE_IDS in inputs:
            mask, positions = separate_sequences(*require_inputs(inputs, [SEQUENCE_IDS]), mask)
        embedded = hidden = self.embeddings(word_ids, type_ids, positions, training=training)
        encoder_outputs, attention_scores = [], []
        for block in self.blocks:
            hidden, scores = block(hidden, mask=mask, training=training, return_attention_scores=True)
            encoder_outputs.append(hidden)
            attention_scores.append(scores)

        outputs = {"sequence_output": hidden, "encoder_outputs": encoder_outputs}
        if self.pooler:
            outputs["pooled_output"] = outputs["default"] = self.pooler(hidden)
        if return_hidden_states:
            outputs["hidden_states"] = [embedded, *encoder_outputs]
        if return_attention_scores:
            outputs["attention_scores"] = attention_scores
        return outputs

    def _call_without_padding(self, inputs, training, only, at):
        """The outputs that heads need, from tokens in one flat list through all blocks."""
        self._require_choice(only, at)
        packed = isinstance(inputs, dict) and SEQUENCE_IDS in inputs
        tensors = require_inputs(inputs, [*ENCODER_INPUTS, SEQUENCE_IDS] if packed else ENCODER_INPUTS)
        sequence = shape_of(tensors[0])[1]
        if training:  # the functions of layers/fused.py are compiled for each shape, so there shall be few of them
            tensors = [_widened(tensor, SEQUENCE_MULTIPLE, self.config.max_position_embeddings) for tensor in tensors]
        word_ids, token_mask, type_ids = tensors[0], tf.cast(tensors[1], tf.bool), tensors[2]
        if packed:
            mask, positions = separate_sequences(tensors[3], token_mask)
        else:
            mask, positions = token_mask, tf.broadcast_to(tf.range(tf.shape(word_ids)[1]), tf.shape(word_ids))
        layout = self.layout_of(token_mask, training)

        one_row = [layout.flat(ids)[tf.newaxis] for ids in (word_ids, type_ids, positions)]  # each (1, T)
        tokens = self.embeddings(*one_row, training=training)[0]  # (T, D)
        for block in self.blocks[:-1]:
            tokens = block(tokens, mask=mask, layout=layout, training=training)
        if only == "pooled_output":
            at = tf.zeros([layout.batch, 1], tf.int32)  # [CLS]
        elif at is not None:
            at = require_below(at, sequence, "at", "the length of the sequence")
        tokens = self.blocks[-1](tokens, mask=mask, layout=layout, training=training, at=at)
        if at is not None:
            picked = tf.reshape(tokens, (*shape_of(at), tokens.shape[-1]))  # (B, P, D)
            return {only: self.pooler(picked)} if only else {"sequence_output": picked}
        hidden = tf.where(token_mask[..., tf.newaxis], layout.padded(tokens), tf.zeros([], tokens.dtype))  # (B, S, D)
        outputs = {"sequence_output": hidden[:, :sequence]}
        if self.pooler:
            outputs["pooled_output"] = outputs["default"] = self.pooler(hidden)
        return outputs

    def layout_of(self, mask, training):
        """Returns the `TokenLayout` of a boolean mask (batch, sequence): where tokens are, and what is left out."""
        if _needs_static_shapes():
            return TokenLayout(*shape_of(mask))
        return TokenLayout.without_padding(mask, TOKENS_MULTIPLE if training else 1)

    def _require_choice(self, only, at):
        """Refuses an unknown `only`, one that the encoder cannot give, and both."""
        if at is not None and only is not None:
            raise ValueError(f"only and at exclude each other: say what to compute by one. Received: only={only!r}.")
        if at is None and (only not in ("tokens", "pooled_output") or only == "pooled_output" and not self.pooler):
            pooler = "with a pooler" if self.pooler else "without a pooler"
            raise ValueError(
                "only must be None, 'tokens', or, of an encoder with a pooler, 'pooled_output'. "
                f"Received: only={only!r}, an encoder {pooler}."
            )

    def get_config(self):
        """Returns the constructor's arguments, and what is frozen."""
        config = {"config": self.config.to_dict(), "add_pooler": self.add_pooler}
        return super().get_config() | config | {"frozen": frozen_inside(self)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Makes the encoder again, with the same parts frozen."""
        arguments = {name: value for name, value in config.items() if name != "frozen"}
        encoder = super().from_config(arguments, custom_objects)
        freeze_inside(encoder, config.get("frozen", []))
        return encoder


def _needs_static_shapes():
    """Says whether shapes must be known when the program is compiled, as on a TPU; then padding is computed too."""
    return isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)


def _require_one_shape(names, tensors):
    """Returns the tensors, after a check that runs in graphs too: a mask that is too short would let others be seen."""
    shapes, named = [tensor.shape for tensor in tensors], ", ".join(names)
    if not all(shape.is_compatible_with(shapes[0]) for shape in shapes):
        received = ", ".join(map(str, shapes))
        raise ValueError(f"{named} must have one shape, an entry for each token. Received: the shapes {received}.")
    if all(shape.is_fully_defined() for shape in shapes):
        return tensors
    first, *others = map(tf.shape, tensors)
    same = tf.reduce_all([tf.reduce_all(first == other) for other in others])
    message = [f"{named} must have one shape, an entry for each token. Received: the shapes ", first, *others]
    with tf.control_dependencies([tf.debugging.Assert(same, message)]):
        return [tf.identity(tensor) for tensor in tensors]


def _widened(tensor, multiple, longest):
    """Adds padding to rows, up to a multiple of so many places, and at most the longest sequence."""
    sequence = tf.shape(tensor)[1]
    wanted = tf.maximum(sequence, tf.minimum(-(-sequence // multiple) * multiple, longest))
    return tf.pad(tensor, [[0, 0], [0, wanted - sequence]])


def require_inputs(inputs, names, axes=("batch", "sequence")):
    """Takes the named tensors out of a dictionary, after checks.

    Args:
        inputs: dictionary of tensors or NumPy arrays.
        names: the keys needed; others are not looked at.
        axes: tuple of str, the axes that each tensor must have.

    Returns:
        List of int32 tensors of one shape, in the order of `names`.

    Raises:
        ValueError: Not a dictionary, a key is missing, or a tensor has other axes, or another shape than the first.
        tf.errors.InvalidArgumentError: The same, where shapes are known only when it runs.
    """
    if not isinstance(inputs, dict):
        raise ValueError(
            f"inputs must be a dictionary with the keys {', '.join(names)}. Received: a {type(inputs).__name__}. "
            "BertPacker makes it from text; for the list of TF-Hub's first versions write dict(zip(keys, tensors))."
        )
    if missing := [name for name in names if name not in inputs]:
        raise ValueError(
            f"inputs must hold the keys {', '.join(names)}. Received: {', '.join(inputs) or 'none'}; "
            f"missing: {', '.join(missing)}. BertPacker makes them from text."
        )
    tensors = [tf.convert_to_tensor(inputs[name]) for name in names]
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.shape.rank != len(axes):
            raise ValueError(
                f"{name} must have the axes ({', '.join(axes)}). Received: shape {tensor.shape}. "
                "A single text needs a batch axis too: ids[None]."
            )
    tensors = _require_one_shape(names, tensors)
    # Keras traces models with float placeholders under a distribution strategy, so floats are cast, not refused.
    return [tf.cast(tensor, tf.int32) for tensor in tensors]
