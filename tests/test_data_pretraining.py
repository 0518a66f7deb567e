"""Records for pre-training against Google's: golden instances, the algorithm in plain Python, and what must hold."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_kit.data.documents import plan_blocks, read_documents
from keras_bert_kit.data.next_sentence import IS_NEXT, IS_RANDOM, TokenizedDocuments, draw_pairs, truncated_lengths
from keras_bert_kit.data.pretraining import BlockStatistics, PretrainingSettings, records_of_block, tokenize_documents
from keras_bert_kit.errors import DataError
from keras_bert_kit.text import BertTokenizer

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
import google_pretraining_data as google

WORDS = [f"word{i}" for i in range(300)]
LETTERS = [*"word0123456789"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "word", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
TOKENIZER = BertTokenizer(VOCABULARY)


def random_documents(num_documents, seed=0, sentences=12, words=12):
    """Documents of sentences of 1 to `words` words; every word is of two to four pieces."""
    rng = np.random.default_rng(seed)

    def sentence():
        return " ".join(rng.choice(WORDS, rng.integers(1, words + 1)))

    return [[sentence() for _ in range(rng.integers(1, sentences + 1))] for _ in range(num_documents)]


def parsed(record):
    features = tf.train.Example.FromString(record).features.feature
    return {name: np.array(feature.int64_list.value) for name, feature in features.items()}


def make(documents, tokenizer=TOKENIZER, block_number=0, **settings):
    """(parsed records, statistics, settings)."""
    settings = PretrainingSettings(**settings)
    records, statistics = records_of_block(block_number, documents, tokenizer, settings)
    return [parsed(record) for record in records], statistics, settings


def as_instance(record, vocabulary):
    """A record as the golden file has them."""
    return {
        "tokens": [vocabulary[i] for i in record["input_ids"]],
        "segment_ids": record["segment_ids"].tolist(),
        "is_random_next": bool(record["next_sentence_labels"][0]),
        "masked_lm_positions": record["masked_lm_positions"].tolist(),
        "masked_lm_labels": [vocabulary[i] for i in record["masked_lm_ids"]],
    }


def check_instance(instance, settings):
    """What holds for every instance, the golden ones among them. Returns the tokens before masking."""
    tokens, positions = list(instance["tokens"]), instance["masked_lm_positions"]
    limit = min(settings.max_predictions_per_seq, max(1, int(round(len(tokens) * settings.masked_lm_prob))))
    assert positions == sorted(set(positions))
    assert len(positions) == len(instance["masked_lm_labels"])
    assert len(positions) <= limit
    if not settings.whole_word:
        assert len(positions) == limit
    for position, label in zip(positions, instance["masked_lm_labels"], strict=True):
        tokens[position] = label
    separators = [i for i, token in enumerate(tokens) if token == "[SEP]"]
    assert tokens[0] == "[CLS]" and tokens.count("[CLS]") == 1
    assert len(separators) == 2 and separators[1] == len(tokens) - 1
    assert 1 < separators[0] < len(tokens) - 2, "both segments have tokens"
    assert len(tokens) <= settings.sequence_length
    assert instance["segment_ids"] == [0] * (separators[0] + 1) + [1] * (len(tokens) - separators[0] - 1)
    if settings.whole_word:
        for i in range(1, len(tokens)):
            if tokens[i].startswith("##") and tokens[i - 1] not in ("[CLS]", "[SEP]"):
                assert (i in positions) == (i - 1 in positions), "words are never split"
    return tokens


def near(found, expected, num_drawn, deviations=4.5):
    """Whether a share of so many draws is what it should be."""
    return abs(found - expected) < deviations * np.sqrt(expected * (1 - expected) / num_drawn)


def distance(lengths, others):
    """The largest distance between two cumulative distributions (Kolmogorov and Smirnov)."""
    grid = np.arange(1 + max(max(lengths), max(others)))
    shares = [np.searchsorted(np.sort(x), grid, side="right") / len(x) for x in (lengths, others)]
    return abs(shares[0] - shares[1]).max()


# Against golden instances and Google's algorithm on real text


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden" / "generated_pretraining_instances.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def uncased(shared):
    return BertTokenizer.from_vocab_file(shared / "data" / "vocab" / "uncased_vocab.txt")


@pytest.fixture(scope="module")
def real_documents(shared):
    """Documents of a novel and of encyclopedia articles, about 300,000 tokens."""
    folder = shared / "data" / "pretrain_text"
    paths = [folder / "wikitext-2" / "valid.txt", folder / "gutenberg_1342_pride_and_prejudice.txt"]
    (block,) = plan_blocks(paths, "plain")
    return read_documents(block, "plain")


def settings_of(config, **more):
    return dict(
        sequence_length=config["max_seq_length"],
        max_predictions_per_seq=config["max_predictions_per_seq"],
        masked_lm_prob=config["masked_lm_prob"],
        short_seq_prob=config["short_seq_prob"],
        whole_word=config["whole"],
        dupe_factor=config["dupe_factor"],
        masking="static",
        **more,
    )


@pytest.mark.parametrize("name", ["default_seq128", "wwm_seq128", "short_seq32"])
def test_golden_instances(shared, golden, uncased, name):
    """On the text of the golden file: the same invariants, and lengths and labels distributed as there."""
    (run,) = (run for run in golden["runs"] if run["name"] == name)
    path = shared / "data" / "pretrain_text" / "bert_sample_text.txt"
    documents = read_documents(plan_blocks([path])[0])
    theirs, ours = run["instances"], []
    settings = settings_of(run["config"])
    for instance in theirs:
        check_instance(instance, PretrainingSettings(**settings))
    for seed in range(30 // run["config"]["dupe_factor"]):
        records, _, made_with = make(documents, uncased, seed=seed, **settings)
        ours += [as_instance(record, uncased.vocabulary) for record in records]
    for instance in ours:
        check_instance(instance, made_with)

    lengths, their_lengths = ([len(instance["tokens"]) for instance in side] for side in (ours, theirs))
    # 1.63 / sqrt(n): one of a hundred samples is farther away.
    assert distance(lengths, their_lengths) < 1.63 / np.sqrt(len(theirs))
    random_share = np.mean([instance["is_random_next"] for instance in ours])
    assert near(np.mean([instance["is_random_next"] for instance in theirs]), random_share, len(theirs), 3)
    masked, their_masked = (sum(len(i["masked_lm_positions"]) for i in side) for side in (ours, theirs))
    assert masked / sum(lengths) == pytest.approx(their_masked / sum(their_lengths), rel=0.02)


def test_golden_truncation(golden):
    for case in golden["truncate_seq_pair"]:
        lengths = truncated_lengths(np.array([case["len_a"]]), np.array([case["len_b"]]), case["max_num_tokens"])
        assert [int(x[0]) for x in lengths] == [len(case["tokens_a"]), len(case["tokens_b"])]


@pytest.mark.parametrize("whole_word", [False, True])
def test_shares_on_real_text(real_documents, uncased, whole_word):
    """At least 100,000 tokens of real text: share masked, 80/10/10, labels; the statistics say the same."""
    records, statistics, settings = make(
        real_documents, uncased, masking="static", dupe_factor=1, whole_word=whole_word, seed=4
    )
    instances = [as_instance(record, uncased.vocabulary) for record in records]
    originals = [check_instance(instance, settings) for instance in instances]
    num_tokens, num_masked = sum(map(len, originals)), sum(len(i["masked_lm_positions"]) for i in instances)
    assert statistics.text_tokens > 100_000 and num_tokens > 100_000
    assert num_masked / num_tokens == pytest.approx(0.15, abs=0.003)
    kinds = {"mask": 0, "kept": 0, "random": 0}
    for instance in instances:
        for position, label in zip(instance["masked_lm_positions"], instance["masked_lm_labels"], strict=True):
            token = instance["tokens"][position]
            kinds["mask" if token == "[MASK]" else "kept" if token == label else "random"] += 1
    for kind, share in (("mask", 0.8), ("kept", 0.1), ("random", 0.1)):
        assert near(kinds[kind] / num_masked, share, num_masked), kind
    counted = (statistics.masked_mask, statistics.masked_kept, statistics.masked_random)
    assert counted == tuple(kinds.values())
    assert (statistics.tokens, statistics.predictions) == (num_tokens, num_masked)


def test_as_googles_algorithm_on_real_text(real_documents, uncased, tmp_path):
    """Pairs of the same text by Google's loop: the same number, lengths and labels within what chance explains."""
    documents = [[s for s in document if google.basic_words(s)] for document in real_documents[-80:]]
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join("\n".join(document) for document in documents), encoding="utf-8")
    records, statistics, settings = make(documents, uncased, masking="static", dupe_factor=4, sequence_length=64)
    vocabulary = {token: i for i, token in enumerate(uncased.vocabulary)}
    theirs = google.make_instances([path], vocabulary, settings)
    for tokens, segments, is_random, positions, labels in theirs[:500]:
        names = ("tokens", "segment_ids", "is_random_next", "masked_lm_positions", "masked_lm_labels")
        check_instance(dict(zip(names, (tokens, segments, is_random, positions, labels), strict=True)), settings)
    assert statistics.tokens > 100_000
    # A short document makes many sequences at once, so numbers vary more than those of independent draws.
    assert len(records) == pytest.approx(len(theirs), rel=0.15)
    lengths, their_lengths = [len(r["input_ids"]) for r in records], [len(instance[0]) for instance in theirs]
    assert distance(lengths, their_lengths) < 0.05
    a_lengths = [int((r["segment_ids"] == 0).sum()) for r in records]
    assert distance(a_lengths, [instance[1].count(0) for instance in theirs]) < 0.05
    their_share = np.mean([instance[2] for instance in theirs])
    assert abs(statistics.random_pairs_share - their_share) < 0.03
    found, expected = (np.bincount(x, minlength=65)[64] / len(x) for x in (lengths, their_lengths))
    assert abs(found - expected) < 0.04, "share of full sequences"


