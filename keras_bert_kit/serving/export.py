"""`export_for_serving`: a trained classifier as a SavedModel that takes raw text and needs nothing on the server.

    saved_models/ag_news/          the model's name, what TF Serving is pointed at
        README.md, …               how to start a server, and how to ask it: server_files.py
        1/  2/  3/                 versions; the largest number is served
            saved_model.pb         the graph: tokenizer, encoder, head, class names
            variables/             the weights, where they are not constants of the graph
            assets.extra/kit.json  class names, checksums, ops: for `Predictor` and for people
            assets.extra/tf_serving_warmup_requests    what a server runs first: warm_up.py

The graph holds ops of core TensorFlow only, so that TF Serving, Triton, the C library and plain Python load it alike.
"""

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path

import tensorflow as tf

from keras_bert_kit.errors import ExportError
from keras_bert_kit.files import folder_written_beside, sha256_of
from keras_bert_kit.serving import calibration, check, int8
from keras_bert_kit.serving.ops import require_core_ops
from keras_bert_kit.serving.questions import probabilities_of, question_for
from keras_bert_kit.serving.requirements import (
    dtype_in_graph,
    longest,
    num_bytes,
    require_answers,
    require_exportable,
    require_place,
    require_settings,
    require_strings,
)
from keras_bert_kit.serving.server_files import served_name, write_server_files
from keras_bert_kit.serving.signatures import Signatures, metadata_of
from keras_bert_kit.serving.warm_up import write_warm_up
from keras_bert_kit.text import BertPacker
from keras_bert_kit.version import __version__

DEFAULT_SIGNATURES = ("serving_default", "metadata")
KIT_FILE = Path("assets.extra", "kit.json")  # TF Serving leaves assets.extra alone

# Up to this size weights in half precision become constants of the graph: oneDNN keeps them in its order, and a server
# fuses LayerNorm too. In float32 that changes little (docs/performance.md). Loading constants takes a multiple of their
# size in memory, and above 2 GB they cannot be written at all.
LARGEST_CONSTANTS_BYTES = 512 * 2**20


def export_for_serving(
    model,
    pack,
    path,
    *,
    signatures=DEFAULT_SIGNATURES,
    long_text="truncate",
    max_windows=64,
    embedding="mean",
    freeze=None,
    weights_source="",
    quantize=None,
    calibration_texts=None,
):
    """Writes a classifier, with its tokenizer, as the next version of a served model.

    The signature `serving_default` takes `text`, string (batch,), and returns
        `label`: string (batch,), the name of the most probable class;
        `probabilities`: float32 (batch, classes), each row sums to 1;
        `logits`: float32 (batch, classes).
    A batch is padded to its longest text, whatever `pack` does in training. The other signatures are in signatures.py.

    The version is written beside its place, loaded in a fresh process that has only TensorFlow, compared there with
    `model`, every signature, and only then renamed into its place. A server that watches the folder sees all of it or
    nothing; after an error, or a kill at any moment, the versions are what they were.

    Args:
        model: `BertClassifier`, with its trained weights. In half precision if it computes in it: load it with
            `load_pretrained(folder, dtype="mixed_bfloat16")`.
        pack: `BertPacker` that the model was trained with.
        path: folder of the model, which holds its versions, for example "saved_models/ag_news". Made if absent.
        signatures: sequence of str: "serving_default", which must be there, and "pairs", "token_ids", "embed",
            "examples", "metadata".
        long_text: what becomes of texts longer than the model. "truncate": cut where `pack` cuts them. "window":
            windows over the text, each sharing half of its tokens with the next, and the average of their probabilities
            (of their embeddings). Pairs are truncated in any case.
        max_windows: int, windows of a text at most; what is behind them is left out. Limits what one request can cost.
        embedding: what `embed` returns: "mean", the average of the last layer over all tokens, or "cls", its [CLS].
        freeze: bool, whether weights become constants of the graph, for which loading takes a multiple of their size in
            memory. None: where answers are faster so, in half precision, if the weights are not too large
            (`LARGEST_CONSTANTS_BYTES`).
        weights_source: str, where the weights come from; `metadata` says so.
        quantize: None, or "int8": the dense layers of the blocks multiply in int8, by an op that is not of core
            TensorFlow (`int8.py`). Answers in batches come faster, and some are others.
        calibration_texts: list of str, with "int8": some hundreds of texts of the kind that will be asked. Half of them
            say how large numbers become, half are compared; `assets.extra/kit.json` says what was found.

    Returns:
        Path of the version written: `path`/1, or one more than the largest number there.

    Raises:
        ExportError: model and pack do not fit together, an argument is out of range, the folder cannot be written to,
            the graph holds an op that servers lack, or the exported model answers something else than `model`. Nothing
            is left behind.

    Example:

    >>> version = export_for_serving(classifier, pack, "saved_models/ag_news")
    >>> Predictor(version).predict("Shares rise after the merger")[0].label
    'Business'
    """
    path = Path(path)
    require_exportable(model, pack)
    require_strings(model.class_names, weights_source)
    require_settings(model, signatures, long_text, max_windows, embedding, freeze, quantize, calibration_texts)
    for_ranges, compared = calibration.require_int8(model, calibration_texts, freeze) if quantize else ((), ())
    require_place(path)
    half_precision = model.compute_dtype != "float32"
    if freeze is None:
        freeze = half_precision and num_bytes(model) <= LARGEST_CONSTANTS_BYTES
    trained = Signatures(
        model,
        BertPacker(pack.tokenizer, None, max_sequence_length=longest(pack), truncation=pack.truncation),
        [],
        metadata_of(model, __version__, _vocabulary_sha256(pack), weights_source, quantize and calibration.REQUIREMENT),
        long_text,
        max_windows,
        embedding,
    )
    questions = {name: question_for(trained, name) for name in signatures}
    require_answers(questions["serving_default"].expected["probabilities"], model.class_names)
    if quantize:
        in_graph, weights = calibration.int8_classifier(model, trained.pack, for_ranges)
    else:
        in_graph, weights = model, _weights(model, freeze)
    served = dataclasses.replace(trained, model=in_graph, weights=weights)
    version = path / str(max(version_numbers(path), default=0) + 1)
    try:
        with _absent_folders_removed(path), folder_written_beside(version) as beside:
            _write_saved_model(served, signatures, beside)
            ops = require_core_ops(beside, ops_beside_core(quantize))
            write_warm_up(beside, served_name(path), signatures, longest(pack), served.pack)
            found = _compare(beside, trained, list(questions.values()), quantize, compared)
            _write_kit_file(served, signatures, beside, ops, model.dtype_policy.name, quantize, found)
    except FileExistsError as error:
        raise ExportError(
            f"A version must be free until it is published. Received: {version}, which another export published "
            "meanwhile. Leave it there, and run this export again for the next version. Nothing was changed."
        ) from error
    except (OSError, tf.errors.OpError) as error:
        raise ExportError(
            f"The folder must be one that can be written to. Received: {str(path)!r}, {error}. Nothing was changed."
        ) from error
    try:
        write_server_files(path, signatures, found)
    except OSError as error:
        raise ExportError(f"{version} is published; README.md or settings beside it are not: {error}.") from error
    return version


