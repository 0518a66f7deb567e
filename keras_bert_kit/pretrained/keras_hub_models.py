"""Models of keras-hub (formerly keras-nlp) that are in memory, to ours and back, through its own files of weights.

keras-hub is needed only for what it made itself; its folders are read without it, see `keras_hub.py`.
"""

import dataclasses
import tempfile
from pathlib import Path

from keras_bert_kit.pretrained.keras_hub import EPSILON, FIELDS, HIDDEN_ACT, WEIGHTS
from keras_bert_kit.pretrained.load import load_pretrained
from keras_bert_kit.pretrained.names import KERAS_HUB, keras_hub_path
from keras_bert_kit.pretrained.tensors import tensors_of


def from_keras_hub(model, tokenizer=None):
    """Turns a model of keras-hub into ours: the same weights, the same outputs.

    Args:
        model: `keras_hub.models.BertBackbone`, or `BertTextClassifier` or `BertMaskedLM` with their preprocessor.
        tokenizer: `keras_hub.models.BertTokenizer` of a backbone; a task has its own. Default: none.

    Returns:
        `Pretrained`, as `load_pretrained` returns it; `tokenizer` in it is None where none was given.

    Raises:
        CheckpointError: The model is no BERT.

    Example:
    ```python
    backbone = keras_hub.models.BertBackbone.from_preset("bert_tiny_en_uncased")
    encoder = from_keras_hub(backbone).encoder
    ```
    """
    with tempfile.TemporaryDirectory(prefix="keras_bert_kit-") as folder:
        model.save_to_preset(folder)
        if tokenizer is not None:
            tokenizer.save_to_preset(folder)
        bert = load_pretrained(folder)
    return dataclasses.replace(bert, report=dataclasses.replace(bert.report, source=f"keras_hub {model.name}"))


def to_keras_hub(encoder):
    """Turns a `BertEncoder` into a `keras_hub.models.BertBackbone` with the same weights and outputs.

    Its inputs are called `token_ids`, `padding_mask` and `segment_ids`. For the tokenizer, use
    `keras_hub.models.BertTokenizer(tokenizer.vocabulary, lowercase=tokenizer.lowercase)`.

    Args:
        encoder: `BertEncoder` with a pooler, the tanh form of GELU, epsilon 1e-12 and one rate of dropout.

    Returns:
        `keras_hub.models.BertBackbone`.

    Raises:
        ImportError: keras-hub is not installed.
        ValueError: The encoder is of a kind that a BertBackbone cannot be.
    """
    import h5py

    keras_hub = _keras_hub()
    config = encoder.config
    found = {
        "a pooler": (encoder.add_pooler, True),
        "hidden_act": (config.hidden_act, HIDDEN_ACT),
        "layer_norm_eps": (config.layer_norm_eps, EPSILON),
        "attention_probs_dropout_prob": (config.attention_probs_dropout_prob, config.hidden_dropout_prob),
    }
    if faults := [f"{name}: {value!r}, not {needed!r}" for name, (value, needed) in found.items() if value != needed]:
        raise ValueError(
            "A BertBackbone of keras-hub has a pooler, the tanh form of GELU, epsilon 1e-12 and one rate of dropout. "
            f"Received: {'; '.join(faults)}. It would compute something else."
        )
    sizes = {theirs: getattr(config, ours) for theirs, ours in FIELDS.items()}
    backbone = keras_hub.models.BertBackbone(**sizes, dropout=config.hidden_dropout_prob, dtype=encoder.dtype_policy)
    with tempfile.TemporaryDirectory(prefix="keras_bert_kit-") as folder:
        path = Path(folder) / WEIGHTS
        with h5py.File(path, "w") as file:
            for name, array in tensors_of(encoder, KERAS_HUB).items():
                file[keras_hub_path(name)] = array
        backbone.load_weights(path)
    return backbone


def _keras_hub():
    try:
        import keras_hub
    except ImportError as error:
        raise ImportError("to_keras_hub needs keras-hub. Run: pip install 'keras_bert_kit[keras-hub]'") from error
    return keras_hub