# What must hold, on made-up text


def test_labels_tell_whether_b_follows_a():
    """FC33, FC37: label 0 where B is what comes after A, label 1 where it is from another document."""
    documents = random_documents(30)
    texts = tokenize_documents(documents, TOKENIZER)
    document_of = np.repeat(np.arange(30), np.diff(texts.sentence_bounds[texts.document_bounds]))
    pairs = draw_pairs(texts, 10_000, 0.0, np.random.default_rng(0))  # so long that nothing is truncated
    from_a, from_b = document_of[pairs.a_start], document_of[pairs.b_start]
    is_next = pairs.labels == IS_NEXT
    assert (IS_NEXT, IS_RANDOM) == (0, 1)
    assert (pairs.b_start == pairs.a_start + pairs.a_length)[is_next].all()
    assert (from_a == from_b)[is_next].all()
    assert (from_a != from_b)[~is_next].all()
    assert is_next.any() and (~is_next).any()


def test_half_of_the_pairs_are_random_where_there_is_a_choice():
    documents = random_documents(200, sentences=60, words=3)
    texts = tokenize_documents(documents, TOKENIZER)
    pairs = draw_pairs(texts, 60, 0.1, np.random.default_rng(0))
    assert len(pairs.labels) > 1000
    assert abs(pairs.labels.mean() - 0.5) < 0.06  # a little above: the last chunks may be a single sentence


