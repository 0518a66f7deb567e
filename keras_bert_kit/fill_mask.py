"""`fill_mask`: which words a model expects where a text says [MASK]."""

import numpy as np
import tensorflow as tf

from keras_bert_kit.errors import CheckpointError, VocabularyError
from keras_bert_kit.pretrained import Pretrained
from keras_bert_kit.text import BertPacker
from keras_bert_kit.text.texts import as_texts

MASK = "[MASK]"
_BATCH_SIZE = 32


def fill_mask(bert, texts, top_k=5):
    """Predicts the words behind each [MASK] of some texts, with a model that has a masked-LM head.

    Several masks of a text are predicted independently of each other. A text that is longer than the model reads is
    cut at its end.

    Args:
        bert: what `load_pretrained` returned.
        texts: list of str, or one str; each with "[MASK]" once or more, which is that token here, whether or not the
            tokenizer looks for special tokens in texts.
        top_k: int, how many tokens for each mask.

    Returns:
        List with one element for each text: a list with one element for each of its masks, from left to right: a list
        of `top_k` pairs (token, probability), the most probable first. "##s" is the end of the word before it.

    Raises:
        CheckpointError: The source of the model has no masked-LM head, or no vocabulary.
        VocabularyError: The vocabulary has no [MASK].
        ValueError: `bert` is something else; a text without [MASK], or with one beyond the last position of the model.

    Example:

    >>> fill_mask(load_pretrained("bert-base-uncased"), "Hello I'm a [MASK] model.", top_k=2)
    [[[('fashion', 0.107...), ('role', 0.087...)]]]
    """
    _require_model(bert)
    if top_k < 1:
        raise ValueError(f"top_k must be 1 or more. Received: top_k={top_k}.")
    texts = [text.decode("utf-8", "ignore") for text in as_texts(texts).numpy()]
    if missing := [number for number, text in enumerate(texts) if MASK not in text]:
        raise ValueError(
            f"Each text must hold {MASK}, in capitals, where a word is to be guessed. Received: {len(missing)} of "
            f"{len(texts)} texts without, the first at position {missing[0]}: {texts[missing[0]][:80]!r}."
        )
    starts = range(0, len(texts), _BATCH_SIZE)
    return [masks for start in starts for masks in _fill(bert, texts[start : start + _BATCH_SIZE], start, top_k)]


def fill_in(text, tokens):
    """Returns a text with a token in the place of each [MASK].

    Args:
        text: str.
        tokens: list of str, one for each [MASK], from left to right; "##s" is joined to the word before it.
    """
    first, *rest = text.split(MASK)
    for token, part in zip(tokens, rest, strict=True):
        first = first.rstrip() + token[2:] + part if token.startswith("##") else first + token + part
    return first


def _require_model(bert):
    if not isinstance(bert, Pretrained):
        received = f"a {type(bert).__name__}"
        raise ValueError(f"bert must be what load_pretrained returned, with its tokenizer. Received: {received}.")
    if bert.pretrainer is None:
        raise CheckpointError(
            f"Filling masks needs a masked-LM head. Received: {bert.report.source} with the heads "
            f"{', '.join(bert.report.heads) or 'none'}. Load a model as it was pre-trained, such as bert-base-uncased; "
            "fine-tuned models and sentence encoders have lost that head."
        )
    if bert.tokenizer is None:
        raise CheckpointError(
            f"Texts need a vocabulary. Received: {bert.report.source}, which holds none. "
            "Put the vocab.txt that the model was trained with into the folder."
        )
    if bert.tokenizer.mask_id is None:
        raise VocabularyError(f"Filling masks needs a vocabulary with {MASK}. Received: one without it.")


def _fill(bert, texts, number_of_first, top_k):
    """The answer for one batch of texts."""
    tokenizer, longest = bert.tokenizer, bert.config.max_position_embeddings
    ids = tf.ragged.constant(_ids_around_masks(tokenizer, texts), tf.int32)
    inputs = BertPacker(tokenizer, None, max_sequence_length=longest).pack_ids(ids)
    masks = [np.flatnonzero(row).tolist() for row in inputs["input_word_ids"].numpy() == tokenizer.mask_id]
    for number, (found, text) in enumerate(zip(masks, texts, strict=True), start=number_of_first):
        if len(found) < text.count(MASK):
            raise ValueError(
                f"Each {MASK} must be among the first {longest} tokens, which are all that the model reads. Received: "
                f"the text at position {number}, where {text.count(MASK) - len(found)} of them lie behind. Shorten it."
            )
    positions = tf.ragged.constant(masks, tf.int32).to_tensor(0)  # 0 fills up
    logits = bert.pretrainer(inputs | {"masked_lm_positions": positions})["mlm_logits"]  # (B, P, V)
    vocabulary = np.asarray(tokenizer.vocabulary, dtype=object)
    known = tf.nn.softmax(logits)[..., : len(vocabulary)]  # a model may have rows that no token uses
    probabilities, ids = (top.numpy() for top in tf.math.top_k(known, min(top_k, len(vocabulary))))
    return [
        [list(zip(vocabulary[ids[b, p]], probabilities[b, p].tolist(), strict=True)) for p in range(len(found))]
        for b, found in enumerate(masks)
    ]


def _ids_around_masks(tokenizer, texts):
    """Ids of each text, where that of [MASK] stands between those of the parts around it: list of lists of int."""
    parts = [text.split(MASK) for text in texts]
    ids_of_parts = iter(tokenizer([part for parts_of_text in parts for part in parts_of_text]).to_list())
    rows = []
    for _, *rest in parts:
        rows.append(next(ids_of_parts))
        for _ in rest:
            rows[-1] += [tokenizer.mask_id, *next(ids_of_parts)]
    return rows
