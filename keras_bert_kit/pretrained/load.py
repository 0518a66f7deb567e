"""`load_pretrained`: read, rename, assign; and a report of what was done."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from keras_bert_kit.config import BertConfig, wrote_by_hugging_face
from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.models import BertClassifier, BertEncoder, BertPretrainer
from keras_bert_kit.pretrained import hugging_face
from keras_bert_kit.pretrained.assign import assign, variables_of
from keras_bert_kit.pretrained.names import (
    HUGGING_FACE,
    HUGGING_FACE_COPIES,
    HUGGING_FACE_LEFT_OUT,
    rows_for,
    todays_name,
)
from keras_bert_kit.pretrained.read_safetensors import SafetensorsFile
from keras_bert_kit.pretrained.report import LoadReport
from keras_bert_kit.text import BertTokenizer


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """What `load_pretrained` returns. The models share one encoder.

    Attributes:
        encoder: `BertEncoder`.
        tokenizer: `BertTokenizer`.
        config: `BertConfig`.
        report: `LoadReport`.
        pretrainer: `BertPretrainer`, or None if the source has no masked-LM head.
        classifier: `BertClassifier`, or None if the source has no classification head.
    """

    encoder: BertEncoder
    tokenizer: BertTokenizer
    config: BertConfig
    report: LoadReport
    pretrainer: BertPretrainer | None
    classifier: BertClassifier | None


def load_pretrained(source, *, allow_missing=(), sha256=None, dtype=None):
    """Loads pretrained weights, a tokenizer and the heads that are there, or says why not.

    Args:
        source: folder in Hugging Face's format (config.json, model.safetensors, vocab.txt), for example one written by
            `save_pretrained`, or a sentence-transformers folder with a BERT in it.
        allow_missing: `("pooler",)` to start from a new, random pooler where the source has none. Default: then the
            encoder has no pooler.
        sha256: str, the checksum that model.safetensors must have. Default: not compared.
        dtype: str or dtype policy of the models, for example `"mixed_bfloat16"`. Default: Keras' global policy.

    Returns:
        `Pretrained`.

    Raises:
        CheckpointError: Files are missing or damaged, or tensors do not fit; all faults in one message.
        ConfigError: config.json describes no BERT.
        VocabularyError: vocab.txt is not one.

    Example:

    >>> bert = load_pretrained("all-MiniLM-L6-v2")
    >>> print(bert.report)
    """
    if unknown := set(allow_missing) - {"pooler"}:
        raise ValueError(f"allow_missing may hold 'pooler' only. Received: {sorted(unknown)}.")
    folder, kind = hugging_face.find_folder(Path(source))
    checksums = _checked_sums(folder, sha256)
    values = hugging_face.read_json(folder / hugging_face.CONFIG)
    config = BertConfig.from_json_file(folder / hugging_face.CONFIG)
    tokenizer, tokenizer_note = hugging_face.read_tokenizer(folder)
    arrays = _Renamed(SafetensorsFile(folder / hugging_face.WEIGHTS))
    heads, left_out = hugging_face.heads_of(arrays.keys(), values)
    left_out |= {name: reason for name, reason in HUGGING_FACE_LEFT_OUT.items() if name in arrays}
    notes = [*_notes_on_config(config, values), tokenizer_note, *_notes_on_vocabulary(tokenizer, config, folder)]

    # Everything is made, then filled in one step that changes all variables or none.
    new_pooler = "pooler" in allow_missing and "pooler" not in heads
    encoder = BertEncoder(config, add_pooler="pooler" in heads or new_pooler, dtype=dtype, name="bert")
    if "pooler" not in heads:
        notes.append("no pooler in the source: " + ("a new, random one" if new_pooler else "the encoder has none"))
    pretrainer = classifier = None
    if "masked_lm" in heads:
        pretrainer = BertPretrainer(encoder, next_sentence="next_sentence" in heads, name="pretrainer")
    if "classifier" in heads:
        class_names, note = hugging_face.class_names_of(values, arrays.shape("classifier.weight")[0])
        dropout_rate = values.get("classifier_dropout")
        classifier = BertClassifier(encoder, len(class_names), class_names, dropout_rate, name="classifier")
        notes.append(note)
    variables = variables_of(encoder, pretrainer, classifier)
    if new_pooler:
        variables = {path: v for path, v in variables.items() if not path.startswith("encoder/pooler/")}
    rows = rows_for(HUGGING_FACE, ["encoder", *heads], config.num_hidden_layers)
    assign(arrays, rows, variables, left_out=left_out, copies=HUGGING_FACE_COPIES, source=folder)

    report = LoadReport(
        source=str(source),
        kind=kind,
        config=config.to_dict(),
        parameters=sum(variable.value.shape.num_elements() for variable in variables.values()),
        heads=tuple(heads),
        notes=tuple(notes),
        assigned=tuple(arrays.name_in_file(row.theirs) for row in rows),
        left_out={arrays.name_in_file(name): reason for name, reason in left_out.items()},
        sha256=checksums,
    )
    return Pretrained(encoder, tokenizer, config, report, pretrainer, classifier)


class _Renamed(Mapping):
    """The arrays of a file under today's names."""

    def __init__(self, file):
        self._file = file
        self._names = {}
        for name in file:
            if (twin := self._names.setdefault(todays_name(name), name)) != name:
                raise CheckpointError(f"{file.path} must hold each tensor once. Received: {twin!r} and {name!r}.")

    def __getitem__(self, name):
        return self._file[self._names[name]]

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def name_in_file(self, name):
        return self._names[name]

    def shape(self, name):
        return self._file.shape(self._names[name])


def _checked_sums(folder, expected):
    """Checksums of the weights; compared with `expected`, and with those in kit.json if the kit wrote the folder."""
    path = folder / hugging_face.WEIGHTS
    checksums = {path.name: sha256_of(path)}
    recorded = {}
    if (folder / hugging_face.KIT_FILE).is_file():
        recorded = hugging_face.read_json(folder / hugging_face.KIT_FILE).get("sha256", {})
        checksums |= {name: sha256_of(folder / name) for name in recorded if (folder / name).is_file()}
    if expected is not None:
        recorded = recorded | {path.name: expected}
    for name, digest in recorded.items():
        if checksums.get(name) != digest:
            raise CheckpointError(
                f"{folder / name} must be the file that was recorded, with sha256 {digest}. "
                f"Received: {checksums.get(name, 'no such file')}. It was changed or damaged since; fetch it again."
            )
    return checksums


def _notes_on_config(config, values):
    writer = "Hugging Face's" if wrote_by_hugging_face(values) else "Google's"
    act, epsilon = values.get("hidden_act", "nothing"), values.get("layer_norm_eps", "nothing")
    return [
        f"hidden_act={config.hidden_act} (config.json says {act!r} and is {writer})",
        f"layer_norm_eps={config.layer_norm_eps:g} (config.json says {epsilon})",
    ]


def _notes_on_vocabulary(tokenizer, config, folder):
    words, rows = tokenizer.vocab_size, config.vocab_size
    if words > rows:
        raise CheckpointError(
            f"{folder / hugging_face.VOCABULARY} must not hold more words than the word table has rows. "
            f"Received: {words} words, vocab_size={rows}. The files do not belong together."
        )
    return [f"vocab.txt holds {words} words, the word table {rows} rows (padded)"] if words < rows else []
