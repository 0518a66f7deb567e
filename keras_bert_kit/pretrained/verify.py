"""Runs a SavedModel of TF-Hub beside the model that was loaded from it, and compares what they say.

This executes the graph of the source, as nothing else in this package does; only a user who trusts it may ask for it.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.models import ENCODER_INPUTS
from keras_bert_kit.pretrained import tf1_hub, tf_hub

LARGEST_DIFFERENCE = 1e-4
_COMPARED = {"pooled_output", "sequence_output", "mlm_logits"}
_BATCH, _SEQUENCE, _PREDICTIONS = 3, 16, 4


def require_runnable(found, dtype):
    """Checks, before anything is made, that the outputs of a source can be compared.

    Args:
        found: `Found`.
        dtype: str or dtype policy of the models, or None for Keras' global one.

    Raises:
        ValueError: The source holds no graph, or the models would compute in half precision.
    """
    if found.format not in (tf_hub, tf1_hub):
        raise ValueError(
            f"verify=True needs a SavedModel of TF-Hub, which holds a graph to run. Received: a {found.kind} in "
            f"{found.path}. Its weights are checked in any case."
        )
    policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
    if policy.compute_dtype != "float32":
        raise ValueError(f"verify=True compares in float32. Received: dtype={policy.name!r}. Verify once without it.")


def verify_outputs(found, encoder, pretrainer):
    """Runs both on a few random sequences of different lengths, with two segments.

    Args:
        found: `Found`, a SavedModel.
        encoder: `BertEncoder` loaded from it.
        pretrainer: `BertPretrainer`, or None.

    Returns:
        float, the greatest absolute difference of any output at a token.

    Raises:
        CheckpointError: It is above 1e-4, or the graph cannot be run.
    """
    inputs = _random_inputs(encoder.config)
    try:
        theirs = (_outputs_of_tf2 if found.format is tf_hub else _outputs_of_tf1)(found.path, inputs)
    except (tf.errors.OpError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise CheckpointError(f"{found.path} could not be run, as verify=True asks: {error}") from None
    ours = dict((pretrainer or encoder)(inputs))
    is_token = inputs["input_mask"][..., None] == 1
    differences = {}
    for key in _COMPARED & ours.keys() & theirs.keys():
        outputs = np.abs(np.asarray(ours[key]) - np.asarray(theirs[key]))
        differences[key] = float(np.max(outputs * is_token if key == "sequence_output" else outputs))
    largest = max(differences.values(), default=np.nan)
    if not largest <= LARGEST_DIFFERENCE:
        listed = ", ".join(f"{key} {difference:.1e}" for key, difference in sorted(differences.items()))
        raise CheckpointError(
            f"Outputs of the model and of {found.path} itself must differ by at most {LARGEST_DIFFERENCE:g}. Received: "
            f"{listed or 'no output in common'}. The source is no BERT as we know it; please report it."
        )
    return largest


def _outputs_of_tf2(folder, inputs):
    """Runs a SavedModel of TF2; those of the first versions take and return lists."""
    model = tf.saved_model.load(str(folder))
    tensors = {key: tf.constant(value) for key, value in inputs.items()}
    if hasattr(model, "mlm"):
        return model.mlm(tensors, training=False)
    tensors = {key: tensors[key] for key in ENCODER_INPUTS}
    try:
        return model(tensors, training=False)
    except ValueError:  # no function of the model takes a dictionary
        pooled, sequence = model(list(tensors.values()), training=False)
        return {"pooled_output": pooled, "sequence_output": sequence}


def _outputs_of_tf1(folder, inputs):
    """Runs a module of TF1, whose signatures have names of their own for the tensors."""
    model = tf.saved_model.load(str(folder), tags=[])
    names = dict(zip(inputs, ("input_ids", "input_mask", "segment_ids", "mlm_positions"), strict=True))
    tensors = {names[key]: tf.constant(value) for key, value in inputs.items()}
    if "mlm" in model.signatures:
        return model.signatures["mlm"](**tensors)
    del tensors["mlm_positions"]
    return model.signatures["tokens"](**tensors)


def _random_inputs(config):
    """Sequences of which each is shorter than the one before, the second half of each in the second segment."""
    random = np.random.default_rng(0)
    sequence = min(_SEQUENCE, config.max_position_embeddings)
    lengths = sequence - sequence // _BATCH * np.arange(_BATCH)[:, None]  # (B, 1)
    places = np.arange(sequence)[None, :]  # (1, S)
    mask = places < lengths
    types = mask & (places >= lengths // 2) & (config.type_vocab_size > 1)
    ids = random.integers(config.vocab_size, size=mask.shape) * mask
    inputs = dict(zip(ENCODER_INPUTS, (ids, mask, types), strict=True))
    inputs["masked_lm_positions"] = random.integers(lengths.min(), size=(_BATCH, _PREDICTIONS))
    return {key: value.astype(np.int32) for key, value in inputs.items()}
