"""Words of one's own in an existing vocabulary: in the place of "[unused12]", or behind the last token.

A word that BERT's vocabulary lacks is cut into pieces: "covid" -> "co ##vid". As a token of its own it needs a vector,
and the best first guess is the mean of the vectors of those pieces. `keras_bert_kit.models.add_tokens` does that to an
encoder; here are the parts that know about vocabularies only.
"""

import re
from typing import NamedTuple

import numpy as np

from keras_bert_kit.text.normalizer import TF_HUB, is_normalized_word, normalization_rules
from keras_bert_kit.text.tokenizer import BertTokenizer
from keras_bert_kit.text.vocabulary import CONTINUATION_PREFIX


class AddedTokens(NamedTuple):
    """A larger vocabulary.

    tokenizer: BertTokenizer with the new tokens.
    ids: dict of new token to its id.
    pieces: dict of new token to the list of ids that it was cut into before.
    """

    tokenizer: BertTokenizer
    ids: dict
    pieces: dict


def extend_tokenizer(tokenizer, tokens):
    """Adds tokens to a tokenizer's vocabulary; "[unused0]" and the like are used up first.

    Args:
        tokenizer: BertTokenizer; stays as it is.
        tokens: list of str, words as the tokenizer sees them (lower case for an uncased one), or "##" pieces. Tokens
            that the vocabulary has already are left out.

    Returns:
        AddedTokens.

    Raises:
        ValueError: a token could never be met in a text: it holds a space, punctuation, or what normalisation changes;
            or it is too long for a word.
    """
    known = set(tokenizer.vocabulary)
    tokens = [token for token in dict.fromkeys(tokens) if token not in known]
    _check_that_they_are_met(tokenizer, tokens)
    vocabulary = tokenizer.vocabulary
    unused = [i for i, token in enumerate(vocabulary) if re.fullmatch(r"\[unused\d+\]", token)]
    ids = {}
    for token, i in zip(tokens, [*unused, *range(len(vocabulary), len(vocabulary) + len(tokens))], strict=False):
        vocabulary[i : i + 1] = [token]
        ids[token] = i
    extended = BertTokenizer.from_config({**tokenizer.get_config(), "vocabulary": vocabulary})
    bodies = [token.removeprefix(CONTINUATION_PREFIX) for token in tokens]
    pieces = tokenizer(bodies).to_list() if bodies else []
    return AddedTokens(extended, ids, dict(zip(tokens, pieces, strict=True)))


def extend_table(table, added):
    """A table with a row for each token of the old vocabulary, extended to the new one.

    Args:
        table: array (vocab_size, ...): word embeddings, or the bias of a masked-LM head.
        added: AddedTokens.

    Returns:
        array (new vocab_size, ...): the row of a new token is the mean of the rows of its former pieces.
    """
    table = np.asarray(table)
    num_new = added.tokenizer.vocab_size - len(table)
    extended = np.concatenate([table, np.zeros((num_new, *table.shape[1:]), table.dtype)])
    for token, i in added.ids.items():
        extended[i] = table[added.pieces[token]].mean(axis=0)
    return extended


def _check_that_they_are_met(tokenizer, tokens):
    """Refuses tokens that no text leads to, all in one message."""
    strip_accents = tokenizer.lowercase if tokenizer.strip_accents is None else bool(tokenizer.strip_accents)
    rules = normalization_rules(tokenizer.lowercase, strip_accents, tokenizer.reference)
    longest = tokenizer.max_characters_per_word

    def is_met(token):
        body = token.removeprefix(CONTINUATION_PREFIX)
        word = body if body == token else f"a{body}"  # where it goes on
        length = len(word.encode()) if tokenizer.reference == TF_HUB else len(word)
        return body != "" and length <= longest and is_normalized_word(word, rules)

    if lost := [token for token in tokens if not is_met(token)]:
        raise ValueError(
            f"Added tokens must be words as the tokenizer sees them: no spaces, no punctuation"
            f"{', lower case' if tokenizer.lowercase else ''}, at most {longest} characters. "
            f"Received: {', '.join(map(repr, lost))}."
        )
