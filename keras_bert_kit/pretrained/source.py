"""`Source`: what every format yields, and the small things that several formats need to yield it."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

from keras_bert_kit.config import BertConfig, wrote_by_hugging_face
from keras_bert_kit.errors import CheckpointError, KitError
from keras_bert_kit.text import BertTokenizer

_LARGEST_JSON_BYTES = 1 << 21  # Python needs thirty times that for it; 50,000 names of classes take less
# Words of a vocabulary: the largest BERT has half a million. Empty lines at the end do not count as words.
_MOST_WORDS, _SPARE_WORDS, _LONGEST_WORD_BYTES = 1 << 20, 1000, 256


@dataclasses.dataclass(frozen=True)
class Source:
    """A model in someone's files, ready for `assign`: nothing in it says any more which program wrote them.

    Attributes:
        arrays: `NamedArrays`, under the names that the rows of `table` use.
        table: dictionary of lists of `names.Row`, one list a group.
        heads: list of str, groups of the table besides `encoder` whose tensors are there.
        config: `BertConfig`.
        tokenizer: `BertTokenizer`, or None where the source has no vocabulary.
        notes: list of str for the report, each a decision with its reason.
        left_out: dictionary from each name that is not used to the reason.
        copies: dictionary from names that are left out as copies to the names that they must equal.
        class_names: list of str, classes of the head `classifier` or `token_classifier`; empty without one.
        dropout_rate: float, probability of dropping before the head, or None for the encoder's.
        head_activation: str, activation of the masked-LM head, or None for the encoder's.
        head_epsilon: float, epsilon of the masked-LM head's LayerNorm, or None for the encoder's.
    """

    arrays: Mapping
    table: dict
    heads: list
    config: BertConfig
    tokenizer: BertTokenizer | None
    notes: list
    left_out: dict
    copies: dict
    class_names: list = dataclasses.field(default_factory=list)
    dropout_rate: float | None = None
    head_activation: str | None = None
    head_epsilon: float | None = None


class NamedArrays(Mapping):
    """The arrays of files under other names, each read when it is asked for.

    Args:
        file: mapping from names to arrays, with a method `shape(name)`, such as `SafetensorsFile`.
        rename: function from a name in the file to the name here.

    Raises:
        CheckpointError: Two tensors of the file get one name.
    """

    def __init__(self, file, rename):
        self._file = file
        self._names = {}
        for name in file:
            if (twin := self._names.setdefault(rename(name), name)) != name:
                raise CheckpointError(f"{file.path} must hold each tensor once. Received: {twin!r} and {name!r}.")

    def __getitem__(self, name):
        return self._file[self._names[name]]

    def __contains__(self, name):
        return name in self._names  # Mapping's own would read the array

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def name_in_file(self, name):
        """Returns the name that the file has for a tensor; the name itself where the tensor is not there."""
        return self._names.get(name, name)

    def shape(self, name):
        """Returns the shape of a tensor, a tuple of ints, without reading it."""
        return self._file.shape(self._names[name])

    def dtype(self, name):
        """Returns the name of a tensor's dtype, such as "float32", without reading it."""
        return self._file.dtype(self._names[name])


def read_json(path):
    """Returns the JSON object in a file.

    Raises:
        CheckpointError: It is no JSON object in UTF-8, or far larger than settings are.
    """
    if path.stat().st_size > _LARGEST_JSON_BYTES:
        raise CheckpointError(
            f"{path} must hold settings, at most {_LARGEST_JSON_BYTES} bytes of JSON. Received: {path.stat().st_size}."
        )
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (
        ValueError,
        RecursionError,
    ) as error:  # no JSON, not UTF-8, a number of thousands of digits, no end of lists
        raise CheckpointError(f"{path} must hold JSON in UTF-8. Received: {error}.") from None
    if not isinstance(values, dict) and path.name != "modules.json":
        raise CheckpointError(f"{path} must hold a JSON object. Received: a {type(values).__name__}.")
    return values


def object_in(values, key, path):
    """Returns the object under a key of a JSON object, or an empty one where there is none.

    Raises:
        CheckpointError: There is something else.
    """
    inner = values.get(key)
    if inner is not None and not isinstance(inner, dict):
        raise CheckpointError(f"{path}: {key} must be a JSON object. Received: {inner!r:.80}.")
    return inner or {}


