"""Writes an encoder as a SavedModel with the interface of TF-Hub's BERT encoders, version 3 and 4.

`tf.saved_model.load` and `hub.KerasLayer` open it where neither the kit nor Keras is installed. Its variables are those
of TF-Models, by name and shape; query, key and value are put side by side in the graph, for our layers to run on them.
"""

import collections

import keras
import numpy as np
import tensorflow as tf

from keras_bert_kit.files import folder_written_beside, sha256_of
from keras_bert_kit.models import ENCODER_INPUTS, BertPretrainer
from keras_bert_kit.pretrained.kit_file import KIT_FILE, write_kit_file
from keras_bert_kit.pretrained.names import TF_MODELS, rows_for
from keras_bert_kit.pretrained.rows import PARTS
from keras_bert_kit.pretrained.tensors import encoder_of, heads_of, tensors_of, variables_in
from keras_bert_kit.text import write_vocabulary

VOCABULARY = "vocab.txt"  # the name of the asset
_POSITIONS = "masked_lm_positions"
_SERVED = ("pooled_output", "sequence_output", "mlm_logits")  # a signature returns tensors, and no list of them


def write_tf_hub(model, path, tokenizer):
    """Writes `saved_model.pb`, `variables/` and `assets/` with the vocabulary and a `kit.json`.

    What `tf.saved_model.load` gives is called with a dictionary of `input_word_ids`, `input_mask` and `input_type_ids`,
    int32 (batch, sequence), and perhaps `training=True`; it returns what `BertEncoder` does. It has `vocab_file`,
    `do_lower_case`, `variables`, `trainable_variables`, `regularization_losses` and a signature `serving_default`.
    A pretrainer adds `.mlm`, which also takes `masked_lm_positions` and also returns `mlm_logits`.

    Args:
        model: `BertEncoder` with a pooler, or `BertPretrainer` on one without next-sentence head.
        path: `pathlib.Path` of the folder; it must not exist, or be empty. It is whole or absent, never in between.
        tokenizer: the `BertTokenizer` that the model was trained with.

    Raises:
        ValueError: The encoder has no pooler, or computes in another dtype than float32.
    """
    encoder = encoder_of(model)
    if not encoder.add_pooler:
        raise ValueError(
            "format='tf-hub' needs an encoder with a pooler, since pooled_output is part of TF-Hub's interface. "
            "Received: add_pooler=False. Save with format='hf', or load with allow_missing=['pooler'] for a new one."
        )
    if encoder.dtype_policy.name != "float32":
        raise ValueError(
            "format='tf-hub' needs a model that computes in float32, as TF-Hub's do. "
            f"Received: {encoder.dtype_policy.name}. Load it with dtype='float32' first."
        )
    masked_lm = model.masked_lm if isinstance(model, BertPretrainer) else None
    with folder_written_beside(path) as folder:
        assets = folder / "assets"
        assets.mkdir()
        write_vocabulary(tokenizer.vocabulary, assets / VOCABULARY)
        head = {"activation": masked_lm.activation, "epsilon": masked_lm.epsilon} if masked_lm else None
        checksums = {VOCABULARY: sha256_of(assets / VOCABULARY)}  # variables have checksums of their own
        write_kit_file(assets / KIT_FILE, tokenizer, config=encoder.config.to_dict(), masked_lm=head, sha256=checksums)
        variables = {name: _variable(name, array) for name, array in tensors_of(model, TF_MODELS).items()}
        root = _reusable(encoder, variables, ENCODER_INPUTS)
        root.vocab_file = tf.saved_model.Asset(str(assets / VOCABULARY))
        root.kit_file = tf.saved_model.Asset(str(assets / KIT_FILE))
        root.do_lower_case = tf.Variable(tokenizer.lowercase, trainable=False, name="do_lower_case")
        if masked_lm:
            root.mlm = _reusable(model, variables, (*ENCODER_INPUTS, _POSITIONS))
        tf.saved_model.save(root, str(folder), signatures={"serving_default": root.serving})


def _reusable(model, variables, inputs):
    """An object with the interface of reusable SavedModels, https://www.tensorflow.org/hub/reusable_saved_models.

    Args:
        model: the encoder, or the pretrainer for `.mlm`.
        variables: dictionary of `tf.Variable` under TF-Models' names; those that the model needs are used.
        inputs: names of the inputs.
    """
    rows = rows_for(TF_MODELS, ["encoder", *heads_of(model, TF_MODELS)], encoder_of(model).config.num_hidden_layers)
    used = [variables[row.theirs] for row in rows]
    signature = {name: tf.TensorSpec((None, None), tf.int32, name) for name in inputs}

    @tf.function
    def call(inputs, training=False, mask=None):
        return _outputs(model, rows, used, inputs, training)

    @tf.function(input_signature=[signature])
    def serving(inputs):
        outputs = _outputs(model, rows, used, inputs, training=False)
        return {name: tensor for name, tensor in outputs.items() if name in _SERVED}

    for training in (True, False):
        call.get_concrete_function(signature, training, None)
    saved = tf.__internal__.tracking.AutoTrackable()  # not tf.Module, whose lists of variables are not saved
    saved.variables, saved.trainable_variables, saved.regularization_losses = used, used, []
    saved.__call__, saved.serving = call, serving
    return saved


def _outputs(model, rows, variables, inputs, training):
    """What the layers of our model compute of TF-Models' variables; dropout draws new numbers at every call."""
    ours, pieces = variables_in(model), collections.defaultdict(list)
    for row, variable in zip(rows, variables, strict=True):
        *other, last = ours[row.ours].shape
        shape = (*other, last if row.part is None else last // PARTS)
        pieces[row.ours].append(tf.reshape(variable, shape))
    values = [(ours[path], tf.concat(parts, axis=-1)) for path, parts in pieces.items()]
    weights = {id(variable) for variable in ours.values()}
    seeds = [(variable, _drawn(variable)) for variable in model.variables if id(variable) not in weights]
    with keras.StatelessScope(state_mapping=[*values, *seeds]):
        outputs = encoder_of(model)(inputs, training=training)
        if _POSITIONS in inputs:
            outputs["mlm_logits"] = model.masked_lm(outputs["sequence_output"], inputs[_POSITIONS])
    return outputs


def _drawn(seed):
    """A new state for a seed of Keras' dropout, (2,)."""
    return tf.cast(tf.random.uniform(seed.shape, maxval=np.iinfo(np.int32).max, dtype=tf.int32), seed.dtype)


def _variable(name, array):
    # The masked-LM head of TF-Models lies in a model that is called bert.
    return tf.Variable(array, name=f"bert/{name}" if name.startswith("cls/") else name)