def ops_beside_core(quantize):
    """The ops that a version may hold besides those of core TensorFlow. `quantize`: "int8" or None."""
    return (int8.OP,) if quantize else ()


def version_numbers(path):
    """The numbers of the versions in a model's folder, as list of int; empty if there is no such folder."""
    path = Path(path)
    names = [child.name for child in path.iterdir()] if path.is_dir() else []
    return [int(name) for name in names if name.isascii() and name.isdigit()]


@contextlib.contextmanager
def _absent_folders_removed(path):
    """Takes folders that an export made on its way to `path` away again if it fails."""
    absent = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        yield
    except BaseException:
        for folder in absent:
            with contextlib.suppress(OSError):  # not made, or no longer empty
                folder.rmdir()
        raise


def _write_saved_model(served, signatures, folder):
    """Writes the graph from text to answers."""
    module = tf.Module()
    module.weights = [copy for _, copy in served.weights]
    tf.saved_model.save(module, str(folder), signatures=served.functions(signatures))


def _compare(folder, trained, questions, quantize, texts):
    """Compares the version, in a fresh process, with the trained model; its `Int8Comparison` if it is in int8."""
    bounds = check.tolerance_of(trained.model.dtype_policy.name, quantize)
    if quantize is None:
        check.require_same_answers(folder, questions, trained.model.class_names, *bounds)
        return None
    answers = check.fresh_answers(folder, questions + calibration.questions_of(texts))["answers"]
    of_questions = {loader: rows[: len(questions)] for loader, rows in answers.items()}
    check.largest_difference(of_questions, questions, trained.model.class_names, *bounds)
    expected = probabilities_of(trained, texts)
    return [calibration.compare(expected, rows[len(questions) :]) for rows in answers.values()][0]


def _weights(model, constants):
    """Pairs of each variable of a model and a copy of it for the graph: a constant, or a variable."""
    make = tf.constant if constants else (lambda value: tf.Variable(value, trainable=False))
    with tf.device("CPU:0"):
        return [(variable, make(tf.cast(variable, dtype_in_graph(model, variable)))) for variable in model.variables]


def _vocabulary_sha256(pack):
    return hashlib.sha256("".join(f"{token}\n" for token in pack.tokenizer.vocabulary).encode()).hexdigest()


def _write_kit_file(served, signatures, folder, ops, dtype, quantize, found):
    """Writes what the graph itself does not say."""
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    constants = not any(isinstance(copy, tf.Variable) for _, copy in served.weights)
    content = served.metadata_strings | {
        "tensorflow_version": tf.__version__,
        "max_sequence_length": longest(served.pack),
        "truncation": served.pack.truncation,
        "signatures": list(signatures),
        "long_text": served.long_text,
        "max_windows": served.max_windows,
        "embedding": served.embedding,
        "dtype": dtype,
        "quantize": quantize,
        "int8": found and dataclasses.asdict(found),
        "weights": "constants" if constants else "variables",
        "ops": ops,
        "sha256": {path.relative_to(folder).as_posix(): sha256_of(path) for path in written},
    }
    path = folder / KIT_FILE
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
