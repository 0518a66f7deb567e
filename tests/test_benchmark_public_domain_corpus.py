"""benchmarks/public_domain_corpus.py: what it keeps of a book, and that it refuses what the table does not name."""

import csv
import hashlib
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "saved_models" / "small_bert" / "corpus.tsv"
FIELDS = "title author year subject repository commit path basis sha256 clean_bytes".split()

_spec = importlib.util.spec_from_file_location("public_domain_corpus", ROOT / "benchmarks" / "public_domain_corpus.py")
corpus = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(corpus)

BOOK = """The Project Gutenberg EBook of The Harbour, by A. N. Author

*** START OF THIS PROJECT GUTENBERG EBOOK THE HARBOUR ***




Produced by a volunteer



CONTENTS

  I. The Ship .......... 1
  II. The Storm ........ 9



CHAPTER I

THE SHIP

The ship had lain in the harbour for twenty-
five days, and _nobody_ knew
who owned her.[1]

[Illustration: the ship at
anchor]

    O ship, O ship,
    Where did you go?

"Yes, I know," said the pilot.

     Tons    Crew   Year
     400      21    1901



CHAPTER II

In the café on the quay the sailors talked of the storm that was coming.



INDEX

Crew, the, of the ship in the harbour that lay there so long, see pilot.

End of the Project Gutenberg EBook of The Harbour
"""


def a_source(raw, name, data):
    """Writes a raw file, and returns the table's row of it."""
    path = raw / "owner" / "books" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    return dict.fromkeys(FIELDS, "") | {"repository": "owner/books", "path": name, "sha256": sha256}


def a_table(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_only_the_prose_of_a_book_stays(encoding, monkeypatch):
    monkeypatch.setattr(corpus, "MIN_DOCUMENT_WORDS", 5)
    documents = corpus.documents_of(BOOK.replace("\n", "\r\n").encode(encoding), ".txt")
    assert documents == [
        [
            "The ship had lain in the harbour for twenty-five days, and nobody knew who owned her.",
            '"Yes, I know," said the pilot.',
        ],
        ["In the café on the quay the sailors talked of the storm that was coming."],
    ]


def test_a_copyrighted_book_is_refused():
    text = "This is a COPYRIGHTED Project Gutenberg eBook, Details Below\n" + BOOK
    with pytest.raises(corpus.CorpusError, match="must be in the public domain"):
        corpus.documents_of(text.encode(), ".txt")


def test_short_sections_are_joined_and_long_ones_cut():
    short = [["word " * 60], ["word " * 60], ["word " * 100], ["word " * 250], ["word " * 10]]
    assert [corpus.count_words(section) for section in corpus.merge_short(short)] == [220, 260]
    parts = corpus.split_long(["word " * 100] * 70)
    assert [corpus.count_words(part) for part in parts] == [2400, 2300, 2300]


def test_texts_of_a_json_file_lose_their_markup_and_lists_of_names():
    prose = "The country became independent in 1960 and has since held elections every five years, "
    end = "its constitution names the people as the source of power, and its courts guard the rights of each of them."
    names = ", ".join(f"Place {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    country = {
        "Introduction": {"text": f"<p>{prose}&amp; {end}</p>"},
        "Cities": {"text": names},
        "Size": 5,
    }
    assert corpus.documents_of(json.dumps(country).encode(), ".json") == [[f"{prose}& {end}"]]


def test_the_corpus_is_the_same_twice_and_every_fiftieth_document_is_held_out(tmp_path):
    book = "*** START OF THIS PROJECT GUTENBERG EBOOK ***\n\n" + "".join(
        f"CHAPTER {number}\n\n" + f"It was the morning of day {number} of the voyage. " * 25 + "\n\n\n\n"
        for number in range(1, 101)
    )
    table = a_table(tmp_path / "corpus.tsv", [a_source(tmp_path / "raw", "voyage.txt", book.encode())])
    sizes = [corpus.write_corpus(tmp_path / "raw", table, tmp_path / out) for out in ("one", "two")]
    read = [{path.name: path.read_bytes() for path in (tmp_path / out).iterdir()} for out in ("one", "two")]
    assert read[0] == read[1] and sizes[0] == sizes[1] == [sum(map(len, read[0].values()))]
    held_out = read[0]["heldout.txt"].decode()
    assert held_out.count("\n\n\n") == 2 and "day 50 of" in held_out and "day 100 of" in held_out
    assert read[0]["owner+books.txt"].count(b"\n\n\n") == 98


def test_a_missing_or_another_file_is_refused(tmp_path):
    row = a_source(tmp_path, "harbour.txt", BOOK.encode())
    (tmp_path / "owner" / "books" / "harbour.txt").write_bytes(b"another text")
    with pytest.raises(corpus.CorpusError, match="must be the file of the table"):
        corpus.read_source(tmp_path, row)
    with pytest.raises(corpus.CorpusError, match="Each file of the table must be there"):
        corpus.read_source(tmp_path, row | {"path": "absent.txt"})


def test_each_row_of_the_table_has_its_reason():
    with open(TABLE, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert list(rows[0]) == FIELDS
    for row in rows:
        by_government = "US government" in row["basis"]
        assert by_government or "public domain in the USA; published before 1929" in row["basis"], row
        assert by_government or int(row["year"] or 0) < 1929, row
        assert len(row["sha256"]) == 64 and len(row["commit"]) == 40 and int(row["clean_bytes"]) > 0, row
