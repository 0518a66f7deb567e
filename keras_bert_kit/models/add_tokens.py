"""New words for a trained model: a larger vocabulary, and the tables that depend on its size."""

import dataclasses

import keras

from keras_bert_kit.models.encoder import BertEncoder
from keras_bert_kit.models.pretrainer import BertPretrainer
from keras_bert_kit.text.added_tokens import extend_table, extend_tokenizer


def add_tokens(tokenizer, model, tokens):
    """Adds tokens to a tokenizer and to an encoder, or a model on one, which starts from what it knows.

    Slots like "[unused12]" are used up first; then the word table grows, and the bias of the masked-LM head with it.
    The vector of a new token is the mean of those of the pieces that it was cut into.

    Args:
        tokenizer: BertTokenizer.
        model: BertEncoder with this vocabulary, or a model on one, such as BertClassifier.
        tokens: list of str, words as the tokenizer sees them; known ones are left out.

    Returns:
        `(tokenizer, model, ids)`: new objects, and a dict of new token to id. The old ones stay as they are.

    Raises:
        ValueError: a token could never be met in a text; the model has another vocabulary.

    Example:
    ```python
    tokenizer, encoder, ids = add_tokens(bert.tokenizer, bert.encoder, ["covid", "lockdown"])
    ```
    """
    encoder = model if isinstance(model, BertEncoder) else model.encoder
    if encoder.config.vocab_size != tokenizer.vocab_size:
        raise ValueError(
            f"Tokenizer and model must have the same vocabulary. Received: {tokenizer.vocab_size} tokens, a word table "
            f"of {encoder.config.vocab_size} rows. Load both from the same folder."
        )
    added = extend_tokenizer(tokenizer, tokens)
    config = dataclasses.replace(encoder.config, vocab_size=added.tokenizer.vocab_size)
    larger = BertEncoder(config, encoder.add_pooler, dtype=encoder.dtype_policy, name=encoder.name)
    if model is not encoder:
        # The same model, heads and all, around a larger encoder.
        larger = type(model).from_config(model.get_config() | {"encoder": keras.saving.serialize_keras_object(larger)})
    by_vocabulary = _tables_by_vocabulary(model)
    for old, new in zip(model.variables, larger.variables, strict=True):
        values = old.numpy()
        new.assign(extend_table(values, added) if id(old) in by_vocabulary else values)
    return added.tokenizer, larger, added.ids


def _tables_by_vocabulary(model):
    """Identities of the variables that have a row for each token."""
    encoder = model if isinstance(model, BertEncoder) else model.encoder
    tables = [encoder.embeddings.word_embeddings]
    if isinstance(model, BertPretrainer):
        tables.append(model.masked_lm.bias)
    return {id(table) for table in tables}
