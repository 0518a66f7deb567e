"""Vocabularies as files have them: line ends, marks, gaps, repetitions, missing special tokens."""

from pathlib import Path

import pytest

from keras_bert_kit.errors import VocabularyError
from keras_bert_kit.text.vocabulary import Vocabulary, read_vocabulary

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n\n"])
def test_line_ends_marks_and_trailing_lines_do_not_matter(tmp_path, line_end, encoding, tail):
    lines = [*SPECIALS, "the", "##ing"]
    path = write(tmp_path / "vocab.txt", line_end.join(lines) + tail.replace("\n", line_end), encoding)
    assert read_vocabulary(path) == lines


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_empty_and_repeated_lines_keep_their_ids(tmp_path, line_end):  # FC11
    path = write(tmp_path / "vocab.txt", line_end.join([*SPECIALS, "a", "", "", "b", "a"]))
    vocabulary = read_vocabulary(path)
    assert len(vocabulary) == 10
    with pytest.warns(UserWarning, match=r"repeats 1 tokens.*'a' \(id 5\)"):
        ids = Vocabulary(vocabulary).ids
    assert ids["b"] == 8
    assert ids["a"] == 9


def test_unicode_line_separators_are_tokens(tmp_path):
    path = write(tmp_path / "vocab.txt", "\n".join([*SPECIALS, "\u2028", "##\u2028", "b", "\x85"]))
    assert read_vocabulary(path)[5:] == ["\u2028", "##\u2028", "b", "\x85"]


def test_the_chinese_vocabulary_has_its_21128_tokens(shared):
    vocabulary = read_vocabulary(shared / "data/vocab/chinese_vocab.txt")
    assert len(vocabulary) == 21128
    assert vocabulary[343] == "\u2028" and vocabulary[13502] == "##\u2028"


@pytest.mark.parametrize("token", ["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
def test_an_obligatory_token_is_missed_by_name(token):
    with pytest.raises(VocabularyError, match=rf"Received: 4 tokens without \{token[:-1]}\]"):
        Vocabulary([other for other in SPECIALS if other != token])


def test_mask_may_be_missing():
    vocabulary = Vocabulary(SPECIALS[:4])
    assert (vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id) == (1, 2, 3)
    assert (vocabulary.pad_id, vocabulary.mask_id) == (0, None)


@pytest.mark.parametrize("path", ["vocab.txt", Path("vocab.txt")])
def test_the_path_of_a_file_is_no_vocabulary(path):
    with pytest.raises(
        VocabularyError, match=r"Received: 'vocab.txt'. To read .*BertTokenizer.from_vocab_file\(path\)"
    ):
        Vocabulary(path)


def test_tokens_must_be_strings():
    with pytest.raises(VocabularyError, match="list of strings. Received: 7 in it"):
        Vocabulary([*SPECIALS, 7])


def test_a_missing_an_empty_and_a_binary_file_are_refused(tmp_path):
    with pytest.raises(VocabularyError, match="can be read.*No such file"):
        read_vocabulary(tmp_path / "vocab.txt")
    with pytest.raises(VocabularyError, match="an empty file"):
        read_vocabulary(write(tmp_path / "empty.txt", "\n \n"))
    (tmp_path / "binary.txt").write_bytes(b"[PAD]\n[UNK]\n\xff\xfe")
    with pytest.raises(VocabularyError, match="not UTF-8 in line 3"):
        read_vocabulary(tmp_path / "binary.txt")
