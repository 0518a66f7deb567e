"""What of a tokenizer, beside its vocabulary, decides on the ids of a text; and whether two tokenizers are the same."""

from keras_bert_kit.errors import DataError
from keras_bert_kit.text import BertTokenizer

_SETTINGS = ("lowercase", "strip_accents", "reference", "max_characters_per_word", "special_tokens_in_text")


def settings_of(tokenizer: BertTokenizer) -> dict:
    """The settings by name: with the vocabulary, all that makes such a tokenizer again."""
    return {name: getattr(tokenizer, name) for name in _SETTINGS}


def require_same_tokenizer(found: BertTokenizer, folder, wanted: BertTokenizer, where):
    """Checks that data was made with the tokenizer that a model or other data has.

    Args:
        found: tokenizer of the data.
        folder: of the data, for the message.
        wanted: the other tokenizer.
        where: what has that, for the message; `make-pretraining-data --vocab` takes it.

    Raises:
        DataError: vocabularies or settings differ, so that the same text would have other ids.
    """
    if found.vocabulary != wanted.vocabulary:
        pairs = zip(found.vocabulary, wanted.vocabulary, strict=False)
        first = next((number for number, (one, other) in enumerate(pairs) if one != other), None)
        difference = "one is a part of the other" if first is None else f"they differ first at id {first}"
        raise DataError(
            f"The data must have been made with the vocabulary of {where}. Received: {found.vocab_size} tokens in "
            f"{folder}, {wanted.vocab_size} there; {difference}. Make the data with --vocab {where}."
        )
    ours, theirs = _effective(found), _effective(wanted)
    differences = [f"{name}={ours[name]!r} and {theirs[name]!r}" for name in _SETTINGS if ours[name] != theirs[name]]
    if differences:
        raise DataError(
            f"The data must have been made with the tokenizer of {where}, settings and all. Received: "
            f"{', '.join(differences)}, the first in {folder}, the second there. Make the data with --vocab {where}."
        )


def _effective(tokenizer):
    """The settings, with the Boolean that `strip_accents=None` stands for."""
    settings = settings_of(tokenizer)
    if settings["strip_accents"] is None:
        settings["strip_accents"] = settings["lowercase"]
    return settings
