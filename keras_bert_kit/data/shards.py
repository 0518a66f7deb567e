"""Shards on the disk: a block of text becomes one compressed file of records, whole or absent.

shard-00003-of-00012.tfrecord.gz    TFRecords of `tf.train.Example`, GZIP
shard-00003-of-00012.json           its checksum and statistics, written after it: so a shard with it is finished
"""

import functools
import json
import os

import tensorflow as tf

from keras_bert_kit.data.documents import read_documents
from keras_bert_kit.data.manifest import write_json
from keras_bert_kit.data.pretraining import records_of_block
from keras_bert_kit.data.pretraining_statistics import BlockStatistics
from keras_bert_kit.files import file_written_beside, sha256_of
from keras_bert_kit.text import BertTokenizer

COMPRESSION = "GZIP"
_COMPRESSION_LEVEL = 2  # half the time of the usual 6, files 5 % larger


def shard_name(number, count):
    """The file name of a shard, `number` from 0."""
    return f"shard-{number:05d}-of-{count:05d}.tfrecord.gz"


def make_shard(folder, number, count, block, tokenizer, settings):
    """Makes one shard, from its text to the disk.

    Args:
        folder: `pathlib.Path`.
        number, count: int, which shard of how many.
        block: of `plan_blocks`.
        tokenizer: `BertTokenizer`.
        settings: `PretrainingSettings`.

    Returns:
        Dictionary with `name`, `sha256`, `sequences`, `rows`, `max_sequences_per_row` and `statistics` of the shard.

    Raises:
        OSError: It cannot be written; nothing of it is left.
    """
    documents = read_documents(block, settings.text_format)
    records, statistics = records_of_block(number, documents, tokenizer, settings)
    path = folder / shard_name(number, count)
    try:
        with file_written_beside(path) as beside:
            write_records(beside, records)
            shard = {
                "name": path.name,
                "sha256": sha256_of(beside),
                "sequences": statistics.sequences,
                "rows": statistics.rows,
                "max_sequences_per_row": _max_sequences(records) if settings.packed and records else 1,
                "statistics": statistics.to_dict(),
            }
        write_json(_statistics_path(path), shard)
    except (OSError, tf.errors.OpError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise OSError(f"{path} cannot be written: {reason}.") from None
    return shard


def make_shard_elsewhere(job, tokenizer_config, settings):
    """`make_shard` in another process or on another machine, from arguments that travel.

    Args:
        job: the first four arguments of `make_shard`.
        tokenizer_config: str, of `config_of`.
        settings: `PretrainingSettings`.
    """
    return make_shard(*job, _tokenizer_of(tokenizer_config), settings)


def config_of(tokenizer):
    """A tokenizer as a str."""
    return json.dumps(tokenizer.get_config())


@functools.lru_cache(maxsize=1)  # one shard after the other needs the same
def _tokenizer_of(config):
    return BertTokenizer.from_config(json.loads(config))


def write_records(path, records):
    """Writes a compressed TFRecord file, the same bytes for the same records.

    Args:
        path: `pathlib.Path`.
        records: iterable of bytes.
    """
    options = tf.io.TFRecordOptions(compression_type=COMPRESSION, compression_level=_COMPRESSION_LEVEL)
    with tf.io.TFRecordWriter(str(path), options) as writer:
        for record in records:
            writer.write(record)


def finished_shard(folder, number, count):
    """Returns what `make_shard` returned for a shard that is there and whole, else None."""
    path = folder / shard_name(number, count)
    try:
        shard = json.loads(_statistics_path(path).read_text(encoding="utf-8"))
        BlockStatistics.from_dict(shard["statistics"])
        whole = shard["name"] == path.name and shard["sha256"] == sha256_of(path)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return shard if whole else None


def _max_sequences(records):
    feature = tf.io.RaggedFeature(tf.int64)
    lengths = tf.io.parse_example(records, {"sequence_lengths": feature})["sequence_lengths"]
    return int(lengths.bounding_shape(axis=1))


def _statistics_path(path):
    return path.with_name(path.name.split(".")[0] + ".json")
