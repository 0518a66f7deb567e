"""Writes a model as a Hugging Face folder, which Transformers opens and `load_pretrained` reads back bit-equal."""

import json

import numpy as np
from safetensors.numpy import save_file

from keras_bert_kit.files import folder_written_beside, sha256_of
from keras_bert_kit.models import BertEncoder
from keras_bert_kit.pretrained.hugging_face import CONFIG, VOCABULARY, WEIGHTS
from keras_bert_kit.pretrained.kit_file import KIT_FILE, write_kit_file
from keras_bert_kit.pretrained.names import HUGGING_FACE
from keras_bert_kit.pretrained.tensors import encoder_of, heads_of, tensors_of

# Hugging Face's names for our activations.
_ACTIVATIONS = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu", "tanh": "tanh"}
# Its classes, by the heads that they have.
_ARCHITECTURES = {
    (): "BertModel",
    ("masked_lm",): "BertForMaskedLM",
    ("masked_lm", "next_sentence"): "BertForPreTraining",
    ("next_sentence",): "BertForNextSentencePrediction",
    ("classifier",): "BertForSequenceClassification",
    ("token_classifier",): "BertForTokenClassification",
    ("question_answering",): "BertForQuestionAnswering",
    ("multiple_choice",): "BertForMultipleChoice",
}


def write_hugging_face(model, path, tokenizer, dtype="float32"):
    """Writes `config.json`, `model.safetensors`, `vocab.txt`, `tokenizer_config.json` and `kit.json`.

    Args:
        model: `BertEncoder`, or a model on one, such as `BertClassifier`.
        path: `pathlib.Path` of the folder; it must not exist, or be empty. It is whole or absent, never in between.
        tokenizer: the `BertTokenizer` that the model was trained with.
        dtype: `"float32"`, or `"float16"` for half the size.
    """
    tensors = {name: _as(dtype, name, array) for name, array in _tensors_of(model).items()}
    with folder_written_beside(path) as folder:
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
        _write_json(folder / CONFIG, _config_of(model))
        _write_json(folder / "tokenizer_config.json", _tokenizer_settings(tokenizer, model))
        (folder / VOCABULARY).write_bytes("".join(f"{token}\n" for token in tokenizer.vocabulary).encode("utf-8"))
        files = sorted(file.name for file in folder.iterdir())
        more = {"class_names": list(model.class_names)} if hasattr(model, "class_names") else {}
        checksums = {name: sha256_of(folder / name) for name in files}
        write_kit_file(folder / KIT_FILE, tokenizer, sha256=checksums, **more)


def _tensors_of(model):
    """The model's weights under Hugging Face's names; with a head, `bert.` stands before those of the encoder."""
    prefix = "" if isinstance(model, BertEncoder) else "bert."
    inside = ("embeddings.", "encoder.", "pooler.")
    return {prefix * name.startswith(inside) + name: array for name, array in tensors_of(model, HUGGING_FACE).items()}


def _as(dtype, name, array):
    with np.errstate(over="ignore"):
        found = array.astype(dtype)
    if not np.all(np.isfinite(found)) and np.all(np.isfinite(array)):
        raise ValueError(
            f"{name} must fit into {dtype}. Received: numbers up to {np.abs(array).max():g}. Save float32."
        )
    return found


def _config_of(model):
    """The dictionary of config.json."""
    sizes = encoder_of(model).config
    heads = tuple(head for head in heads_of(model) if head != "pooler")
    values = sizes.to_dict() | {"hidden_act": _ACTIVATIONS[sizes.hidden_act]}
    values |= {"model_type": "bert", "position_embedding_type": "absolute"}
    if class_names := getattr(model, "class_names", None):
        values["id2label"] = {str(i): name for i, name in enumerate(class_names)}
        values["label2id"] = {name: i for i, name in enumerate(class_names)}
    if hasattr(model, "dropout_rate"):
        values["classifier_dropout"] = model.dropout_rate
    return {"architectures": [_ARCHITECTURES[heads]]} | values


def _tokenizer_settings(tokenizer, model):
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": tokenizer.lowercase,
        "strip_accents": tokenizer.strip_accents,
        "tokenize_chinese_chars": True,
        "model_max_length": encoder_of(model).config.max_position_embeddings,
    }


def _write_json(path, values):
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
