"""Apache Beam makes the same shards. Runs where Beam is installed: .ci/run has an environment for it."""

import sys

import pretraining_corpus as corpus
import pytest

from keras_bert_kit.data import write_pretraining_data
from keras_bert_kit.data.pretraining_beam import write_pretraining_data_with_beam


@pytest.fixture
def source(tmp_path):
    return corpus.write_corpus(tmp_path / corpus.FOLDER / "Bücher 一.txt")


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")  # Beam and its dependencies warn of each other
@pytest.mark.parametrize("changes", [{}, {"packed": True, "masking": "static", "dupe_factor": 2}])
def test_the_same_bytes_by_beam(source, tmp_path, changes):
    pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install 'keras_bert_kit[beam]'")
    arguments, settings = (source, corpus.tokenizer()), corpus.settings(**changes)
    plain = write_pretraining_data(*arguments, tmp_path / "plain", settings, 1, report=lambda line: None)
    beam = write_pretraining_data_with_beam(*arguments, tmp_path / "beam", settings, report=lambda line: None)
    assert corpus.checksums(beam.folder) == corpus.checksums(plain.folder) and beam.num_shards >= 4
    # Beam goes on with what was made without it.
    (first,) = plain.folder.glob("shard-00000-*.gz")
    expected = corpus.checksums(plain.folder)
    first.unlink()
    again = write_pretraining_data_with_beam(*arguments, plain.folder, settings, report=lambda line: None)
    assert again.num_kept_shards == beam.num_shards - 1 and corpus.checksums(plain.folder) == expected


def test_without_beam_the_error_says_how_to_get_it(source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(ImportError, match=r"needs Apache Beam. Run: pip install 'keras_bert_kit\[beam\]'"):
        write_pretraining_data_with_beam(source, corpus.tokenizer(), tmp_path / "out", corpus.settings())
    assert not (tmp_path / "out").exists()
