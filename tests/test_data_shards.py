"""Shards: the same bytes however they are made, kept when a run is cut short, and refused when they are damaged."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pretraining_corpus as corpus
import pytest
import tensorflow as tf

from keras_bert_kit.data import PretrainingBatches, shards, write_pretraining_data
from keras_bert_kit.errors import DataError, VocabularyError
from keras_bert_kit.text import BertTokenizer


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return corpus.write_corpus(tmp_path_factory.mktemp("source") / corpus.FOLDER / "Bücher 一.txt")


@pytest.fixture(scope="module")
def made(source, tmp_path_factory):
    """Data made without any trouble; not to be changed."""
    return write(source, tmp_path_factory.mktemp("made") / corpus.FOLDER)


@pytest.fixture
def copy(made, tmp_path):
    """A copy of that data, to be damaged."""
    return shutil.copytree(made.folder, tmp_path / "copy")


def write(source, out, processes=1, tokenizer=None, **changes):
    return write_pretraining_data(
        source, tokenizer or corpus.tokenizer(), out, corpus.settings(**changes), processes, report=lambda line: None
    )


def examples_of(folder):
    """The records of all shards."""
    paths = sorted(map(str, folder.glob("*.tfrecord.gz")))
    return [tf.train.Example.FromString(record.numpy()) for record in tf.data.TFRecordDataset(paths, "GZIP")]


def values(example, name):
    return list(example.features.feature[name].int64_list.value)


def test_records_manifest_and_statistics_agree(made):
    examples = examples_of(made.folder)
    manifest = json.loads((made.folder / "manifest.json").read_text(encoding="utf-8"))
    labels = [label for example in examples for label in values(example, "next_sentence_labels")]
    lengths = [len(values(example, "input_ids")) for example in examples]
    found = made.statistics
    assert made.num_shards == len(manifest["shards"]) >= 4 and made.num_kept_shards == 0
    assert made.num_rows == made.num_sequences == manifest["rows"] == found.rows == len(examples) > 100
    assert (found.next_pairs, found.random_pairs) == (labels.count(0), labels.count(1))
    assert found.tokens == sum(lengths) and list(found.lengths) == [lengths.count(n) for n in range(33)]
    assert json.loads((made.folder / "statistics.json").read_text()) == json.loads(json.dumps(found.to_dict()))
    stems = [shard["name"].removesuffix(".tfrecord.gz") for shard in manifest["shards"]]
    expected = [f"{stem}{end}" for stem in stems for end in (".tfrecord.gz", ".json")]
    expected += ["README.md", "manifest.json", "statistics.json", "vocab.txt"]
    assert sorted(path.name for path in made.folder.iterdir()) == sorted(expected)
    pairs = f"{len(examples):,} pairs in {len(examples):,} rows"
    assert str(made) == f"{pairs}; shards: {made.num_shards}; written to {made.folder}, see README.md there"


def test_the_same_bytes_in_another_folder(source, made, tmp_path):
    moved = shutil.copy(source, tmp_path / source.name)
    assert corpus.checksums(write(moved, tmp_path / "out").folder) == corpus.checksums(made.folder)


def test_a_home_folder(source, made, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # of Windows
    shutil.copy(source, tmp_path)
    write(f"~/{source.name}", "~/out")
    assert corpus.checksums(tmp_path / "out") == corpus.checksums(made.folder)
    assert PretrainingBatches("~/out", 4).folder == tmp_path / "out"


def test_other_shards_with_another_seed(source, made, tmp_path):
    other = corpus.checksums(write(source, tmp_path / "out", seed=4).folder)
    before = corpus.checksums(made.folder)
    assert not any(other[name] == before[name] for name in other if name.endswith("gz"))


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"masking": "static", "dupe_factor": 2, "whole_word": True}, {"packed": True}])
def test_the_same_bytes_on_two_processes(source, tmp_path, changes):
    one, two = (write(source, tmp_path / f"{count}", count, **changes).folder for count in (1, 2))
    assert corpus.checksums(one) == corpus.checksums(two)


def fail_at_third(monkeypatch, error):
    """Lets two shards be written, then raises in the middle of one."""
    calls = iter(range(1000))

    def write_records(path, records, original=shards.write_records):
        if next(calls) == 2:
            path.write_bytes(b"half of it")
            raise error
        original(path, records)

    monkeypatch.setattr(shards, "write_records", write_records)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        tf.errors.ResourceExhaustedError(None, None, "shard; No space left on device"),
    ],
)
def test_a_full_disk_keeps_finished_shards_and_a_rerun_goes_on(source, made, tmp_path, monkeypatch, error):
    out, count = tmp_path / "out", made.num_shards
    with monkeypatch.context() as patch:
        fail_at_third(patch, error)
        message = f"shard-00002-of-{count:05d}.*No space left on device.*2 of {count} shards are finished and kept: run"
        with pytest.raises(OSError, match=message):
            write(source, out)
    assert not list(out.glob(".tmp-*")) and len(list(out.glob("*.gz"))) == 2
    with pytest.raises(DataError, match=r"must have a manifest\.json.*was not finished: run the same .* command again"):
        PretrainingBatches(out, 4)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.gz")}
    (out / ".tmp-1-shard").write_bytes(b"what a kill leaves")
    again = write(source, out)
    assert again.num_kept_shards == 2 and "2 of them from before" in str(again)
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before
    assert corpus.checksums(out) == corpus.checksums(made.folder)


RUN = """
import sys
import pretraining_corpus as corpus
from keras_bert_kit.data import write_pretraining_data

