"""Hostile and damaged files through `load_pretrained`: all malicious ones and some damaged ones; all of them slowly."""

import pytest
from fake_weights import VOCABULARY, write_hf_folder
from hostile_corpus import failures, report, run

from keras_bert_kit.errors import CheckpointError
from keras_bert_kit.pretrained import load_pretrained


def require_good(results, malicious, damaged):
    assert not failures(results), report(results)
    kinds = [result["malicious"] for result in results]
    assert (kinds.count(True) >= malicious, kinds.count(False) >= damaged) == (True, True), report(results)
    assert all(result["outcome"] == "refused" for result in results if result["malicious"])
    assert all("/" in result["error"] for result in results if result["malicious"]), "a file is named"


def test_malicious_files_are_refused_and_damaged_ones_do_no_harm():
    require_good(run(mutants_of_each=3), malicious=300, damaged=45)


def test_a_vocabulary_that_was_cut_or_overwritten_is_refused(tmp_path):
    words = [*VOCABULARY, *(f"word{number}" for number in range(300))]
    write_hf_folder(tmp_path, vocabulary=words)
    whole = (tmp_path / "vocab.txt").read_bytes()
    for content, message in (
        (whole[: whole.index(b"word120") + 3], "words for 366 rows, the last without a line end"),
        (whole.replace(b"word7\n", bytes(6)), "zero bytes in it"),
        (whole + b"\n" * 2000, "must not hold more words than the word table has rows"),
    ):
        (tmp_path / "vocab.txt").write_bytes(content)
        with pytest.raises(CheckpointError, match=message):
            load_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(whole.removesuffix(b"\n"))
    assert load_pretrained(tmp_path).tokenizer.vocab_size == 366


@pytest.mark.slow
def test_a_thousand_damaged_files_do_no_harm(capsys):
    results = run(mutants_of_each=70, malicious=False)
    require_good(results, malicious=0, damaged=1000)
    with capsys.disabled():
        print("\n" + report(results))
