"""Text files to blocks of documents: nothing is lost or mixed up, and bad files are refused by name."""

import os
import time
import tracemalloc

import pytest

from keras_bert_kit.data.documents import count_cut_documents, plan_blocks, read_documents
from keras_bert_kit.data.sentences import split_sentences
from keras_bert_kit.errors import DataError

DOCUMENTS = [[f"Document {d} has sentence {s}." for s in range(1 + d % 4)] for d in range(11)]
AS_SENTENCES = "\n\n".join("\n".join(document) for document in DOCUMENTS)


def write(tmp_path, content, name="text.txt"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def read_all(paths, text_format="sentences", block_bytes=4 << 20):
    """(documents of each block, blocks)."""
    blocks = plan_blocks(paths, text_format, block_bytes)
    return [read_documents(block, text_format) for block in blocks], blocks


def joined(documents_of_blocks):
    return [document for documents in documents_of_blocks for document in documents]


# What is read


@pytest.mark.parametrize("block_bytes", [1, 60, 100, 250, 1000, 4 << 20])
def test_blocks_hold_every_document_once_and_at_least_two_each(tmp_path, block_bytes):
    halves = AS_SENTENCES.split("\n\nDocument 6")
    paths = [write(tmp_path, halves[0], "1.txt"), write(tmp_path, f"Document 6{halves[1]}\n", "2.txt")]
    read, blocks = read_all(paths, block_bytes=block_bytes)
    assert min(map(len, read)) >= 2
    cut = count_cut_documents(blocks)
    assert len(joined(read)) == len(DOCUMENTS) + cut
    assert [s for d in joined(read) for s in d] == [s for d in DOCUMENTS for s in d]
    if block_bytes >= 250:
        assert joined(read) == DOCUMENTS
    assert (len(blocks) == 1) == (block_bytes >= 1000)


def test_a_long_document_is_cut_between_sentences(tmp_path):
    long = [f"This is sentence {s}." for s in range(100)]
    path = write(tmp_path, "\n".join(long) + "\n\n" + "Short one.")
    read, blocks = read_all([path], block_bytes=500)
    documents = joined(read)
    assert [s for d in documents for s in d] == [*long, "Short one."]
    assert documents[-1] == ["Short one."]
    assert count_cut_documents(blocks) == len(documents) - 2 == 4
    assert max(sum(len(s) + 1 for s in d) for d in documents) <= 500


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfa b\r\nc\r\n\r\n  d \r\n",
        b"\n \n\ta b\nc\n\xe3\x80\x80\n\n\nd",
        "\ufeffa b\nc\n\nd\n\n\n",
    ],
    ids=["Windows", "blank lines of white space", "byte-order mark"],
)
def test_line_ends_and_white_space(tmp_path, text):
    assert read_all([write(tmp_path, text)])[0] == [[["a b", "c"], ["d"]]]


def test_each_file_ends_a_document(tmp_path):
    paths = [write(tmp_path, "a\nb\n", "1.txt"), write(tmp_path, "", "2.txt"), write(tmp_path, "c\nd", "3.txt")]
    assert read_all(paths)[0] == [[["a", "b"], ["c", "d"]]]


def test_plain_text(tmp_path):
    first = "Chapter 1\n\nIt was late. He\nslept, Mr. Hall\nsaid.\n\nShe did not.\n"
    text = f"{first}\n\n\nChapter 2\n\nMorning came!\nBirds sang.\n"
    documents = [
        ["Chapter 1", "It was late.", "He slept, Mr. Hall said.", "She did not."],
        ["Chapter 2", "Morning came!", "Birds sang."],
    ]
    assert read_all([write(tmp_path, text)], "plain")[0] == [documents]


def test_plain_text_is_cut_between_paragraphs(tmp_path):
    paragraphs = [f"Paragraph {p}\nhas two lines." for p in range(20)]
    path = write(tmp_path, "\n\n".join(paragraphs) + "\n\n\nThe end.")
    read, blocks = read_all([path], "plain", block_bytes=100)
    assert count_cut_documents(blocks) > 3
    expected = [paragraph.replace("\n", " ") for paragraph in paragraphs] + ["The end."]
    assert [s for d in joined(read) for s in d] == expected


def test_plain_text_without_empty_lines_takes_no_longer(tmp_path):
    line = "A line of sixty characters and no empty line anywhere near. "
    paths = [write(tmp_path, f"{line}\n" * 30_000, name) for name in ("1.txt", "2.txt")]
    start = time.process_time()
    read, _ = read_all(paths, "plain")
    assert time.process_time() - start < 10
    assert [len(document) for document in joined(read)] == [30_000] * 2


def test_a_path_with_umlauts_ideographs_and_spaces(tmp_path):
    folder = tmp_path / "Texte für BERT" / "模型 v1"
    folder.mkdir(parents=True)
    assert read_all([str(write(folder, "a\n\nb"))])[0] == [[["a"], ["b"]]]


