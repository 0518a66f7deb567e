"""Clean English prose for pre-training, out of public-domain books and reports.

    python benchmarks/public_domain_corpus.py RAW --table saved_models/small_bert/corpus.tsv --out DIR

RAW holds the files as their repositories have them, laid out as owner/name/path; the table names each of them with the
reason why it is in the public domain, and its sha256. DIR gets one text file a repository, and heldout.txt: every 50th
document of the corpus, for measuring a model on text it has not seen. The format is that of `make-pretraining-data
--text-format plain`: a paragraph a line, one empty line between paragraphs, two between documents.

Project Gutenberg's header, footer and name go, as its licence asks of a text without its terms; so do notes of the
transcribers, contents, indexes, tables, verse and headings. What stays is left as it is written, save that lines are
joined to paragraphs and the underscores which stand for italics are dropped. The same files and the same table give the
same bytes.
"""

import argparse
import csv
import hashlib
import html
import json
import re
from pathlib import Path

HELD_OUT_EVERY = 50
MIN_DOCUMENT_WORDS = 200
MAX_DOCUMENT_WORDS = 3000
MAX_HEADER_CHARACTERS = 30_000
MIN_NOTE_WORDS = 30  # of a JSON file: shorter texts are figures and names

START = re.compile(r"^\*\*\* ?START OF TH(?:IS|E) PROJECT GUTENBERG[^*]*\*\*\*|^\*END\*? ?THE SMALL PRINT.*$", re.M)
END = re.compile(r"^\s*(?:\*\*\* ?END OF TH(?:IS|E) PROJECT|End of (?:the |this )?Project Gutenberg)", re.M | re.I)
COPYRIGHTED = re.compile(r"COPYRIGHTED\s+Project\s+Gutenberg", re.I)
CREDITS = re.compile(
    r"Gutenberg|pgdp\.net|Distributed Proof|\be-?text\b|BUILD-A-BOOK|text versions? only|Transcriber['’]s Note"
    r"|^\W*(?:Produced|Scanned) by|\S@\w+\.|https?://|\bwww\.|\b(?:8|12|16)[mv]o\b",
    re.I,
)
NOTES = re.compile(
    r"^\W*(?:Transcriber['’]?s?['’]?s? Notes?|Contents\b|\[?(?:Illustrations?|Footnotes?|Sidenote|Page)\b|\{)", re.I
)
END_MATTER = re.compile(
    r"^\s*(?:(?:General )?Index|Transcriber['’]?s?['’]?s? Notes?|Bibliography|Glossary)[.:]?\s*$", re.I
)
END_MATTER_FROM = 0.6  # of the book; further up such a heading belongs to the contents
BRACKET = r"\[(?:Illustrations?|Footnotes?|Sidenote|Transcriber|Pg\b|Page)[^\[\]]*\]"
BRACKETS = re.compile(rf"\n\n *{BRACKET} *(?=\n\n)|{BRACKET}", re.I)
MARKERS = re.compile(r"\[(?:\d+|[A-Z]|\*+)\]|\{(?:\d+|[ivxlc]+|sic)\}")
CHAPTER = re.compile(
    r"^\s*(?:CHAPTER|Chapter|BOOK|Book|PART|Part|SECTION|Section|LECTURE|Lecture|LETTER|Letter|ESSAY|VOLUME)[ .]+"
    r"(?:[IVXLC]+|\d+|[A-Z]{3,}(?:-[A-Z]+)?)\b"
)
TAGS = re.compile(r"<[^>]*>")
SENTENCE_END = re.compile(r"[.!?:;,—-][\"'’”)\]]*$")


class CorpusError(ValueError):
    """A file is absent, not the one that the table names, or not free to use."""


def decode(data):
    """UTF-8 where it is that, else Latin-1 with the quotation marks and dashes that Windows puts into its gaps."""
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")


def strip_gutenberg(text):
    """The book itself, without what Project Gutenberg puts before and after it."""
    if COPYRIGHTED.search(text):
        raise CorpusError("The file must be in the public domain. Received: a copyrighted eBook. Leave it out.")
    starts = list(START.finditer(text[:MAX_HEADER_CHARACTERS]))
    text = text[starts[-1].end() :] if starts else text
    end = END.search(text)
    return text[: end.start()] if end else text


def is_prose(lines):
    """Whether a paragraph is running text: no heading, synopsis, verse, contents, index, table or note."""
    text = " ".join(lines)
    words, dashes = len(text.split()), text.count("--") + text.count("—")
    letters = sum(c.isalpha() for c in text)
    visible = sum(not c.isspace() for c in text)
    tabular = sum(bool(re.search(r"\S\s{3,}\S|\.{4}|(?:\. ){3}|\||[-=]{5}", line.strip())) for line in lines)
    numbered = sum(line.rstrip(" .").endswith(tuple("0123456789")) for line in lines)
    indented = all(line.startswith("    ") for line in lines) and max(map(len, lines)) < 64
    return (
        words > 2
        and letters > 0.7 * visible
        and sum(c.isdigit() for c in text) < 0.12 * visible
        and sum(c.isupper() for c in text) < 0.4 * letters
        and 2 * tabular < len(lines)
        and (len(lines) < 3 or 2 * numbered < len(lines))
        and not (indented and (len(lines) > 1 or len(text) < 60))
        and not (dashes > 2 and words < 8 * dashes)
        and (len(text) > 90 or bool(SENTENCE_END.search(text)))
        and not re.match(r"\s*chapter\b", text, re.I)
        and not NOTES.search(text)
        and not CREDITS.search(text)
    )


