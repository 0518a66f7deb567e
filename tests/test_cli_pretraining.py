"""`make-pretraining-data`: Google's option names, one readable line for every bad input, never zero instances."""

import json
import sys

import pretraining_corpus as corpus
import pytest

from keras_bert_kit import cli
from keras_bert_kit.data import PretrainingBatches, PretrainingSettings


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["keras-bert-kit", "make-pretraining-data", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def folder(tmp_path):
    """A folder with umlauts, ideographs and a space in its name, with text and vocabulary."""
    folder = tmp_path / corpus.FOLDER
    corpus.write_corpus(folder / "Bücher 一.txt")
    (folder / "vocab.txt").write_text("\n".join(corpus.VOCABULARY), encoding="utf-8")
    return folder


def words(folder, *more, text="Bücher 一.txt", out="out"):
    options = ("--vocab", folder / "vocab.txt", "--out", folder / out, "--seed", 1, "--processes", 1)
    return (folder / text, *options, *more)


def test_options_by_googles_names(run, folder):
    options = "--max-seq-length 24 --max-predictions-per-seq 3 --dupe-factor 2 --masked-lm-prob 0.1 "
    options += "--short-seq-prob 0.2 --whole-word --masking static --packed --text-format plain --cased --json"
    text = (folder / "Bücher 一.txt").read_text(encoding="utf-8")
    (folder / "plain.txt").write_text(text.replace("\n\n", "\n\n\n"), encoding="utf-8")
    code, out, err = run(*words(folder, *options.split(), text="plain.txt"))
    assert code == 0, err
    result = json.loads(out.splitlines()[-1])
    expected = dict(sequence_length=24, max_predictions_per_seq=3, dupe_factor=2, masked_lm_prob=0.1, seed=1)
    expected |= dict(short_seq_prob=0.2, whole_word=True, masking="static", packed=True, text_format="plain")
    batches = PretrainingBatches(folder / "out", 4)
    assert batches.settings == PretrainingSettings(**expected) and not batches.tokenizer.lowercase
    assert result["settings"] == batches.settings.to_dict() and result["out"] == str(folder / "out")
    assert result["rows"] == batches.num_examples and result["sequences"] == batches.num_sequences > 0
    assert result["statistics"]["random_pairs"] + result["statistics"]["next_pairs"] == result["sequences"]


def test_defaults_a_rerun_and_the_other_spelling(run, folder):
    code, out, err = run(*words(folder, "--max-length", 64))
    assert code == 0 and str(folder / "out") in out and "pairs in" in out and "shards: 1; processes: 1" in err
    assert PretrainingBatches(folder / "out", 4).settings == PretrainingSettings(sequence_length=64, seed=1)
    before = corpus.checksums(folder / "out")
    code, out, _ = run(*words(folder, "--max-seq-length", 64))
    assert code == 0 and "1 of them from before" in out and corpus.checksums(folder / "out") == before
    assert sorted(path.name for path in folder.iterdir()) == ["Bücher 一.txt", "out", "vocab.txt"]


BAD_TEXTS = {
    "empty": (b"", "no line with text"),
    "empty lines": (b"\n\n \n", "no line with text"),
    "one document": (b"the team wins .\n" * 30, "at least two documents"),
    "not UTF-8": ("the team\n\nwins größer\n".encode("latin-1"), "line 3"),
    "a line of 1 MB": (b"the team wins .\n\n" + b"the team " * 116_509 + b"\n", "in line 3"),
}


@pytest.mark.parametrize("fault", BAD_TEXTS)
def test_bad_text_is_one_line(run, folder, fault):
    """Field case FC33, and more."""
    content, part = BAD_TEXTS[fault]
    (folder / "bad text.txt").write_bytes(content)
    code, out, err = run(*words(folder, text="bad text.txt"))
    assert code == 1 and out == ""
    assert err.startswith("Error: ") and err.count("\n") == 1 and len(err) < 1000
    assert part in err and "bad text.txt" in err
    assert not (folder / "out").exists()


def test_a_file_that_is_not_there_is_named(run, folder):
    code, out, err = run(*words(folder, text="Bücher 二.txt"))
    assert code == 1 and out == "" and err.count("\n") == 1
    assert "Bücher 二.txt: there is no such file. Did you mean 'Bücher 一.txt'?" in err
    assert not (folder / "out").exists()


def test_the_folder_of_another_run(run, folder):
    assert run(*words(folder))[0] == 0
    before = corpus.checksums(folder / "out")
    code, out, err = run(*words(folder, "--max-seq-length", 48, "--whole-word"))
    assert code == 1 and err.count("\n") == 1
    assert "--max-seq-length was 128 and is 48" in err and "--whole-word was False and is True" in err
    assert corpus.checksums(folder / "out") == before


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        (["--max-predictions-per-seq", 200], 1, "Error: --max-predictions-per-seq must be from 1 to 125"),
        (["--masked-lm-prob", 1.5], 1, "Error: --masked-lm-prob must be between 0 and 1"),
        (["--masking", "none"], 2, "'none' is not one of 'dynamic', 'static'"),
        (["--seed", -1], 2, "-1 is not in the range"),
    ],
)
def test_wrong_options(run, folder, options, code, part):
    found, out, err = run(*words(folder, *options))
    assert (found, out) == (code, "") and part in err
    assert not (folder / "out").exists()


def test_a_vocabulary_without_mask(run, folder):
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
    code, out, err = run(*words(folder))
    assert code == 1 and "needs [MASK] in the vocabulary" in err and err.count("\n") == 1


def test_help_has_an_example(run):
    code, out, _ = run("--help")
    assert code == 0 and "keras-bert-kit make-pretraining-data book.txt --vocab vocab.txt --out data" in out
