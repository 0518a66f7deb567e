import csv
import re
import tracemalloc

import numpy as np
import pytest

from keras_bert_kit.data import Examples, class_names_of, label_ids, read_examples
from keras_bert_kit.errors import DataError

HEADER = "label,text\n"


def write(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


# What is read


def test_official_ag_news_columns_need_no_header(tmp_path):
    path = write(tmp_path, '"3","Oil up","Prices rose"\n"1","Vote"," held \\ on Sunday"\n"2","Say ""hi""",""\n')
    examples = read_examples(path)
    assert examples.texts == ["Oil up Prices rose", "Vote  held \\ on Sunday", 'Say "hi" ']
    assert examples.labels == ["3", "1", "2"]
    assert examples.official_ag_news
    assert examples.source == str(path)
    assert (examples.label_column, examples.text_columns) == ("class", ("title", "description"))
    assert class_names_of(examples) == ("World", "Sports", "Business", "Sci/Tech")


def test_headerless_file_with_other_numbers_is_not_ag_news(tmp_path):
    examples = read_examples(write(tmp_path, "10,a,b\n9,c,d\n"))
    assert not examples.official_ag_news
    assert class_names_of(examples) == ("9", "10")


@pytest.mark.parametrize(
    "header, row, text",
    [
        ("label,text", "x,hello", "hello"),
        ("text,label", "hello,x", "hello"),
        ("sentence\tlabel", "hello\tx", "hello"),
        ("Class Index,Title,Description", "x,hello,world", "hello world"),
        ("description,category,title", "world,x,hello", "hello world"),
        (" Target , Text ", "x,hello", "hello"),
        ("label,text,source", "x,hello,there", "hello"),
        ("headline,class", "hello,x", "hello"),
        ("sentence2,label,sentence1", "world,x,hello", "hello world"),
        ("question,sentence,label", "hello,world,x", "hello world"),
    ],
)
def test_columns_are_found_by_name(tmp_path, header, row, text):
    examples = read_examples(write(tmp_path, f"{header}\n{row}\n", "data.tsv" if "\t" in header else "data.csv"))
    assert (examples.labels, examples.texts) == (["x"], [text])
    assert not examples.official_ag_news


def test_columns_are_given(tmp_path):
    path = write(tmp_path, "Quality\t#1 String\t#2 String\n1\tone\ttwo\n", "pairs.tsv")
    both = read_examples(path, label_column="quality", text_columns=["#1 String", "#2 String"])
    assert (both.labels, both.texts, both.text_columns) == (["1"], ["one two"], ("#1 String", "#2 String"))
    assert read_examples(path, "Quality", "#2 String").texts == ["two"]


def test_given_column_may_be_a_number(tmp_path):
    examples = read_examples(write(tmp_path, "0,1\nx,hello\n"), label_column="0", text_columns="1")
    assert (examples.labels, examples.texts) == (["x"], ["hello"])


@pytest.mark.parametrize("start", ["", "label,text\n"])
def test_byte_order_mark_is_not_part_of_the_first_field(tmp_path, start):
    # FC01: google-research/bert#80, #344
    rows = '3,"Oil up"\n' * 4 if start else '3,"Oil up","Prices rose"\n1,a,b\n2,c,d\n4,e,f\n'
    examples = read_examples(write(tmp_path, b"\xef\xbb\xbf" + (start + rows).encode()))
    assert len(examples) == 4
    assert examples.labels[0] == "3"
    assert examples.texts[0].startswith("Oil up")
    assert examples.official_ag_news == (not start)


def test_words_for_missing_values_stay_words(tmp_path):
    # FC05: pandas-dev/pandas#48712, #24681
    examples = read_examples(write(tmp_path, HEADER + "null,NA\nnone,n/a\nnan,None\n"))
    assert examples.labels == ["null", "none", "nan"]
    assert examples.texts == ["NA", "n/a", "None"]
    assert class_names_of(examples) == ("nan", "none", "null")


def test_field_beyond_the_limit_of_the_csv_module(tmp_path):
    # FC09: pytext PR #477
    long = "word " * 40_000
    path = write(tmp_path, f"1,a,b\n2,c,d\n3,long,{long}\n4,e,f\n")
    limit = csv.field_size_limit()
    tracemalloc.start()
    examples = read_examples(path)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(examples) == 4
    assert examples.texts[2] == "long " + long
    assert peak_bytes < 10 * len(long)
    assert csv.field_size_limit() == limit, "the limit belongs to the whole process"


def test_million_characters_and_none(tmp_path):
    examples = read_examples(write(tmp_path, HEADER + "a,\nb," + "x" * 1_000_000 + "\n"))
    assert [len(text) for text in examples.texts] == [0, 1_000_000]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_empty_lines(tmp_path, end):
    lines = ["", "label,text", "a,one", "   ", "b,two", ",", "", ""]
    examples = read_examples(write(tmp_path, end.join(lines)))
    assert (examples.labels, examples.texts) == (["a", "b"], ["one", "two"])


def test_line_breaks_and_odd_characters_inside_fields(tmp_path):
    text = "first\nsecond, \u2028 \x85 \x1c third\t\u00e9\U0001f600"
    path = write(tmp_path, f'{HEADER}a,"{text}"\n')
    assert read_examples(path).texts == [text]


def test_tsv_fields_are_literal(tmp_path):
    # GLUE's MRPC has single quotes that are never closed.
    examples = read_examples(write(tmp_path, 'label\ttext\n1\t"We go , he said .\n0\t5" wide, "as is"\n', "data.TSV"))
    assert examples.texts == ['"We go , he said .', '5" wide, "as is"']


@pytest.mark.parametrize("separator", [",", "\t"])
def test_other_extension_first_line_decides(tmp_path, separator):
    examples = read_examples(write(tmp_path, f"label{separator}text\na{separator}one\n", "data.txt"))
    assert examples.texts == ["one"]


def test_white_space_around_labels_makes_no_new_class(tmp_path):
    assert read_examples(write(tmp_path, HEADER + "a ,x\n a,y\n")).labels == ["a", "a"]


def test_path_with_umlauts_ideographs_and_spaces(tmp_path):
    folder = tmp_path / "Modelle für BERT" / "模型 v1"
    folder.mkdir(parents=True)
    assert read_examples(str(write(folder, HEADER + "a,x\n"))).texts == ["x"]


# What is refused


def test_bad_rows_are_listed_together(tmp_path):
    # FC03: google-research/bert#551, #550
    path = write(tmp_path, "1,a,b\n3,c,d\n\n2\n4,e,f\nSports,g,h\n,i,j\n2,k\n\n\n")
    with pytest.raises(DataError) as raised:
        read_examples(path)
    message = str(raised.value)
    assert str(path) in message
    assert "Received 4 bad" in message
    assert "line 4 has 1 field instead of 3 (class, title, description)" in message
    assert "line 6 has 'Sports' where the class number must be" in message
    assert "line 7 has an empty label" in message
    assert "line 8 has 2 fields" in message
    assert "\n" not in message


def test_ten_bad_rows_are_shown_and_all_are_counted(tmp_path):
    path = write(tmp_path, HEADER + "a,x\n" + "b\n" * 25)
    with pytest.raises(DataError, match="Received 25 bad: line 3 has 1 field.*line 12 has .*; and 15 more") as raised:
        read_examples(path)
    assert "line 13 " not in str(raised.value)


def test_comma_in_unquoted_text(tmp_path):
    with pytest.raises(DataError, match=r"line 2 has 3 fields instead of 2 \(label, text\)"):
        read_examples(write(tmp_path, HEADER + "a,well, no\n"))


def test_line_number_is_that_of_the_start_of_the_row(tmp_path):
    with pytest.raises(DataError, match="line 5 has 1 field"):
        read_examples(write(tmp_path, HEADER + 'a,"one\ntwo\nthree"\nb\n'))


def test_quote_that_is_never_closed(tmp_path):
    with pytest.raises(DataError, match="line 3 has broken quotes .*unexpected end of data"):
        read_examples(write(tmp_path, HEADER + 'a,x\nb,"open\nc,y\n'))


def test_text_behind_a_closing_quote(tmp_path):
    with pytest.raises(DataError, match="Received 1 bad: line 2 has broken quotes"):
        read_examples(write(tmp_path, HEADER + 'a,"x" y\nb,z\n'))


@pytest.mark.parametrize("where", ["header", "row"])
def test_invalid_utf8(tmp_path, where):
    header, row = ("label,t\u00e9xt", "a,x") if where == "header" else ("label,text", "a,caf\u00e9")
    path = write(tmp_path, f"{header}\n{row}\n".encode("latin-1"))
    line = 1 if where == "header" else 2
    with pytest.raises(DataError, match=rf"Received 1 bad: line {line} is not UTF-8 \(byte 0xE9; convert the file\)"):
        read_examples(path)


def test_invalid_utf8_and_other_faults_in_one_message(tmp_path):
    with pytest.raises(DataError, match="Received 3 bad: line 2 is not UTF-8 .*; line 3 has 1 field.*; line 4 is not"):
        read_examples(write(tmp_path, b"label,text\na,\xff\nb\nc,\xc3\n"))


def test_nul_characters(tmp_path):
    with pytest.raises(DataError, match="line 2 holds a NUL character"):
        read_examples(write(tmp_path, b"label,text\na,x\0y\n"))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "Received: an empty file"),
        (b"\n\n  \n", "Received: an empty file"),
        (b"\xef\xbb\xbf", "Received: an empty file"),
        (b"label,text\n", "Received: only the header label, text"),
        (b"label,text\n,x\n", "line 2 has an empty label"),
        (b"PK\x03\x04....", "Received: a ZIP archive or a spreadsheet"),
        (b"\x1f\x8b....", "Received: a gzip archive"),
        (HEADER.encode("utf-16"), "Received: UTF-16 text"),
        (b"PAR1....", "Received: a Parquet file, whose name must end in .parquet"),
    ],
)
def test_files_without_rows(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_examples(write(tmp_path, content))


def test_missing_file_and_folder(tmp_path):
    write(tmp_path, HEADER, "train.csv")
    with pytest.raises(DataError, match="there is no such file. Did you mean 'train.csv'?"):
        read_examples(tmp_path / "tran.csv")
    with pytest.raises(DataError, match="there is no such file. Check the path"):
        read_examples(tmp_path / "nowhere" / "data.csv")
    with pytest.raises(DataError, match="must be a file .CSV, TSV, JSON lines, Parquet.. Received: a folder"):
        read_examples(tmp_path)
    with pytest.raises(DataError, match="cannot be read: Not a directory"):
        read_examples(tmp_path / "train.csv" / "data.csv")
    with pytest.raises(DataError, match="Received: a pipe or device"):
        read_examples("/dev/null")


@pytest.mark.parametrize(
    "header, arguments, message",
    [
        (
            "kind,text",
            {},
            "must name a label column. Received: columns 'kind', 'text'. Known names: label, .*label_column",
        ),
        ("label,words", {}, "must name a text column. Received: columns 'label', 'words'. .*text_columns"),
        ("label,text", {"label_column": "lable"}, "no column 'lable'. Received: .*Did you mean 'label'?"),
        ("label,text", {"text_columns": ["text", "txet"]}, "no column 'txet'. .*Did you mean 'text'?"),
        ("label,text", {"label_column": "zzz"}, "no column 'zzz'. Received: columns 'label', 'text'"),
        ("label,text", {"text_columns": "label"}, "none of them the label's. Received: label column 'label'"),
        ("label,text", {"text_columns": []}, "one or more columns"),
        ("text,a", {"label_column": "text"}, "must name a text column"),
        ("label,text,text", {}, "column 'text' must be there once"),
        ("label;text", {}, "separated by ';'"),
        ("label\ttext", {}, "separated by a tab"),
        ('{"label": "a"', {}, "looks like JSON lines: files of those are named .jsonl"),
    ],
)
def test_wrong_columns(tmp_path, header, arguments, message):
    with pytest.raises(DataError, match=message):
        read_examples(write(tmp_path, f"{header}\na,b\n"), **arguments)


def test_given_column_in_a_file_without_header(tmp_path):
    with pytest.raises(DataError, match="no column 'label'. Received: columns '3', .*first line must be a header"):
        read_examples(write(tmp_path, "3,Oil up,Prices rose\n"), label_column="label")


def test_as_many_labels_as_texts():
    with pytest.raises(DataError, match="Received: 2 texts, 1 labels"):
        Examples(["a", "b"], ["x"])


@pytest.mark.parametrize(
    "texts, labels, message",
    [
        (["a", None], ["x", "y"], r"Each of texts must be a string. Received: texts\[1\]=None; 1 such in all"),
        (
            [float("nan"), "b", b"c"],
            ["x", "y", "z"],
            r"texts\[0\]=nan, texts\[2\]=b'c'; 2 such in all. Leave such rows",
        ),
        (["a", "b"], ["x", 0.5], r"Each of labels must be a string or an integer. Received: labels\[1\]=0.5; 1"),
        ("ab", ["x", "y"], "texts must be a list of strings. Received: one, 'ab'"),
        (["a", "b"], "xy", "labels must be a list of strings. Received: one, 'xy'"),
    ],
)
def test_what_is_no_text_or_label(texts, labels, message):
    with pytest.raises(DataError, match=message):
        Examples(texts, labels)


@pytest.mark.parametrize("labels", [[0, 1], (0, 1), np.array([0, 1]), np.array(["0", "1"], object)])
def test_integers_in_any_sequence_are_labels(labels):
    examples = Examples(np.array(["a", "b"], object), labels)
    assert (examples.texts, examples.labels) == (["a", "b"], ["0", "1"])
    assert class_names_of(examples) == ("0", "1") and label_ids(examples, ("0", "1")).tolist() == [0, 1]
    assert Examples(["a", "b"], np.array([True, False])).labels == ["True", "False"]


def test_a_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))  # of Windows
    write(tmp_path, HEADER + "a,x\n")
    assert read_examples("~/data.csv").texts == ["x"]


# Real files


@pytest.mark.parametrize(
    "name, arguments, rows, official",
    [
        ("ag_news/test.csv", {}, 7600, True),
        ("ag_news/train_title_desc.csv", {}, 14404, True),
        ("ag_news/train.csv", {}, 31343, False),
        ("glue/SST-2/dev.tsv", {}, 872, False),
        ("glue/MRPC/dev.tsv", {"label_column": "Quality", "text_columns": ["#1 String", "#2 String"]}, 500, False),
        ("glue/RTE/dev.tsv", {"text_columns": ["sentence1", "sentence2"]}, 277, False),
    ],
)
def test_public_data_sets(shared, name, arguments, rows, official):
    examples = read_examples(shared / "data" / name, **arguments)
    assert len(examples) == rows
    assert examples.official_ag_news == official
    assert not any(re.search("[\ud800-\udfff]", text) for text in examples.texts)