def join_lines(lines):
    """One line of the lines of a paragraph; a hyphen at a line's end stays a hyphen within the word."""
    text = " ".join(" ".join(lines).split())
    text = re.sub(r"(?<=[a-z])- (?=[a-z])", "-", text)
    text = re.sub(r"(?<!\w)[_=+](?=\S)|(?<=\S)[_=+](?!\w)", "", text)
    return " ".join(MARKERS.sub("", text).split())


def sections_of(text):
    """The book in parts, each a list of paragraphs: two empty lines or a chapter's heading begin a new one."""
    text = BRACKETS.sub("", re.sub(r"[^\S\n]+$", "", text, flags=re.M))
    sections, in_end_matter, position = [[]], False, 0
    for block in re.split(r"(\n{2,})", text):
        lines = [line.expandtabs().rstrip() for line in block.split("\n") if line.strip()]
        position += len(block)
        chapter = bool(lines and CHAPTER.match(lines[0]))
        if chapter or not lines and len(block) >= 3:
            sections.append([])
        if chapter or lines and END_MATTER.match(lines[0]):
            in_end_matter = not chapter and position > END_MATTER_FROM * len(text)
        if lines and not in_end_matter and is_prose(lines):
            sections[-1].append(join_lines(lines))
    return sections


def notes_of(value):
    """The longer texts within a JSON file of the World Factbook, without HTML; lists of names are left out."""
    if isinstance(value, dict):
        return [note for inner in value.values() for note in notes_of(inner)]
    plain = " ".join(html.unescape(TAGS.sub(" ", str(value))).split()).removeprefix("note: ")
    words, commas = len(plain.split()), plain.count(",") + plain.count(";")
    return [plain] if words >= MIN_NOTE_WORDS and words > 5 * commas and is_prose([plain]) else []


def count_words(paragraphs):
    return sum(len(paragraph.split()) for paragraph in paragraphs)


def merge_short(sections):
    """Joins sections to the one before while that is short, so that each document has sentences to learn from."""
    merged = []
    for section in sections:
        if merged and count_words(merged[-1]) < MIN_DOCUMENT_WORDS:
            merged[-1] = merged[-1] + section
        else:
            merged.append(section)
    if len(merged) > 1 and count_words(merged[-1]) < MIN_DOCUMENT_WORDS:
        merged[-2:] = [merged[-2] + merged[-1]]
    return [section for section in merged if section]


def split_long(section):
    """Cuts a long section between paragraphs into parts of about equal length."""
    words = count_words(section)
    goal = words / -(-words // MAX_DOCUMENT_WORDS)
    parts, written = [[]], 0
    for paragraph in section:
        if parts[-1] and written >= goal * len(parts):
            parts.append([])
        parts[-1].append(paragraph)
        written += len(paragraph.split())
    return parts


def documents_of(data, suffix):
    """The documents of one raw file, each a list of paragraphs."""
    text = decode(data)
    sections = [notes_of(json.loads(text))] if suffix == ".json" else sections_of(strip_gutenberg(text))
    return [part for section in merge_short(sections) for part in split_long(section)]


def read_source(raw, row):
    """The bytes of the file that a row of the table names; refused when they are not those of its sha256."""
    path = raw / row["repository"] / row["path"]
    if not path.is_file():
        raise CorpusError(f"Each file of the table must be there. Received: no {path}. Fetch {row['repository']}.")
    data = path.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 != row["sha256"]:
        raise CorpusError(
            f"{path} must be the file of the table, sha256={row['sha256']}. Received: sha256={sha256}. "
            f"Fetch it at commit {row['commit']}."
        )
    return data


def without_repeats(documents, seen):
    """Leaves out long paragraphs that stood in the corpus before, such as notes that every country's page has."""
    for document in documents:
        kept = [paragraph for paragraph in document if len(paragraph) < 80 or paragraph not in seen]
        seen.update(kept)
        if kept:
            yield kept


def plain(documents):
    """The text of documents in the format "plain"."""
    return "".join("\n\n".join(document) + "\n\n\n" for document in documents)


def write_corpus(raw, table, out):
    """Writes the text files; returns the bytes of cleaned text of each row of the table, held-out part included."""
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    texts, held_out, sizes, seen, number = {}, [], [], set(), 0
    for row in rows:
        data = read_source(raw, row)
        documents = list(without_repeats(documents_of(data, Path(row["path"]).suffix), seen))
        sizes.append(len(plain(documents).encode()))
        kept = texts.setdefault(row["repository"].replace("/", "+") + ".txt", [])
        for document in documents:
            number += 1
            (kept if number % HELD_OUT_EVERY else held_out).append(document)
    out.mkdir(parents=True, exist_ok=True)
    for name, documents in [*texts.items(), ("heldout.txt", held_out)]:
        (out / name).write_text(plain(documents), encoding="utf-8", newline="\n")
    print(f"{len(rows)} files, {number} documents, {sum(sizes) / 1e6:.1f} MB; {len(held_out)} documents in heldout.txt")
    return sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path, help="folder of raw files, owner/name/path")
    parser.add_argument("--table", type=Path, required=True, help="corpus.tsv")
    parser.add_argument("--out", type=Path, required=True, help="folder for the text files")
    arguments = parser.parse_args()
    write_corpus(arguments.raw, arguments.table, arguments.out)


if __name__ == "__main__":
    main()