if __name__ == "__main__":
    print("ready", flush=True)
    settings = corpus.settings(block_bytes=500)
    write_pretraining_data(sys.argv[1], corpus.tokenizer(), sys.argv[2], settings, int(sys.argv[3]), report=print)
"""


def start(script, source, out, processes):
    words = [sys.executable, script, source, out, processes]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    run = subprocess.Popen([str(word) for word in words], env=environment, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    return run


def end(run):
    """Waits until no process has the standard output of a run open: until its last worker is gone. The exit code."""
    run.communicate(timeout=300)
    return run.returncode


def finished_shards(out):
    """{JSON file of a finished shard: when it was written}."""
    return {path: path.stat().st_mtime_ns for path in out.glob("shard-*.json")} if out.is_dir() else {}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_run_goes_on(source, tmp_path, processes):
    """kill -9 at random moments: finished shards stay as they are, no process is left over, the end is the same."""
    script = tmp_path / "run.py"
    script.write_text(RUN)
    straight, out = tmp_path / "straight", tmp_path / "killed"
    assert end(start(script, source, straight, processes)) == 0
    count, draw, kept = len(finished_shards(straight)), random.Random(processes), []
    for _ in range(4):
        run, enough = start(script, source, out, processes), draw.randint(0, count - 4)
        while len(finished_shards(out)) < enough and run.poll() is None:
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 0.05))
        run.send_signal(signal.SIGKILL)
        end(run)
        before = finished_shards(out)
        assert end(start(script, source, out, processes)) == 0
        assert {path: finished_shards(out)[path] for path in before} == before
        assert corpus.checksums(out) == corpus.checksums(straight)
        kept.append(len(before))
        shutil.rmtree(out)
    print(f"shards of {count} finished before each kill: {kept}")
    assert any(0 < finished < count for finished in kept)


@pytest.mark.slow
def test_a_worker_that_ends_early(source, tmp_path):
    """Here since each worker runs the script from its start, and so starts workers of its own."""
    script = tmp_path / "run.py"
    script.write_text(RUN.replace('if __name__ == "__main__":', "if True:"))
    words = [sys.executable, script, source, tmp_path / "out", 2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "A process that makes shards ended early" in done.stderr and "are finished and kept" in done.stderr


def damage(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-10])


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        (damage, "shard-00001-of-*.gz", r"shard-00001-of-\d+.tfrecord.gz is damaged .*with another checksum"),
        (truncate, "shard-00001-of-*.gz", r"shard-00001-of-\d+.tfrecord.gz is damaged"),
        (lambda path: path.unlink(), "shard-00001-of-*.gz", r"shard-00001-of-\d+.tfrecord.gz is missing"),
        (lambda path: path.unlink(), "manifest.json", "must have a manifest.json.*no data of make-pretraining-data"),
        (truncate, "manifest.json", "manifest.json is damaged"),
        (lambda path: path.write_text("[]"), "manifest.json", "manifest.json is damaged: no JSON object"),
        (lambda path: path.write_text('{"format_version": 1}'), "manifest.json", "manifest.json is damaged: KeyError"),
        (lambda path: path.write_text('{"format_version": 9}'), "manifest.json", "must be version 1. Received: 9"),
        (damage, "vocab.txt", "vocab.txt must be the file that the data was made with"),
    ],
)
def test_damaged_data_is_refused_before_training(copy, change, name, message):
    (path,) = copy.glob(name)
    change(path)
    with pytest.raises(DataError, match=message):
        PretrainingBatches(copy, 4)


def test_no_folder(tmp_path):
    with pytest.raises(DataError, match="must be a folder. Received: .*nowhere"):
        PretrainingBatches(tmp_path / "nowhere", 4)


@pytest.mark.parametrize("change", [damage, truncate, lambda path: path.unlink()])
def test_a_rerun_writes_damaged_shards_anew_and_keeps_the_others(source, made, copy, change):
    (path,) = copy.glob("shard-00001-of-*.gz")
    change(path)
    before = {other: other.stat().st_mtime_ns for other in copy.glob("*.gz") if other != path}
    assert write(source, copy).num_kept_shards == made.num_shards - 1
    assert {other: other.stat().st_mtime_ns for other in before} == before
    assert corpus.checksums(copy) == corpus.checksums(made.folder)


def test_a_rerun_of_a_finished_run_changes_nothing(source, made, copy):
    assert write(source, copy).num_kept_shards == made.num_shards
    assert corpus.checksums(copy) == corpus.checksums(made.folder)


def test_the_folder_of_another_run_is_refused(source, copy, tmp_path):
    before = corpus.checksums(copy)
    with pytest.raises(DataError, match="sequence_length was 32 and is 48; max_predictions_per_seq was 5 and is 8"):
        write(source, copy, sequence_length=48)
    other = corpus.write_corpus(tmp_path / source.name, seed=1)
    with pytest.raises(DataError, match="the text files were others"):
        write(other, copy)
    with pytest.raises(DataError, match="the vocabulary was another one"):
        write(source, copy, tokenizer=BertTokenizer([*corpus.VOCABULARY, "more"]))
    with pytest.raises(DataError, match="lowercase was True and is False"):
        write(source, copy, tokenizer=BertTokenizer(corpus.VOCABULARY, lowercase=False))
    assert corpus.checksums(copy) == before


def test_a_folder_with_other_things_is_refused(source, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="which holds other things"):
        write(source, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_text_without_a_pair_is_no_success(tmp_path):
    source = tmp_path / "text.txt"
    source.write_text("\u200b\n\u200b\n\n\u200b\n", encoding="utf-8")
    with pytest.raises(DataError, match="must give at least one pair of sentences. Received: 0 documents"):
        write(source, tmp_path / "out")
    with pytest.raises(DataError, match="not finished"):
        PretrainingBatches(tmp_path / "out", 4)


def test_a_vocabulary_without_mask_is_refused(source, tmp_path):
    vocabulary = [token for token in corpus.VOCABULARY if token != "[MASK]"]
    with pytest.raises(VocabularyError, match=r"needs \[MASK\]"):
        write(source, tmp_path / "out", tokenizer=BertTokenizer(vocabulary))
    assert not (tmp_path / "out").exists()


def test_the_card_shows_what_was_found(made, source, tmp_path):
    card = (made.folder / "README.md").read_text(encoding="utf-8")
    found = made.statistics
    for line in (
        f"| documents | {found.documents:,} |",
        f"| B follows A (label 0) | {found.next_pairs:,} ({found.next_pairs / found.sequences:.1%}) |",
        f"| padding | {found.padding_share:.1%}, were each row padded to 32 tokens |",
        "| `sequence_length` | `32` |",
        f"| {source.name} | {source.stat().st_size:,} |",
    ):
        assert line in card
    bars = [line.split() for line in card.split("```")[1].strip().splitlines()]
    assert sum(int(bar[3].replace(",", "")) for bar in bars) == found.sequences and bars[-1][2] == "32"
    static = write(source, tmp_path / "static", masking="static", packed=True, dupe_factor=2).statistics
    card = (tmp_path / "static" / "README.md").read_text(encoding="utf-8")
    share = f"{static.masked_mask:,} ({static.masked_mask / static.predictions:.1%})"
    assert f"| … became [MASK] | {share} |" in card and "pairs each |" in card