def test_nothing_of_a_document_is_lost_without_random_pairs():
    """Of one document alone all pairs are true ones; a single sentence left over makes no pair."""
    texts = TokenizedDocuments(np.arange(40, dtype=np.int32), np.arange(0, 41, 4), np.array([0, 10]))
    pairs = draw_pairs(texts, 8, 0.0, np.random.default_rng(0))
    assert (pairs.labels == IS_NEXT).all()
    assert pairs.a_start.tolist() == [0, 8, 16, 24, 32]
    assert (pairs.a_length + pairs.b_length).tolist() == [8] * 5


def test_short_sequences():
    """Without short targets every full chunk fills the sequence; with nothing but short ones lengths are all over."""
    documents = random_documents(60, sentences=200, words=2)
    full, _, _ = make(documents, short_seq_prob=0.0, sequence_length=32)
    short, _, _ = make(documents, short_seq_prob=1.0, sequence_length=32)
    share_full = np.mean([len(record["input_ids"]) == 32 for record in full])
    share_short = np.mean([len(record["input_ids"]) == 32 for record in short])
    assert share_full > 0.95
    assert share_short < 0.6
    with_prob, _, _ = make(random_documents(300, sentences=60, words=2), short_seq_prob=0.1, sequence_length=32)
    assert 0.05 < np.mean([len(record["input_ids"]) < 32 for record in with_prob]) < 0.4


