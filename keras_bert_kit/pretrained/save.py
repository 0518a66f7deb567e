"""`save_pretrained`: our models in the formats of others."""

import logging
from pathlib import Path

from keras_bert_kit.models import BertEncoder, BertPretrainer, ModelWithEncoder
from keras_bert_kit.pretrained.names import GOOGLE, HUGGING_FACE, TF_MODELS
from keras_bert_kit.pretrained.tensors import encoder_of, heads_of
from keras_bert_kit.pretrained.write_hugging_face import write_hugging_face
from keras_bert_kit.pretrained.write_tf1 import write_tf1
from keras_bert_kit.pretrained.write_tf_hub import write_tf_hub
from keras_bert_kit.text import BertTokenizer

# The writer of a format, and the table whose groups are the heads that the format can hold.
FORMATS = {"hf": (write_hugging_face, HUGGING_FACE), "tf1": (write_tf1, GOOGLE), "tf-hub": (write_tf_hub, TF_MODELS)}
# TF-Hub's encoders never held this head. It is left behind and said so, where other heads without a place are an error.
_LEFT_BEHIND = {"tf-hub": ("next_sentence",)}

_log = logging.getLogger(__name__)


def save_pretrained(model, path, *, tokenizer, format="hf", dtype="float32"):
    """Saves a model with its tokenizer, in a folder that is written beside its place and then renamed into it.

    What is saved, `load_pretrained` reads back bit-equal: weights, config, and all settings of the tokenizer.

    Args:
        model: `BertEncoder`, or a model on one, such as `BertClassifier` or `BertPretrainer`.
        path: folder to make; it must not exist, or be empty.
        tokenizer: the `BertTokenizer` that the model was trained with.
        format: one of
            * `"hf"`, a Hugging Face folder (config.json, model.safetensors, vocab.txt, tokenizer_config.json), which
              Transformers opens; it holds every head;
            * `"tf1"`, a checkpoint of the original BERT (bert_config.json, vocab.txt, bert_model.ckpt.*), which
              google-research/bert opens; it holds the heads of pre-training, run_classifier.py and run_squad.py;
            * `"tf-hub"`, a SavedModel with the interface of TF-Hub's encoders, which `tf.saved_model.load` opens; it
              holds the pooler, and the masked-LM head as `.mlm`; a next-sentence head is left behind, with a warning.
            A kit.json beside or inside says what the format has no place for: versions, class names, settings.
        dtype: `"float32"`, or with `"hf"` also `"float16"`: half the size, and numbers rounded to 11 bits.

    Raises:
        ValueError: Unknown format, another kind of model, a head or a setting that the format cannot hold, or a
            tokenizer with more words than the word table has rows.
        FileExistsError: There is something at `path` already.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}. Received: format={format!r}.")
    if not isinstance(model, BertEncoder | ModelWithEncoder):
        raise ValueError(
            "model must be a BertEncoder, or a model on one, such as BertClassifier or BertPretrainer. "
            f"Received: a {type(model).__name__}. Save other Keras models with model.save('name.keras')."
        )
    if missing := heads_not_in(format, heads_of(model)):
        raise ValueError(
            f"format={format!r} must have a place for every head. Received: {', '.join(missing)}, which it has not. "
            "Save model.encoder, or with format='hf'."
        )
    if dtype not in ("float32", "float16") or (dtype == "float16" and format != "hf"):
        raise ValueError(
            f"dtype must be 'float32', or 'float16' with format='hf'. Received: dtype={dtype!r}, format={format!r}."
        )
    _require_one_activation(model, format)
    _require_tokenizer(tokenizer, encoder_of(model).config.vocab_size)
    write, _ = FORMATS[format]
    write(model, Path(path).expanduser(), tokenizer, **({} if dtype == "float32" else {"dtype": dtype}))
    if left := heads_left_behind(format, heads_of(model)):
        _log.warning("format=%r has no place for %s: not written to %s", format, ", ".join(left), path)


def heads_not_in(format, heads):
    """Lists those of some heads that a format cannot hold, and whose loss is an error."""
    _, table = FORMATS[format]
    return [head for head in heads if head not in table and head not in _LEFT_BEHIND.get(format, ())]


def heads_left_behind(format, heads):
    """Lists those of some heads that a format never holds."""
    return [head for head in heads if head in _LEFT_BEHIND.get(format, ())]


def _require_one_activation(model, format):
    if isinstance(model, BertPretrainer) and format != "tf-hub":
        sizes = model.encoder.config
        head, encoder = (model.masked_lm.activation, model.masked_lm.epsilon), (sizes.hidden_act, sizes.layer_norm_eps)
        if head != encoder:
            raise ValueError(
                "model must have one activation and epsilon, since the format has one field for each. Received: "
                f"{head} in the masked-LM head, {encoder} in the encoder. Save model.encoder, or the model with "
                "format='tf-hub' or as .keras."
            )


def _require_tokenizer(tokenizer, rows):
    if not isinstance(tokenizer, BertTokenizer):
        raise ValueError(
            f"tokenizer must be a BertTokenizer. Received: a {type(tokenizer).__name__}. Where a source has no "
            "vocabulary, make one with BertTokenizer.from_vocab_file."
        )
    if tokenizer.vocab_size > rows:
        raise ValueError(
            "tokenizer must not have more words than the model's word table has rows. "
            f"Received: {tokenizer.vocab_size} words, vocab_size={rows}. They do not belong together."
        )