def test_planning_takes_little_memory(tmp_path):
    path = write(
        tmp_path, b"".join(b"This is sentence number %d.\n" % i + b"\n" * (i % 5 == 0) for i in range(100_000))
    )
    tracemalloc.start()
    blocks = plan_blocks([path], block_bytes=100_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(blocks) > 25
    assert peak < 500_000


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Mr. Bennet met Dr. J. Smith. He left.", ["Mr. Bennet met Dr. J. Smith.", "He left."]),
        ("“Do you?” cried she. “I do.” He went.", ["“Do you?” cried she.", "“I do.”", "He went."]),
        ('He said "No." Then he left. "Why?" she asked.', ['He said "No."', "Then he left.", '"Why?" she asked.']),
        ("Tools, e.g. Saws, cost 3.50 a day ... or more.", ["Tools, e.g. Saws, cost 3.50 a day ... or more."]),
        ("It ended in 1813. 40 years later it began.", ["It ended in 1813.", "40 years later it began."]),
        ("The claws . The larger one .", ["The claws .", "The larger one ."]),
        ("Over\n  two\tlines.\nNext one.", ["Over two lines.", "Next one."]),
        ("Zu Ende. Äpfel sind da. ¿Qué?", ["Zu Ende.", "Äpfel sind da.", "¿Qué?"]),
        ("第一句。第二句！“第三句？”第四", ["第一句。", "第二句！", "“第三句？”", "第四"]),
        (" \n ", []),
    ],
)
def test_sentences(paragraph, sentences):
    assert split_sentences(paragraph) == sentences


def test_endless_sentences_are_divided_between_words():
    text = "word " * 2000
    pieces = split_sentences(text)
    assert " ".join(pieces) == text.strip()
    assert max(map(len, pieces)) <= 2000
    assert split_sentences("x" * 5000) == ["x" * 5000]


# What is refused


def test_a_missing_file_is_named(tmp_path):
    write(tmp_path, "a\n\nb", "my corpus.txt")
    with pytest.raises(DataError, match=r"my corpsu\.txt: there is no such file\. Did you mean 'my corpus\.txt'\?"):
        plan_blocks([tmp_path / "my corpsu.txt"])
    with pytest.raises(DataError, match="my: there is no such file.*quotes around one with spaces"):
        plan_blocks([tmp_path / "my", tmp_path / "corpus.txt"])
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        plan_blocks([tmp_path])


def test_no_text_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"must be text to pre-train on. Received: no line with text in '.*empty\.txt'"):
        plan_blocks([write(tmp_path, "", "empty.txt")])
    with pytest.raises(DataError, match=r"white\.txt"):
        plan_blocks([write(tmp_path, " \n\t\n\n", "white.txt")])
    with pytest.raises(DataError, match="no line with text in no file"):
        plan_blocks([])


@pytest.mark.parametrize("block_bytes", [10, 4 << 20])
def test_one_document_is_refused(tmp_path, block_bytes):
    path = write(tmp_path, "\n".join(f"Sentence {i}." for i in range(30)))
    with pytest.raises(
        DataError, match="at least two documents.*Received: one document.*an empty line between"
    ) as error:
        plan_blocks([path], block_bytes=block_bytes)
    assert 'text_format="plain"' in str(error.value)
    path = write(tmp_path, "A paragraph.\n\nAnother one.\n")
    with pytest.raises(DataError, match='two empty lines between documents; .*text_format="sentences"'):
        plan_blocks([path], "plain", block_bytes)


def test_invalid_utf8_is_refused_with_its_place(tmp_path):
    path = write(tmp_path, b"Good line.\n\nBad \xe9t\xe9 line.\n", "latin1.txt")
    with pytest.raises(
        DataError, match=r"latin1\.txt: the text must be UTF-8.*byte 0xE9 in line 3, byte 5 of the line"
    ):
        plan_blocks([path])


@pytest.mark.skipif(os.name == "nt", reason="no /dev/fd")
def test_a_pipe_is_refused_by_name():
    reads, writes = os.pipe()  # what `<(cat text.txt)` of a shell is
    with pytest.raises(DataError, match=f"/dev/fd/{reads}: the text must be a file, .*Received: a pipe"):
        plan_blocks([f"/dev/fd/{reads}"])
    os.close(reads)
    os.close(writes)


def test_a_line_of_a_megabyte_is_refused_as_a_sentence(tmp_path):
    line = "This is a sentence of 32 letters. " * 30_000
    path = write(tmp_path, f"A.\n\n{line}\n\n\nB.")
    with pytest.raises(DataError, match=r'at most 100,000 bytes.*a longer one in line 3.*text_format="plain"'):
        plan_blocks([path])
    assert len(read_all([path], "plain")[0][0][0]) == 30_001
    with pytest.raises(DataError, match="at most 4,194,304 bytes.*in line 1.*paragraphs"):
        plan_blocks([write(tmp_path, "x" * (5 << 20))], "plain")


def test_arguments(tmp_path):
    with pytest.raises(ValueError, match="text_format must be one of .*Received: text_format='words'"):
        plan_blocks([], "words")
    with pytest.raises(ValueError, match="block_bytes must be 1 or more. Received: block_bytes=0"):
        plan_blocks([], block_bytes=0)
