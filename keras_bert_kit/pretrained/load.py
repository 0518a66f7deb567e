"""`load_pretrained` and `inspect_pretrained`: read, rename, check, assign; and a report of what was done."""

import contextlib
import dataclasses
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from keras_bert_kit.errors import CheckpointError, KitError
from keras_bert_kit.files import sha256_of
from keras_bert_kit.pretrained.assign import assign, read_arrays, start_values, variables_of
from keras_bert_kit.pretrained.build import Pretrained, models_for
from keras_bert_kit.pretrained.check import faults_error, plan_of, tensor_bytes_of
from keras_bert_kit.pretrained.checksums import require_checksums, start_checksums
from keras_bert_kit.pretrained.find import located
from keras_bert_kit.pretrained.report import LoadReport
from keras_bert_kit.pretrained.verify import require_runnable, verify_outputs


def load_pretrained(source, *, heads=None, allow_missing=(), allow_unused=(), sha256=None, dtype=None, verify=False):
    """Loads pretrained weights, a tokenizer and the heads that are there, or says why not.

    Args:
        source: path of a folder, or of a .tar.gz or .zip of one; or a handle of TF-Hub, Kaggle (`kaggle://…`) or
            Hugging Face (`hf://owner/name`), which is fetched once. What kind it is, is found by content:
            * Hugging Face (config.json, vocab.txt and model.safetensors, in one file or in shards, pytorch_model.bin
              or tf_model.h5), for example one written by `save_pretrained`, or a sentence-transformers folder with a
              BERT in it;
            * the original BERT (bert_config.json, vocab.txt, bert_model.ckpt.*);
            * TF-Hub, a TF2 SavedModel of a BERT encoder, with or without `.mlm`, or a TF1 module;
            * TF-Models, an object checkpoint, perhaps with bert_config.json and vocab.txt;
            * keras-hub, a preset (config.json, tokenizer.json, model.weights.h5), perhaps with a task.
        heads: tuple of the heads to load, of `pooler`, `masked_lm`, `next_sentence`, `classifier`,
            `token_classifier`, `question_answering` and `multiple_choice`; the pooler goes along where a head needs
            it. Default: all that are there.
        allow_missing: names of tensors that the source may lack, as the error spells them; their variables start
            random, and the report lists them. `"pooler"` stands for those of the pooler, if there is none; by default
            the encoder then has none. Default: every variable must be filled.
        allow_unused: names of tensors that may be left out, as the error spells them. Default: every tensor must be
            used, or be left out by a rule that the report states.
        sha256: str, the checksum that the archive or the file of weights must have; where the weights lie in several
            files, a dictionary from file name to checksum. Default: not compared.
        dtype: str or dtype policy of the models, for example `"mixed_bfloat16"`. Default: Keras' global policy.
        verify: bool, whether to run the source too and compare its outputs with ours: only for SavedModels of
            TF-Hub, and only for those that you trust, since it executes their graph. By default no code of a source
            is executed.

    Returns:
        `Pretrained`.

    Raises:
        CheckpointError: Files are missing or damaged, tensors do not fit (all faults in one message), a head is not
            there, or outputs differ from those of the source.
        ConfigError: config.json describes no BERT.
        VocabularyError: vocab.txt is not one.
        ValueError: `source` is no path; unknown head; or `verify` for a source that holds no graph, or in half
            precision.

    Example:

    >>> bert = load_pretrained("all-MiniLM-L6-v2")
    >>> print(bert.report)
    """
    options = {"heads": heads, "allow_missing": allow_missing, "allow_unused": allow_unused}
    with _examined(source, sha256, **options) as (found, read, plan, report):
        if verify:
            require_runnable(found, dtype)
        with ThreadPoolExecutor(1) as reader:  # files are read while the models are made, which takes as long
            # Random numbers are drawn here, in one order, and not in the thread: a seed gives one model.
            starts = {} if plan.faults else start_values(plan, read.config)
            reading = reader.submit(read_arrays, read.arrays, plan, read.copies, starts)
            if not plan.faults:
                encoder, models = models_for(dataclasses.replace(read, heads=list(plan.heads)), plan.new_pooler, dtype)
        filled, faults = reading.result()
        if plan.faults or faults:
            raise faults_error(found.path, plan.faults + faults)
        assign(filled, variables_of(encoder, *models.values()))
        difference = verify_outputs(found, encoder, models.get("pretrainer")) if verify else None
        report = dataclasses.replace(report(), verified=difference)
    return Pretrained(encoder, read.tokenizer, read.config, report, **models)


def inspect_pretrained(source):
    """Says what `load_pretrained` would do: reads and checks all but the numbers, and makes no model.

    Args:
        source: see `load_pretrained`.

    Returns:
        `LoadReport`.

    Raises:
        CheckpointError, ConfigError, VocabularyError: See `load_pretrained`. Numbers that are not finite are not found.
    """
    with _examined(source) as (found, _, plan, report):
        if plan.faults:
            raise faults_error(found.path, plan.faults)
        return report()


@contextlib.contextmanager
def _examined(source, sha256=None, **options):
    """Yields a source, what it holds, what becomes of that, and a function that makes the report of it."""
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source must be a path or a handle. Received: {source!r}.")
    source = os.path.expanduser(source)
    path = Path(source)
    if path.is_file() and isinstance(sha256, str):  # an archive: it is compared as it is, before it is opened
        require_checksums(path.parent, {path.name: sha256}, {path.name: sha256_of(path)})
        sha256 = None
    with located(source) as found, ThreadPoolExecutor(1) as pool:
        checksums = start_checksums(found, sha256, pool)  # known ones are compared before anything is believed
        read = _read(found)
        notes = [*found.notes, *read.notes, *_notes_on_vocabulary(read, found.path)]
        plan = plan_of(read, found.path, **options)
        yield found, read, plan, lambda: _report_of(source, found, read, plan, notes, checksums())


def _read(found):
    """What the format reads. Errors name the source, also those of parts that know of no file."""
    try:
        return found.format.read(found.path)
    except KitError as error:
        if str(found.path) in str(error):
            raise
        raise type(error)(f"{found.path}: {error}") from None


def _report_of(source, found, read, plan, notes, checksums):
    return LoadReport(
        source=found.origin or str(source),
        kind=found.kind,
        config=read.config.to_dict(),
        parameters=sum(math.prod(read.arrays.shape(row.theirs)) for row in plan.rows),
        tensor_bytes=tensor_bytes_of(read.arrays),
        heads=plan.heads,
        notes=(*notes, *_notes_on_pooler(plan)),
        assigned=tuple(read.arrays.name_in_file(row.theirs) for row in plan.rows),
        random=tuple(row.theirs for row in plan.missing),
        left_out=plan.left_out,
        sha256=checksums,
    )


def _notes_on_vocabulary(read, path):
    if read.tokenizer is None:
        return ["no vocabulary in the source: there is no tokenizer"]
    words, rows = read.tokenizer.vocab_size, read.config.vocab_size
    if words > rows:
        raise CheckpointError(
            f"The vocabulary must not hold more words than the word table has rows. "
            f"Received: {words} words, vocab_size={rows} in {path}. The files do not belong together."
        )
    return [f"the vocabulary holds {words} words, the word table {rows} rows (padded)"] if words < rows else []


def _notes_on_pooler(plan):
    if plan.new_pooler:
        return ["no pooler in the source: a new, random one"]
    return [] if "pooler" in plan.heads else ["no pooler in the encoder: the source has none, or it was not asked for"]
