"""Records for pre-training: from the documents of a block to serialized examples.

    documents ──► tokens ──► pairs ──► sequences ──► rows ──► (masks) ──► records
                tokenizer  next_sentence  [CLS] A [SEP] B [SEP]  packing  masking   tf.train.Example

What a block becomes depends on its text, its number, the tokenizer and the settings alone; so blocks may be worked on
by any number of processes, on one machine or by Apache Beam.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_bert_kit.data.masking import IGNORED_LABEL, mask_tokens, num_to_mask, vocabulary_tables
from keras_bert_kit.data.next_sentence import SPECIAL_TOKENS_PER_PAIR, TokenizedDocuments, draw_pairs
from keras_bert_kit.data.packing import pack_sequences
from keras_bert_kit.data.pretraining_settings import PretrainingSettings
from keras_bert_kit.data.pretraining_statistics import BlockStatistics
from keras_bert_kit.data.tf_example import serialize_examples

_SENTENCES_PER_BATCH = 2048
_ROWS_PER_BATCH = 2048
# Batches of one shape, so that one graph is made.
_mask_in_graph = tf.function(mask_tokens, autograph=False)


class Rows(NamedTuple):
    """Rows of one or, packed, several sequences. Arrays are flat, and `…splits` say where each row begins in them.

    ids, segments: int32 (tokens,).
    splits: int64 (rows + 1,).
    sequence_lengths, labels: int64 (sequences,), tokens of each sequence, and whether its B is random.
    sequence_splits: int64 (rows + 1,).
    """

    ids: np.ndarray
    segments: np.ndarray
    splits: np.ndarray
    sequence_lengths: np.ndarray
    labels: np.ndarray
    sequence_splits: np.ndarray


class Predictions(NamedTuple):
    """Masked places of each row and the tokens that were there: int (predictions,), flat; splits int64 (rows + 1,)."""

    positions: np.ndarray
    ids: np.ndarray
    splits: np.ndarray


def records_of_block(block_number: int, documents, tokenizer, settings: PretrainingSettings):
    """Makes the records of a block.

    A record is a serialized `tf.train.Example` with int64 lists, unpadded, by Google's names: `input_ids`,
    `segment_ids` and `next_sentence_labels` (0: B follows A). With static masking `input_ids` are masked, and
    `masked_lm_positions` and `masked_lm_ids` say where and what was there. In packed rows `sequence_lengths` has the
    tokens of each sequence, and `next_sentence_labels` a value for each.

    Args:
        block_number: int, number of the block in the corpus.
        documents: list of documents, each a list of sentences (str).
        tokenizer: BertTokenizer.
        settings: PretrainingSettings.

    Returns:
        (list of bytes in random order, BlockStatistics).
    """
    texts = tokenize_documents(documents, tokenizer)
    statistics = BlockStatistics(
        documents=len(texts.document_bounds) - 1,
        sentences=len(texts.sentence_bounds) - 1,
        text_tokens=len(texts.ids),
        unknown_tokens=int((texts.ids == tokenizer.unk_id).sum()),
    )
    records = []
    for dupe in range(settings.dupe_factor):
        rng = np.random.default_rng([settings.seed, block_number, dupe])
        rows = draw_rows(texts, tokenizer, settings, rng)
        statistics += _count(rows, settings)
        predictions = None
        if settings.masking == "static":
            masked_ids, predictions = mask_rows(rows, tokenizer, settings, rng)
            statistics += _count_masked(masked_ids, rows, predictions, tokenizer.mask_id)
            rows = rows._replace(ids=masked_ids)
        records += _serialized(rows, predictions, settings.packed)
    order = np.random.default_rng([settings.seed, block_number]).permutation(len(records))
    return [records[i] for i in order], statistics


def tokenize_documents(documents, tokenizer) -> TokenizedDocuments:
    """Tokenizes documents. Sentences without tokens and documents without sentences are left out."""
    sentences = [sentence for document in documents for sentence in document]
    counts = np.array([len(document) for document in documents], np.int64)
    ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for start in range(0, len(sentences), _SENTENCES_PER_BATCH):
        batch = tokenizer(tf.constant(sentences[start : start + _SENTENCES_PER_BATCH]))
        ids.append(batch.values.numpy())
        lengths.append(batch.row_lengths().numpy())
    lengths = np.concatenate(lengths)
    document_of = np.repeat(np.arange(len(counts)), counts)[lengths > 0]
    counts = np.bincount(document_of, minlength=len(counts))
    return TokenizedDocuments(np.concatenate(ids), _splits(lengths[lengths > 0]), _splits(counts[counts > 0]))


def draw_rows(texts: TokenizedDocuments, tokenizer, settings: PretrainingSettings, rng) -> Rows:
    """Draws next-sentence pairs and lays them out: [CLS] A [SEP] B [SEP], segment 0 up to the first [SEP]."""
    max_tokens = settings.sequence_length - SPECIAL_TOKENS_PER_PAIR
    pairs = draw_pairs(texts, max_tokens, settings.short_seq_prob, rng)
    lengths = pairs.a_length + pairs.b_length + SPECIAL_TOKENS_PER_PAIR
    order, sequence_splits = _row_order(lengths, settings)
    pairs, lengths = type(pairs)(*(values[order] for values in pairs)), lengths[order]

    starts = _splits(lengths)
    ids = np.full(starts[-1], tokenizer.sep_id, np.int32)
    ids[starts[:-1]] = tokenizer.cls_id
    ids[_ranges(starts[:-1] + 1, pairs.a_length)] = texts.ids[_ranges(pairs.a_start, pairs.a_length)]
    b_place = starts[:-1] + pairs.a_length + 2
    ids[_ranges(b_place, pairs.b_length)] = texts.ids[_ranges(pairs.b_start, pairs.b_length)]
    segments = np.zeros(starts[-1], np.int32)
    segments[_ranges(b_place, pairs.b_length + 1)] = 1
    return Rows(ids, segments, starts[sequence_splits], lengths, pairs.labels, sequence_splits)


def mask_rows(rows: Rows, tokenizer, settings: PretrainingSettings, rng):
    """Masks once and for all.

    Returns:
        (int32 (tokens,) masked ids, Predictions).
    """
    tables = vocabulary_tables(tokenizer)
    masked_ids, positions, labels, counts = [rows.ids[:0]], [rows.ids[:0]], [rows.ids[:0]], [rows.ids[:0]]
    for start in range(0, len(rows.splits) - 1, _ROWS_PER_BATCH):
        end = min(start + _ROWS_PER_BATCH, len(rows.splits) - 1)
        ids, sequence_ids = _padded(rows, start, end, (_ROWS_PER_BATCH, settings.sequence_length), tokenizer.pad_id)
        masked, places, tokens = _mask_in_graph(
            ids,
            sequence_ids,
            rng.integers(2**31, size=2),
            tables=tables,
            masked_share=settings.masked_lm_prob,
            max_predictions=settings.max_predictions_per_seq,
            whole_word=settings.whole_word,
        )
        found = tokens.numpy() != IGNORED_LABEL
        masked_ids.append(masked.numpy()[sequence_ids > 0])
        positions.append(places.numpy()[found])
        labels.append(tokens.numpy()[found])
        counts.append(found.sum(axis=1)[: end - start])
    positions, labels = np.concatenate(positions), np.concatenate(labels)
    return np.concatenate(masked_ids), Predictions(positions, labels, _splits(np.concatenate(counts)))


def _row_order(lengths, settings: PretrainingSettings):
    """Which sequences follow each other, int64 (sequences,), and where among them each row begins, (rows + 1,)."""
    if not settings.packed:
        return np.arange(len(lengths)), np.arange(len(lengths) + 1)
    rows = pack_sequences(lengths.tolist(), settings.sequence_length)
    return np.array([number for row in rows for number in row], np.int64), _splits([len(row) for row in rows])


def _padded(rows: Rows, first: int, end: int, shape: tuple[int, int], pad_id: int):
    """Rows `first` up to `end` as matrices, int32: ids, and the number of the sequence in its row, 0 on padding."""
    splits, sequences = rows.splits[first : end + 1], slice(*rows.sequence_splits[[first, end]])
    is_token = np.zeros(shape, bool)
    is_token[: end - first] = np.arange(shape[1]) < np.diff(splits)[:, None]
    ids = np.full(shape, pad_id, np.int32)
    ids[is_token] = rows.ids[splits[0] : splits[-1]]
    numbers = 1 + _ranges(np.zeros(end - first, np.int64), np.diff(rows.sequence_splits[first : end + 1]))
    sequence_ids = np.zeros(shape, np.int32)
    sequence_ids[is_token] = np.repeat(numbers, rows.sequence_lengths[sequences])
    return ids, sequence_ids


def _serialized(rows: Rows, predictions: Predictions | None, packed: bool) -> list[bytes]:
    """One `tf.train.Example` a row."""
    features = {
        "input_ids": (rows.ids, rows.splits),
        "segment_ids": (rows.segments, rows.splits),
        "next_sentence_labels": (rows.labels, rows.sequence_splits),
    }
    if packed:
        features["sequence_lengths"] = (rows.sequence_lengths, rows.sequence_splits)
    if predictions is not None:
        features["masked_lm_positions"] = (predictions.positions, predictions.splits)
        features["masked_lm_ids"] = (predictions.ids, predictions.splits)
    return serialize_examples(features)


def _count(rows: Rows, settings: PretrainingSettings) -> BlockStatistics:
    """Counts of rows before static masking."""
    num_random, dynamic = int(rows.labels.sum()), settings.masking == "dynamic"
    predictions = num_to_mask(rows.sequence_lengths, settings.masked_lm_prob, settings.max_predictions_per_seq)
    return BlockStatistics(
        sequences=len(rows.labels),
        rows=len(rows.splits) - 1,
        tokens=len(rows.ids),
        places=(len(rows.splits) - 1) * settings.sequence_length,
        next_pairs=len(rows.labels) - num_random,
        random_pairs=num_random,
        predictions=int(predictions.numpy().sum()) if dynamic else 0,
        lengths=tuple(np.bincount(rows.sequence_lengths, minlength=settings.sequence_length + 1).tolist()),
    )


def _count_masked(masked_ids, rows: Rows, predictions: Predictions, mask_id: int) -> BlockStatistics:
    """Counts of static masking."""
    places = predictions.positions + np.repeat(rows.splits[:-1], np.diff(predictions.splits))
    became = masked_ids[places]
    num_mask, num_kept = int((became == mask_id).sum()), int((became == predictions.ids).sum())
    return BlockStatistics(
        predictions=len(became),
        masked_mask=num_mask,
        masked_kept=num_kept,
        masked_random=len(became) - num_mask - num_kept,
    )


def _splits(lengths) -> np.ndarray:
    """Where each part begins, and the end: int64 (parts + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _ranges(starts, lengths) -> np.ndarray:
    """The numbers from each start on, `length` of each, one range after the other."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)