def test_truncation_takes_tokens_from_both_ends():
    """Spans stay whole; of tokens too many, as many go from the front as from the back."""
    texts = TokenizedDocuments(np.arange(60_000, dtype=np.int32), np.arange(0, 60_001, 30), np.arange(0, 2001, 2))
    pairs = draw_pairs(texts, 20, 0.0, np.random.default_rng(0))
    front = pairs.a_start % 30
    assert ((pairs.a_length + pairs.b_length) == 20).all()
    assert (pairs.a_length == 10).all()
    assert abs(front.mean() - 10) < 4.5 * np.sqrt(20 * 0.25 / len(front))
    assert front.std() == pytest.approx(np.sqrt(20 * 0.25), rel=0.1)


def test_truncated_lengths_are_those_of_the_loop():
    for max_tokens in (2, 7, 10):
        a, b = np.meshgrid(np.arange(1, 25), np.arange(1, 25))
        found = truncated_lengths(a, b, max_tokens)
        for row in np.ndindex(a.shape):
            length_a, length_b = a[row], b[row]
            while length_a + length_b > max_tokens:
                if length_a > length_b:
                    length_a -= 1
                else:
                    length_b -= 1
            assert (found[0][row], found[1][row]) == (length_a, length_b)


@pytest.mark.parametrize("whole_word", [False, True])
def test_static_records(whole_word):
    documents = random_documents(40)
    options = {"masking": "static", "dupe_factor": 2, "whole_word": whole_word, "sequence_length": 48}
    records, statistics, settings = make(documents, **options)
    assert set(records[0]) == {
        "input_ids", "segment_ids", "next_sentence_labels", "masked_lm_positions", "masked_lm_ids"
    }  # fmt: skip
    ids = tokenize_documents(documents, TOKENIZER).ids.tolist()
    text = " ".join(map(str, ids))
    for record in records:
        tokens = check_instance(as_instance(record, VOCABULARY), settings)
        end = tokens.index("[SEP]")
        for segment in (tokens[1:end], tokens[end + 1 : -1]):
            assert " ".join(str(VOCABULARY.index(token)) for token in segment) in text, "labels are the original tokens"
    assert statistics.documents == 40
    assert statistics.rows == statistics.sequences == len(records)
    assert statistics.masked_mask + statistics.masked_kept + statistics.masked_random == statistics.predictions
    assert statistics.next_pairs + statistics.random_pairs == len(records)
    assert sum(statistics.lengths) == len(records)
    assert sum(length * count for length, count in enumerate(statistics.lengths)) == statistics.tokens
    assert statistics.places == 48 * len(records)


def test_dynamic_records_are_not_masked():
    records, statistics, settings = make(random_documents(20))
    assert set(records[0]) == {"input_ids", "segment_ids", "next_sentence_labels"}
    assert not any((record["input_ids"] == TOKENIZER.mask_id).any() for record in records)
    limits = [min(20, max(1, round(len(record["input_ids"]) * 0.15))) for record in records]
    assert statistics.predictions == sum(limits)
    assert settings.dupe_factor == 1


@pytest.mark.parametrize("masking", ["dynamic", "static"])
def test_packed_rows_hold_the_same_sequences(masking):
    documents = random_documents(60, sentences=4, words=3)
    options = {"masking": masking, "dupe_factor": 1, "sequence_length": 64, "short_seq_prob": 0.5}
    packed, statistics, settings = make(documents, packed=True, **options)
    single, single_statistics, _ = make(documents, **options)
    assert statistics.sequences == single_statistics.sequences == len(single)
    assert statistics.rows == len(packed) < 0.8 * len(single)
    assert statistics.padding_share < single_statistics.padding_share
    found = []
    for row in packed:
        lengths = row["sequence_lengths"]
        assert len(row["input_ids"]) == lengths.sum() <= 64
        assert len(row["next_sentence_labels"]) == len(lengths)
        bounds = np.cumsum(lengths)
        for start, end, label in zip(bounds - lengths, bounds, row["next_sentence_labels"], strict=True):
            record = {name: row[name][start:end] for name in ("input_ids", "segment_ids")}
            if masking == "static":
                inside = (row["masked_lm_positions"] >= start) & (row["masked_lm_positions"] < end)
                record["masked_lm_positions"] = row["masked_lm_positions"][inside] - start
                record["masked_lm_ids"] = row["masked_lm_ids"][inside]
                tokens = check_instance(as_instance({**record, "next_sentence_labels": [label]}, VOCABULARY), settings)
            else:
                tokens = [VOCABULARY[i] for i in record["input_ids"]]
            found.append((" ".join(tokens), int(label)))
    if masking == "dynamic":
        expected = [
            (" ".join(VOCABULARY[i] for i in r["input_ids"]), int(r["next_sentence_labels"][0])) for r in single
        ]
        assert sorted(found) == sorted(expected)


