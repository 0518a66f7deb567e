"""`write_pretraining_data`: text files to a folder of shards, on all cores, going on where an earlier run was cut.

    text files ──► blocks ──► documents ──► pairs of sentences ──► records ──► one shard a block, manifest, card

Each shard is a function of its block and of the settings alone, so it is the same on any number of processes.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import multiprocessing
import os
import threading
from pathlib import Path

import tensorflow as tf

from keras_bert_kit.data.documents import count_cut_documents, plan_blocks
from keras_bert_kit.data.manifest import finish, plan_of, start_or_go_on, write_json
from keras_bert_kit.data.masking import vocabulary_tables
from keras_bert_kit.data.pretraining_settings import PretrainingSettings
from keras_bert_kit.data.pretraining_statistics import BlockStatistics
from keras_bert_kit.data.shards import config_of, finished_shard, make_shard, make_shard_elsewhere
from keras_bert_kit.data.statistics_card import statistics_card
from keras_bert_kit.errors import DataError
from keras_bert_kit.files import file_written_beside, require_writable
from keras_bert_kit.text import BertTokenizer


@dataclasses.dataclass(frozen=True)
class PretrainingData:
    """What `write_pretraining_data` made.

    Attributes:
        folder: `pathlib.Path`.
        num_shards: int.
        num_kept_shards: int, of them, those that an earlier run had finished.
        num_sequences: int, pairs of segments.
        num_rows: int, of them or of what they were packed into.
        statistics: `BlockStatistics` of all shards.
    """

    folder: Path
    num_shards: int
    num_kept_shards: int
    num_sequences: int
    num_rows: int
    statistics: BlockStatistics

    def __str__(self):
        kept = f", {self.num_kept_shards} of them from before" if self.num_kept_shards else ""
        return (
            f"{self.num_sequences:,} pairs in {self.num_rows:,} rows; shards: {self.num_shards}{kept}; "
            f"written to {self.folder}, see README.md there"
        )


def write_pretraining_data(
    paths, tokenizer, out, settings: PretrainingSettings, processes: int | None = None, report=print
) -> PretrainingData:
    """Writes the shards of a corpus for `PretrainingBatches`, with a manifest and a card that describes them.

    A run that was cut short (killed, disk full) goes on when it is started again with the same arguments: shards that
    are finished and whole are kept. With more than one process, the program that calls this must be importable, as
    `multiprocessing` wants it: under `if __name__ == "__main__":`, or in a notebook.

    Args:
        paths: text files, see `plan_blocks`.
        tokenizer: `BertTokenizer`, with [MASK] in its vocabulary.
        out: folder to make, or to go on in.
        settings: `PretrainingSettings`.
        processes: how many work at once; the shards do not depend on it. Default: one per core.
        report: function that takes a line for people.

    Returns:
        `PretrainingData`.

    Raises:
        DataError: The text cannot be used, see `plan_blocks`; `out` holds other things; no pair could be made.
        OSError: A shard cannot be written. Those that are finished stay.
    """
    from tqdm import tqdm

    work = begin(paths, tokenizer, out, settings)
    processes = max(1, min(processes or os.cpu_count(), len(work.jobs)))
    report(f"{work}; processes: {processes}")
    bar = tqdm(total=len(work.blocks), initial=len(work.kept), unit="shard", disable=None, leave=False)
    try:
        with contextlib.closing(_shards_of(work.jobs, tokenizer, settings, processes)) as shards:
            for _ in shards:
                bar.update()
    except OSError as error:
        raise OSError(
            f"{error} {len(work.finished())} of {len(work.blocks)} shards are finished and kept: run the same command "
            "again, it goes on."
        ) from None
    finally:
        bar.close()
    return work.finish()


@dataclasses.dataclass(frozen=True)
class Work:
    """What there is to do for a corpus, whoever does it.

    Attributes:
        folder: `pathlib.Path`.
        plan: dictionary of `plan_of`.
        blocks: list of blocks, one a shard.
        tokenizer: `BertTokenizer`.
        kept: dictionary from number of the shard to what `make_shard` returned for it in an earlier run.
    """

    folder: Path
    plan: dict
    blocks: list
    tokenizer: BertTokenizer
    kept: dict

    def __str__(self):
        kept = f", {len(self.kept)} of them finished before" if self.kept else ""
        return f"shards: {len(self.blocks)}{kept}"

    @property
    def jobs(self) -> list:
        """The first four arguments of `make_shard` for each shard that is not there."""
        count = len(self.blocks)
        return [(self.folder, n, count, block) for n, block in enumerate(self.blocks) if n not in self.kept]

    def finished(self) -> dict:
        """The shards that are there and whole, as `kept`."""
        count = len(self.blocks)
        return {n: shard for n in range(count) if (shard := finished_shard(self.folder, n, count))}

    def finish(self) -> PretrainingData:
        """Adds statistics, the card and the manifest to the shards, which are all there.

        Raises:
            DataError: The shards hold no pair.
            OSError: Shards are missing.
        """
        shards = list(self.finished().values())
        if len(shards) < len(self.blocks):
            raise OSError(f"{self.folder} has {len(shards)} of {len(self.blocks)} shards. Run the same command again.")
        found = sum((BlockStatistics.from_dict(shard["statistics"]) for shard in shards), BlockStatistics())
        found = dataclasses.replace(found, cut_documents=count_cut_documents(self.blocks))
        if not found.sequences:
            raise DataError(
                f"The text must give at least one pair of sentences. Received: {found.documents} documents with "
                f"{found.sentences} sentences that have a token. Are there words between the empty lines?"
            )
        write_json(self.folder / "statistics.json", found.to_dict())
        with file_written_beside(self.folder / "README.md") as beside:
            beside.write_text(statistics_card(self.plan, found), encoding="utf-8")
        finish(self.folder, self.plan, self.tokenizer, shards)
        return PretrainingData(self.folder, len(shards), len(self.kept), found.sequences, found.rows, found)


def begin(paths, tokenizer, out, settings) -> Work:
    """Checks text and output folder, and finds out what is to be done; arguments as in `write_pretraining_data`."""
    out = Path(out).expanduser()
    require_writable(out)
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    paths = [os.path.expanduser(path) for path in paths]
    vocabulary_tables(tokenizer)  # refuses a vocabulary without [MASK]
    blocks = plan_blocks(paths, settings.text_format, settings.block_bytes)
    plan = plan_of(paths, tokenizer, settings)
    start_or_go_on(out, plan)
    for leftover in out.glob(".tmp-*"):  # of a run that was killed
        leftover.unlink(missing_ok=True)
    work = Work(out, plan, blocks, tokenizer, {})
    return dataclasses.replace(work, kept=work.finished())


def _shards_of(jobs, tokenizer, settings, processes):
    """Makes shards, yields what `make_shard` returns for each, in order."""
    if processes == 1:
        yield from (make_shard(*job, tokenizer, settings) for job in jobs)
        return
    make = functools.partial(make_shard_elsewhere, tokenizer_config=config_of(tokenizer), settings=settings)
    context = multiprocessing.get_context("spawn")  # TensorFlow's threads do not survive a fork
    pool = concurrent.futures.ProcessPoolExecutor(processes, context, _start_worker)
    try:
        yield from pool.map(make, jobs)
    except concurrent.futures.process.BrokenProcessPool:
        raise OSError(
            "A process that makes shards ended early. Was it killed, is memory short, or does the program begin its "
            'work outside of `if __name__ == "__main__":`?'
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker():
    """Prepares a process of the pool, which ends when the process that started it does, however that comes about."""
    parent = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    tf.config.threading.set_intra_op_parallelism_threads(1)  # as many processes as cores: one thread each is best
    tf.config.threading.set_inter_op_parallelism_threads(1)
