"""Paragraphs to sentences, by rules: no model and no download, and good enough for pairs of sentences."""

import re

# A full stop after these ends no sentence: a name, a number or an example follows.
_ABBREVIATIONS = frozenset(
    """mr mrs ms messrs mme dr prof rev hon st gen col capt lt sgt maj gov sen rep pres supt
    e.g i.e cf viz vs fig figs vol vols pp ch sec ed eds approx ca
    jan feb mar apr jun jul aug sept sep oct nov dec mt ft dept univ""".split()
)
# Signs that end a sentence and quotes that close after them, then white space, then what may begin a sentence: quotes
# or brackets, and a letter or digit. Ideographic signs need no white space.
_ENDS = re.compile(
    r"""(?: [.!?…]+ \s? ["'”’»)\]]* \s+ (?= ["'“‘«(\[¿¡_—-]* \s? (?P<next>[^\W_]) ) | [。！？]+ [」』”’）]* )""",
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"[\w.]*\Z")
# What is longer has no end that the rules see, such as a table or a list; it is divided between words.
_MAX_CHARACTERS = 2000


def split_sentences(paragraph: str) -> list[str]:
    """Splits running text into sentences.

    A sentence ends at a full stop, question or exclamation mark that white space and a capital letter or digit follow,
    quotes aside. It does not end after an abbreviation such as "Mr." or "e.g.", nor after an initial ("J. Austen").
    White space within a sentence, line feeds among it, becomes one space.

    Args:
        paragraph: the text.

    Returns:
        The sentences, none empty, none above 2,000 characters unless it is one word.

    Example:
    ```python
    split_sentences("Mr. Bennet replied that he had not. “But it is,” returned she.")
    # ["Mr. Bennet replied that he had not.", "“But it is,” returned she."]
    ```
    """
    text = " ".join(paragraph.split())
    sentences, start = [], 0
    for match in _ENDS.finditer(text):
        if (match["next"] or "").islower() or _is_abbreviation(text, match):
            continue
        sentences += _pieces(text[start : match.end()].strip())
        start = match.end()
    return sentences + _pieces(text[start:].strip())


def _is_abbreviation(text: str, match: re.Match) -> bool:
    """Whether the one full stop belongs to the word before it."""
    if match[0].strip() != ".":
        return False
    word = _LAST_WORD.search(text[max(match.start() - 20, 0) : match.start()])[0]
    is_initial = len(word) == 1 and word.isupper()
    return is_initial or word.lower() in _ABBREVIATIONS


def _pieces(sentence: str) -> list[str]:
    """The sentence, divided at the last space within each 2,000 characters; nothing where it is empty."""
    pieces = []
    while len(sentence) > _MAX_CHARACTERS:
        end = sentence.rfind(" ", 0, _MAX_CHARACTERS)
        end = sentence.find(" ", _MAX_CHARACTERS) if end < 0 else end
        if end < 0:
            break
        pieces.append(sentence[:end])
        sentence = sentence[end + 1 :]
    return [*pieces, sentence] if sentence else pieces