def flag_in(values, key, path):
    """Returns true or false, whichever is under a key of a JSON object, or None where there is none.

    Raises:
        CheckpointError: There is something else.
    """
    flag = values.get(key)
    if flag not in (None, True, False):
        raise CheckpointError(f"{path}: {key} must be true or false. Received: {flag!r:.80}.")
    return flag


def rate_in(values, key, path):
    """Returns the probability under a key of a JSON object, or None where there is none.

    Raises:
        CheckpointError: There is something else.
    """
    rate = values.get(key)
    if rate is not None and not (type(rate) in (int, float) and 0 <= rate < 1):
        raise CheckpointError(f"{path}: {key} must be a number from 0 to below 1. Received: {rate!r:.80}.")
    return rate


def read_config(path):
    """Reads Google's `bert_config.json` or Hugging Face's `config.json`.

    Returns:
        Triple of a `BertConfig`, the dictionary in the file, and notes that say which GELU and epsilon, and why.

    Raises:
        CheckpointError: The file is no JSON object.
        ConfigError: It describes no BERT.
    """
    values = read_json(path)
    config = BertConfig.from_json_file(path)
    writer = "Hugging Face's" if wrote_by_hugging_face(values) else "Google's"
    act, epsilon = values.get("hidden_act", "nothing"), values.get("layer_norm_eps", "nothing")
    return (
        config,
        values,
        [
            f"hidden_act={config.hidden_act} ({path.name} says {act!r} and is {writer})",
            f"layer_norm_eps={config.layer_norm_eps:g} ({path.name} says {epsilon})",
        ],
    )


def read_tokenizer(path, lowercase=None, lowercase_from=None, strip_accents=None, rows=None, **options):
    """Makes a tokenizer from a vocab.txt and what is known of its settings.

    Args:
        path: `pathlib.Path` of the vocabulary.
        lowercase: bool, or None to find out: a vocabulary without capital letters is one of lower-cased text.
        lowercase_from: str, where `lowercase` was found, for the note.
        strip_accents: bool or None, see `BertTokenizer`.
        rows: int, rows of the word table, or None where there is none: a larger vocabulary is not even read.
        **options: the other arguments of `BertTokenizer`.

    Returns:
        Pair of a `BertTokenizer` and a note that says whether texts are lower-cased, and why.

    Raises:
        CheckpointError: The options are not valid, or the vocabulary is damaged or far larger than the word table.
        VocabularyError: From the vocabulary.
    """
    _require_size(path, min(rows or _MOST_WORDS, _MOST_WORDS) + _SPARE_WORDS)
    if lowercase is None:
        lowercase = not _has_capitals(path)
        lowercase_from = f"{path.name} holds {'no ' if lowercase else ''}words with capital letters"
    try:
        tokenizer = BertTokenizer.from_vocab_file(path, lowercase, strip_accents, **options)
    except ValueError as error:
        if isinstance(error, KitError):
            raise
        raise CheckpointError(f"The settings of the tokenizer in {path.parent} must be valid: {error}") from None
    _require_whole(path, tokenizer.vocab_size, rows)
    accents = "" if strip_accents is None else f", strip_accents={strip_accents}"
    return tokenizer, f"lowercase={lowercase}{accents} ({lowercase_from})"


def _require_size(path, most_words):
    size, lines = path.stat().st_size if path.is_file() else 0, 0
    if size <= most_words * _LONGEST_WORD_BYTES and size > most_words:
        with open(path, "rb") as file:
            lines = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    if size > most_words * _LONGEST_WORD_BYTES or lines > most_words:
        raise CheckpointError(
            f"The vocabulary must not hold more words than the word table has rows, a line each. Received: {path}, "
            f"{size} bytes, for about {most_words - _SPARE_WORDS} words. The files do not belong together."
        )


def _require_whole(path, words, rows):
    """Refuses a vocabulary that was cut off or overwritten, as far as that can be seen."""
    content = path.read_bytes()
    # Word tables are padded to a multiple of 128 rows at most; a file that was cut mostly ends within a line.
    cut = rows is not None and words + 128 <= rows and not content.endswith(b"\n")
    if cut or b"\0" in content:
        what = f"{words} words for {rows} rows, the last without a line end" if cut else "zero bytes in it"
        raise CheckpointError(f"A vocabulary must be whole and undamaged. Received: {path}: {what}. Fetch it again.")


def _has_capitals(path):
    # A missing or damaged file is reported by the reader of vocabularies, with a message of its own.
    text = Path(path).read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""
    return any(line != line.lower() for line in text.split("\n") if not line.startswith("["))
