"""`PretrainingBatches`: the shards of `write_pretraining_data` as batches for a `BertPretrainer`.

    shards ──► groups of shards ──► rows in random order ──► batches of similar length ──► masks ──► inputs, labels

Every epoch permutes the shards and reads some at a time, whose rows are permuted in memory; so memory does not grow
with the corpus. Shard order, row order and masks are functions of the seed and the position in the data.
"""

import hashlib
import json
import math
from pathlib import Path

import tensorflow as tf

from keras_bert_kit.data.manifest import check_shards, read_manifest
from keras_bert_kit.data.masking import IGNORED_LABEL, mask_tokens, vocabulary_tables
from keras_bert_kit.data.order import order_by_length, permuted
from keras_bert_kit.data.shards import COMPRESSION

_GROUP_SHARDS = 8
_GROUP_TOKENS = 1 << 24  # at most so many in memory, unless one shard has more

# Only TensorFlow ops in these functions, so AutoGraph has nothing to convert, which takes seconds.
_as_it_is = tf.autograph.experimental.do_not_convert


class PretrainingBatches:
    """Endless batches of pre-training data; each epoch has every row once, in another order and with other masks.

    Rows follow each other in one endless stream, epoch after epoch, and batch i is rows i·batch_size up to
    (i + 1)·batch_size of it. So every batch is full, a batch may begin in one epoch and end in the next, and the
    position, rows seen, says exactly what comes next. (From a position that is no multiple of `batch_size`, the first
    batch is the rest of the one that was begun.)

    Args:
        folder: what `write_pretraining_data` wrote. All checksums are compared at once.
        batch_size: rows a batch, over all replicas.
        seed: of the order, and of dynamic masking.
        static_shapes: whether all batches have the same shape, as XLA and TPUs like it. Default: rows are padded to the
            longest of their batch, and rows of similar length share one.

    Attributes:
        folder: `pathlib.Path`.
        settings: `PretrainingSettings` that the data was made with.
        tokenizer: `BertTokenizer` that it was made with.
        num_examples: int, rows an epoch.
        num_sequences: int, pairs of segments an epoch; more than rows where they are packed.
        fingerprint: str, differs where the data does.

    Raises:
        DataError: The folder is unfinished, or a shard is missing or damaged.
    """

    def __init__(self, folder, batch_size: int, seed: int = 0, static_shapes: bool = False):
        if batch_size < 1:
            raise ValueError(f"batch_size must be 1 or more. Received: {batch_size=}.")
        self.folder = Path(folder).expanduser()
        manifest, self.settings, self.tokenizer = read_manifest(self.folder)
        check_shards(self.folder, manifest)
        self.batch_size = batch_size
        self.seed = seed
        self.static_shapes = static_shapes
        self.num_examples = manifest["rows"]
        self.num_sequences = manifest["sequences"]
        self.fingerprint = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
        shards = [shard for shard in manifest["shards"] if shard["rows"]]  # a block of odd characters gives no row
        self._paths = [str(self.folder / shard["name"]) for shard in shards]
        self._rows = tf.constant([shard["rows"] for shard in shards], tf.int64)
        self._max_sequences = manifest["max_sequences_per_row"]
        self._tables = vocabulary_tables(self.tokenizer)

    @property
    def steps_per_epoch(self) -> int:
        """Batches until every row has been seen."""
        return -(-self.num_examples // self.batch_size)

    def batches_from(self, position: int = 0) -> tf.data.Dataset:
        """Returns an endless data set of the batches after the first `position` rows.

        Only the shards that are needed are read.

        Args:
            position: rows seen since the start of the first epoch.

        Returns:
            Data set of pairs (inputs, labels), see `once`.
        """
        epochs = tf.data.Dataset.range(position // self.num_examples, tf.int64.max)
        groups = epochs.flat_map(_as_it_is(self._groups_of_epoch))
        groups = groups.filter(_as_it_is(lambda number, start, shards: start + self._rows_in(shards) > position))
        loaded = groups.map(_as_it_is(lambda *group: self._rows_of_group(*group, position))).prefetch(1)
        rows = loaded.flat_map(tf.data.Dataset.from_tensor_slices)
        if rest := -position % self.batch_size:
            first = rows.take(rest).batch(rest)
            batches = first.concatenate(rows.skip(rest).batch(self.batch_size))
        else:
            batches = rows.batch(self.batch_size, drop_remainder=True)
        return self._as_inputs(batches, position // self.batch_size)

    def once(self, batch_size: int | None = None) -> tf.data.Dataset:
        """Returns a finite data set for evaluation: every row once, always in the same batches with the same masks.

        Args:
            batch_size: rows a batch; the last one may have less. Default: that of the constructor.

        Returns:
            Data set of pairs (inputs, labels), for B rows of S tokens with P places of masked tokens and N sequences:
                inputs: `input_word_ids`, `input_mask`, `input_type_ids` int32 (B, S), `masked_lm_positions` int32
                    (B, P); of packed rows also `input_sequence_ids` int32 (B, S), 1 in the first sequence of a row, 2
                    in the second, 0 on padding, and `next_sentence_positions` int32 (B, N), where sequences start.
                labels: `mlm_logits` int32 (B, P), the tokens that were masked; `nsp_logits` int32 (B,), of packed rows
                    (B, N): 0 where segment B follows A, 1 where it is from elsewhere. -100 where there is no target.
        """
        rows = tf.data.TFRecordDataset(self._paths, COMPRESSION)
        return self._as_inputs(rows.batch(batch_size or self.batch_size), 0)

    def _groups_of_epoch(self, epoch):
        """Data set of (number of the group, its first row in the stream, numbers of its shards)."""
        order = permuted(len(self._paths), self.seed + 2, epoch)
        tokens = tf.reduce_max(self._rows) * self.settings.sequence_length
        size = tf.clip_by_value(_GROUP_TOKENS // tokens, 1, _GROUP_SHARDS)
        count = -(-len(self._paths) // size)

        def group(number):
            before, shards = order[: number * size], order[number * size : (number + 1) * size]
            return epoch * count + number, epoch * self.num_examples + self._rows_in(before), shards

        return tf.data.Dataset.range(count).map(_as_it_is(group))

    def _rows_in(self, shards):
        return tf.reduce_sum(tf.gather(self._rows, shards))

    def _rows_of_group(self, number, start, shards, position):
        """The records of a group in their order, without those before the position: string (rows,)."""
        records = tf.data.TFRecordDataset(tf.gather(self._paths, shards), COMPRESSION)
        records = records.batch(self._rows_in(shards)).get_single_element()
        if self.static_shapes:  # length makes no difference
            order = permuted(tf.size(records, tf.int64), self.seed, number)
        else:
            ids = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
            lengths = tf.io.parse_example(records, {"input_ids": ids})["input_ids"].row_lengths()
            head = tf.minimum(-start % self.batch_size, tf.size(records, tf.int64))
            order = order_by_length(lengths, self.batch_size, self.seed, number, head)
        return tf.gather(records, order[tf.maximum(position - start, 0) :])

    def _as_inputs(self, batches, first_number):
        numbers = tf.data.Dataset.range(first_number, tf.int64.max)
        numbered = tf.data.Dataset.zip(numbers, batches)
        inputs_of = _as_it_is(self._inputs_of)
        return numbered.map(inputs_of, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def _inputs_of(self, number, records):
        """(inputs, labels) of the batch with this number."""
        row = _parse(records)
        ids, nsp_labels = row["input_ids"], row["next_sentence_labels"]
        shape = [None, self.settings.sequence_length if self.static_shapes else None]
        word_ids = ids.to_tensor(self.tokenizer.pad_id, shape=shape)
        inputs = {
            "input_mask": tf.sequence_mask(ids.row_lengths(), tf.shape(word_ids)[1], tf.int32),
            "input_type_ids": row["segment_ids"].to_tensor(0, shape=shape),
        }
        if self.settings.packed:
            sequences = [None, self._max_sequences if self.static_shapes else None]
            lengths = row["sequence_lengths"]
            inputs["input_sequence_ids"] = _sequence_ids(lengths, ids.row_splits).to_tensor(0, shape=shape)
            starts = tf.cumsum(lengths.to_tensor(0, shape=sequences), axis=1, exclusive=True)
            labels = nsp_labels.to_tensor(IGNORED_LABEL, shape=sequences)
            inputs["next_sentence_positions"] = tf.where(labels == IGNORED_LABEL, 0, starts)
        else:
            labels = tf.ensure_shape(nsp_labels.values, records.shape)
        masked = self._static_masks(row, word_ids) if self.settings.masking == "static" else None
        word_ids, positions, mlm_labels = masked or self._dynamic_masks(number, word_ids, inputs)
        inputs |= {"input_word_ids": word_ids, "masked_lm_positions": positions}
        return inputs, {"mlm_logits": mlm_labels, "nsp_logits": labels}

    @property
    def _num_predictions(self):
        """Masked tokens that a row may have: a sequence of n tokens has at most the share of n, rounded, or 1."""
        of_row = math.ceil(self.settings.sequence_length * self.settings.masked_lm_prob) + self._max_sequences
        return min(self.settings.max_predictions_per_seq * self._max_sequences, of_row)

    def _dynamic_masks(self, number, word_ids, inputs):
        word_ids, positions, labels = mask_tokens(
            word_ids,
            inputs.get("input_sequence_ids", inputs["input_mask"]),
            tf.stack([tf.constant(self.seed, tf.int64), number]),
            tables=self._tables,
            masked_share=self.settings.masked_lm_prob,
            max_predictions=self.settings.max_predictions_per_seq,
            whole_word=self.settings.whole_word,
            num_predictions=self._num_predictions,
        )
        # Masking forgets how many rows there are, which XLA wants to know.
        shape = [word_ids.shape[0], self._num_predictions]
        positions, labels = tf.ensure_shape(positions, shape), tf.ensure_shape(labels, shape)
        if not self.static_shapes:
            longest = tf.reduce_max(tf.math.count_nonzero(labels != IGNORED_LABEL, axis=1))
            positions, labels = positions[:, :longest], labels[:, :longest]
        return word_ids, positions, labels

    def _static_masks(self, row, word_ids):
        shape = [None, self._num_predictions if self.static_shapes else None]
        positions = row["masked_lm_positions"].to_tensor(0, shape=shape)
        return word_ids, positions, row["masked_lm_ids"].to_tensor(IGNORED_LABEL, shape=shape)


def _parse(records):
    """The features of serialized examples, int32 ragged (batch, values)."""
    feature = tf.io.RaggedFeature(tf.int64)
    names = ("input_ids", "segment_ids", "next_sentence_labels", "masked_lm_positions", "masked_lm_ids")
    parsed = tf.io.parse_example(records, dict.fromkeys((*names, "sequence_lengths"), feature))
    return {name: tf.cast(values, tf.int32) for name, values in parsed.items()}


def _sequence_ids(lengths, row_splits):
    """For each token of packed rows the number of its sequence in the row, from 1, ragged as the tokens are."""
    numbers = tf.ragged.range(1, lengths.row_lengths() + 1)
    return tf.RaggedTensor.from_row_splits(tf.repeat(numbers.values, lengths.values), row_splits)