def test_a_block_is_a_function_of_number_and_settings():
    documents = random_documents(20)
    settings = PretrainingSettings(masking="static", dupe_factor=2, seed=3)
    first = records_of_block(5, documents, TOKENIZER, settings)
    assert records_of_block(5, documents, TOKENIZER, settings) == first
    assert set(records_of_block(6, documents, TOKENIZER, settings)[0]) != set(first[0])
    other_seed = PretrainingSettings(masking="static", dupe_factor=2, seed=4)
    assert set(records_of_block(5, documents, TOKENIZER, other_seed)[0]) != set(first[0])


def test_documents_without_tokens_are_left_out():
    documents = [["word1 word2"], ["\x01\x02", ""], [], ["word3", " ", "word4"]]
    texts = tokenize_documents(documents, TOKENIZER)
    assert texts.document_bounds.tolist() == [0, 1, 3]
    assert len(texts.sentence_bounds) == 4
    _, statistics, _ = make(documents)
    assert (statistics.documents, statistics.sentences) == (2, 3)
    assert make([["\x01"], [""]])[0] == []
    assert make([["\x01"], [""]], masking="static", packed=True)[0] == []


def test_unknown_tokens_are_counted():
    _, statistics, _ = make([["word1 zebra", "word2"], ["wombat zebra"]])
    assert statistics.unknown_tokens == 3


# Settings and statistics


def test_settings():
    settings = PretrainingSettings(sequence_length=512, masking="static")
    assert settings.max_predictions_per_seq == 77
    assert settings.dupe_factor == 10
    assert PretrainingSettings.from_dict(settings.to_dict()) == settings
    assert PretrainingSettings().max_predictions_per_seq == 20
    with pytest.raises(DataError, match="Received: 'sequence_lenght'. Did you mean 'sequence_length'"):
        PretrainingSettings.from_dict({"sequence_lenght": 128})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sequence_length": 4}, "sequence_length must be 5 or more.*Received: sequence_length=4"),
        ({"max_predictions_per_seq": 126}, "max_predictions_per_seq must be from 1 to 125. Received"),
        ({"masked_lm_prob": 0.0}, "masked_lm_prob must be between 0 and 1. Received: masked_lm_prob=0.0"),
        ({"short_seq_prob": 1.5}, "short_seq_prob must be from 0 to 1"),
        ({"masking": "sometimes"}, "masking must be one of .*'dynamic', 'static'.*Received: masking='sometimes'"),
        ({"dupe_factor": 0}, "dupe_factor must be 1 or more"),
        ({"text_format": "html"}, "text_format must be one of .*'sentences', 'plain'"),
        ({"block_bytes": 0}, "block_bytes must be 1 or more"),
        ({"seed": -1}, "seed must be 0 or more. Received: seed=-1"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        PretrainingSettings(**settings)


def test_statistics_add_up():
    a = BlockStatistics(documents=2, tokens=30, places=40, sequences=4, random_pairs=1, lengths=(0, 1))
    b = BlockStatistics(
        documents=3, tokens=10, places=40, sequences=4, random_pairs=3, predictions=4, lengths=(1, 2, 3)
    )
    total = a + b
    assert (total.documents, total.tokens, total.lengths) == (5, 40, (1, 3, 3))
    assert (total.padding_share, total.masked_share, total.random_pairs_share) == (0.5, 0.1, 0.5)
    assert BlockStatistics.from_dict(json.loads(json.dumps(total.to_dict()))) == total
    assert BlockStatistics().padding_share == 0
