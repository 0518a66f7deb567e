"""`save_pretrained`: our models in the formats of others."""

from pathlib import Path

from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer
from keras_bert_kit.pretrained.write_hugging_face import write_hugging_face
from keras_bert_kit.text import BertTokenizer

_WRITERS = {"hf": write_hugging_face}


def save_pretrained(model, path, *, tokenizer, format="hf"):
    """Saves a model with its tokenizer, in a folder that is written beside its place and then renamed into it.

    Args:
        model: `BertEncoder`, `BertClassifier` or `BertPretrainer`.
        path: folder to make; it must not exist, or be empty.
        tokenizer: the `BertTokenizer` that the model was trained with.
        format: `"hf"`, a Hugging Face folder (config.json, model.safetensors, vocab.txt, tokenizer_config.json), which
            Transformers opens too, with kit.json beside: versions, class names and the sha256 of every file.

    Raises:
        ValueError: Unknown format, another kind of model, a masked-LM head with an activation or epsilon of its own,
            or a tokenizer with more words than the word table has rows.
        FileExistsError: There is something at `path` already.
    """
    if format not in _WRITERS:
        raise ValueError(f"format must be one of {', '.join(_WRITERS)}. Received: format={format!r}.")
    if not isinstance(model, BertEncoder | BertClassifier | BertPretrainer):
        raise ValueError(
            "model must be a BertEncoder, BertClassifier or BertPretrainer. "
            f"Received: a {type(model).__name__}. Save other Keras models with model.save('name.keras')."
        )
    sizes = getattr(model, "encoder", model).config
    if isinstance(model, BertPretrainer):
        head, encoder = (model.masked_lm.activation, model.masked_lm.epsilon), (sizes.hidden_act, sizes.layer_norm_eps)
        if head != encoder:
            raise ValueError(
                "model must have one activation and epsilon, since the format has one field for each. Received: "
                f"{head} in the masked-LM head, {encoder} in the encoder. Save model.encoder, or the model as .keras."
            )
    if not isinstance(tokenizer, BertTokenizer):
        raise ValueError(
            f"tokenizer must be a BertTokenizer. Received: a {type(tokenizer).__name__}. Where a source has no "
            "vocabulary, make one with BertTokenizer.from_vocab_file."
        )
    rows = sizes.vocab_size
    if tokenizer.vocab_size > rows:
        raise ValueError(
            "tokenizer must not have more words than the model's word table has rows. "
            f"Received: {tokenizer.vocab_size} words, vocab_size={rows}. They do not belong together."
        )
    _WRITERS[format](model, Path(path), tokenizer)
