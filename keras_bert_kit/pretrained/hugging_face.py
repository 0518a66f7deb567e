"""What the files of a Hugging Face folder say about the model: where it is, its heads, class names and tokenizer.

The folder holds `config.json`, `model.safetensors` and `vocab.txt`, as Transformers' `save_pretrained` writes them. A
sentence-transformers folder holds the same, in the subfolder that its `modules.json` names.
"""

import json

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.text import BertTokenizer

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocab.txt"
KIT_FILE = "kit.json"  # what our own writer adds

# Architectures whose `classifier` is another head than ours, and is left out with this reason.
_OTHER_HEADS = {
    "BertForTokenClassification": "head of token classification, which is not loaded yet",
    "BertForMultipleChoice": "head of multiple choice, which is not loaded yet",
}
_QA_HEAD = "head of question answering, which is not loaded yet"


def read_json(path):
    """Returns the JSON object in a file.

    Raises:
        CheckpointError: It is no JSON object in UTF-8.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} must hold JSON in UTF-8. Received: {error}.") from None
    if not isinstance(values, dict) and path.name != "modules.json":
        raise CheckpointError(f"{path} must hold a JSON object. Received: a {type(values).__name__}.")
    return values


def find_folder(source):
    """Finds the folder with the three files: `source` itself, or where its `modules.json` points.

    Args:
        source: `pathlib.Path`.

    Returns:
        Pair of that path and the kind of folder, a str.

    Raises:
        CheckpointError: No such folder, or files are missing; the message lists them.
    """
    if not source.is_dir():
        what = "a file" if source.exists() else "no such path"
        raise CheckpointError(
            f"source must be a folder with {CONFIG}, {WEIGHTS} and {VOCABULARY}. Received: {str(source)!r} ({what}). "
            "Handles of hubs and archives are not read yet: download and unpack first."
        )
    folder, kind = source, "Hugging Face folder"
    if (source / "modules.json").is_file():
        kind = "sentence-transformers folder"
        modules = read_json(source / "modules.json")
        paths = [module["path"] for module in modules if str(module.get("type")).endswith("Transformer")]
        if len(paths) != 1 or ".." in paths[0]:
            raise CheckpointError(f"{source / 'modules.json'} must name one Transformer. Received: {paths}.")
        folder = source / paths[0]
    missing = [name for name in (CONFIG, WEIGHTS, VOCABULARY) if not (folder / name).is_file()]
    if missing:
        found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        raise CheckpointError(
            f"The folder {str(folder)!r} must hold {CONFIG}, {WEIGHTS} and {VOCABULARY}. "
            f"Missing: {', '.join(missing)}. Found: {', '.join(found[:12]) or 'nothing'}. "
            "Copy the missing files there; other formats are not read yet."
        )
    return folder, kind


def heads_of(names, values):
    """Finds the heads by the tensors that are there.

    Args:
        names: the tensors' names in today's spelling.
        values: dictionary of config.json.

    Returns:
        Pair of the list of groups of `names.HUGGING_FACE` besides the encoder, and a dictionary from the names of
        tensors of heads that are left out to the reason.
    """
    architecture = (values.get("architectures") or [""])[0]
    groups = [
        group
        for group, name in (
            ("pooler", "pooler.dense.weight"),
            ("masked_lm", "cls.predictions.bias"),
            ("next_sentence", "cls.seq_relationship.weight"),
            ("classifier", "classifier.weight"),
        )
        if name in names
    ]
    left_out = {name: _QA_HEAD for name in names if name.startswith("qa_outputs.")}
    if "classifier" in groups and (architecture in _OTHER_HEADS or "pooler" not in groups):
        reason = _OTHER_HEADS.get(architecture, "a classifier without a pooler is no head of BERT that is loaded yet")
        left_out |= {name: reason for name in names if name.startswith("classifier.")}
        groups.remove("classifier")
    if "next_sentence" in groups and "masked_lm" not in groups:
        reason = "a next-sentence head without a masked-LM head is not loaded yet"
        left_out |= {name: reason for name in names if name.startswith("cls.seq_relationship.")}
        groups.remove("next_sentence")
    return groups, left_out


def class_names_of(values, num_classes):
    """Finds the names of the classes. The classifier's tensor decides how many there are.

    Args:
        values: dictionary of config.json, whose `id2label` may hold the names.
        num_classes: int, rows of the classifier.

    Returns:
        Pair of a list of names and a note for the report.

    Raises:
        CheckpointError: There are more names than classes, so labels would fall out of range.
    """
    id2label = values.get("id2label") or {}
    names = [str(id2label[key]) for key in sorted(id2label, key=lambda key: (len(str(key)), str(key)))]
    if len(names) > num_classes:
        raise CheckpointError(
            f"{CONFIG} must not name more classes than the classifier has rows. Received: {len(names)} names in "
            f"id2label, {num_classes} rows in classifier.weight. Correct id2label."
        )
    if len(names) == num_classes and len(set(names)) == num_classes:
        return names, f"{num_classes} class names from id2label: {', '.join(names[:10])}"
    names = [f"LABEL_{i}" for i in range(num_classes)]
    return names, f"{num_classes} classes called LABEL_0, …: id2label holds {len(id2label)} names"


def read_tokenizer(folder):
    """Makes the tokenizer from vocab.txt, tokenizer_config.json and, where the kit wrote the folder, kit.json.

    Returns:
        Pair of a `BertTokenizer` and a note that says whether texts are lower-cased, and why.

    Raises:
        CheckpointError: A setting that our tokenizer does not have.
        VocabularyError: From the vocabulary.
    """
    path = folder / "tokenizer_config.json"
    settings = read_json(path) if path.is_file() else {}
    if settings.get("tokenize_chinese_chars") is False:
        raise CheckpointError(f"{path}: tokenize_chinese_chars=false is not supported. Received: false.")
    if settings.get("do_lower_case") is not None:
        lowercase, why = bool(settings["do_lower_case"]), "do_lower_case in tokenizer_config.json"
    else:
        lowercase = not _has_capitals(folder / VOCABULARY)
        why = f"vocab.txt holds {'no ' if lowercase else ''}words with capital letters"
    strip_accents = settings.get("strip_accents")
    ours = read_json(folder / KIT_FILE).get("tokenizer", {}) if (folder / KIT_FILE).is_file() else {}
    tokenizer = BertTokenizer.from_vocab_file(folder / VOCABULARY, lowercase, strip_accents, **ours)
    accents = "" if strip_accents is None else f", strip_accents={strip_accents}"
    return tokenizer, f"lowercase={lowercase}{accents} ({why})"


def _has_capitals(path):
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return any(line != line.lower() for line in lines if not line.startswith("["))
