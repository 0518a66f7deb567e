import json

import pytest

from keras_bert_kit.data import class_names_of, read_examples
from keras_bert_kit.errors import DataError

GOOD = '{"label": "a", "text": "one"}\n'


def write(tmp_path, content, name="data.jsonl"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def objects(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("name", ["data.jsonl", "data.ndjson", "data.json", "DATA.JSONL", "data.txt", "data"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_objects_of_strings(tmp_path, name, end):
    text = 'quo"te, \t\u00e9 \U0001f600 \u2028 null'
    lines = ['{"text": "one", "label": " a "}', "  ", json.dumps({"label": "b", "text": text}, ensure_ascii=False), ""]
    examples = read_examples(write(tmp_path, b"\xef\xbb\xbf" + end.join(lines).encode(), name))
    assert (examples.labels, examples.texts) == (["a", "b"], ["one", text])
    assert (examples.label_column, examples.text_columns) == ("label", ("text",))
    assert examples.source == str(tmp_path / name) and not examples.official_ag_news


def test_columns_are_found_and_given_as_in_tables(tmp_path):
    rows = [{"idx": 0, "Sentence1": "one", "sentence2": "two", "label": 1, "extra": {"deep": [None]}}]
    rows += [{"label": 0, "Sentence1": "three", "sentence2": ""}]  # keys in another order, one that is not read missing
    path = write(tmp_path, objects(*rows))
    assert read_examples(path).texts == ["one two", "three "]
    assert read_examples(path, text_columns="sentence2", label_column="LABEL").texts == ["two", ""]
    with pytest.raises(DataError, match="no column 'txt'. Received: columns 'idx', 'Sentence1', 'sentence2', 'label'"):
        read_examples(path, text_columns="txt")
    with pytest.raises(DataError, match="must name a label column. Received: column 'text'"):
        read_examples(write(tmp_path, '{"text": "x"}\n'))
    with pytest.raises(DataError, match="must name a label column. Received: no columns"):
        read_examples(write(tmp_path, "{}\n"))


def test_labels_may_be_integers_of_any_size_and_booleans(tmp_path):
    numbers = [10, 9, -1, 2**64, 10**40]
    examples = read_examples(write(tmp_path, objects(*({"text": "x", "label": number} for number in numbers))))
    assert examples.labels == [str(number) for number in numbers]
    assert class_names_of(examples) == ("-1", "9", "10", str(2**64), str(10**40))
    examples = read_examples(write(tmp_path, objects({"text": "x", "label": True}, {"text": "y", "label": False})))
    assert examples.labels == ["True", "False"]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{'label': 'a'}", r"line 2 is not a JSON object \(Expecting property name.*, character 2\)"),
        ('{"label": "a", "text": "cut', r"line 2 is not a JSON object \(Invalid control character.*, character 28\)"),
        ('{"label": "a", "text": "x"} {}', "line 2 is not a JSON object .Extra data"),
        ("a,one", "line 2 is not a JSON object .Expecting value"),
        ('["a", "one"]', "line 2 holds something else than one JSON object"),
        ("null", "line 2 holds something else than one JSON object"),
        ('{"label": "a"}', "line 2 lacks 'text'"),
        ("{}", "line 2 lacks 'label', 'text'"),
        ('{"label": "a", "text": "x", "text": "y"}', r"line 2 cannot be read \(a key is there twice\)"),
        ('{"label": "a", "text": null}', "line 2 has null in column 'text' where text must be"),
        ('{"label": "a", "text": 5}', "line 2 has a number in column 'text' where text must be"),
        ('{"label": "a", "text": ["x", "y"]}', "line 2 has a list in column 'text'"),
        ('{"label": "a", "text": {"en": "x"}}', "line 2 has an object in column 'text'"),
        ('{"label": null, "text": "x"}', "line 2 has null in column 'label'; a label is a string or an integer"),
        ('{"label": ["a"], "text": "x"}', "line 2 has a list in column 'label'"),
        ('{"label": 1.5, "text": "x"}', "line 2 has a fractional number in column 'label'"),
        ('{"label": NaN, "text": "x"}', "line 2 has a fractional number in column 'label'"),
        ('{"label": 1, "text": "x"}', "line 2 has a number in column 'label' where the first row has a string"),
        ('{"label": true, "text": "x"}', "line 2 has true or false in column 'label' where the first row has a string"),
        ('{"label": "", "text": "x"}', "line 2 has an empty label"),
        ('{"label": "a", "text": "\\ud83d"}', "line 2 holds half a surrogate pair in column 'text'"),
        ('{"label": "\\u0000", "text": "x"}', "line 2 holds a NUL character in column 'label'"),
        ('{"label": ' + "9" * 5000 + ', "text": "x"}', "line 2 cannot be read .Exceeds the limit"),
        ('{"label": "a", "text": ' + "[" * 100_000, "line 2 cannot be read .maximum recursion depth"),
    ],
)
def test_one_bad_line(tmp_path, line, fault):
    with pytest.raises(DataError, match=f"Received 1 bad: {fault}") as raised:
        read_examples(write(tmp_path, GOOD + line + "\n" + GOOD))
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 500


def test_bad_lines_are_listed_together(tmp_path):
    path = write(tmp_path, GOOD.encode() + b'\n{"text": "caf\xe9", "label": "a"}\n' + b"{\n" * 25)
    with pytest.raises(DataError, match="Received 26 bad: line 3 is not UTF-8 .byte 0xE9.*; line 4 is.*; and 16 more"):
        read_examples(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Received: an empty file"),
        ("\n \n", "Received: an empty file"),
        ('[\n{"label": "a", "text": "one"}\n]', "Received: a JSON array, .* jq -c '.\\[\\]'"),
        ('{\n  "label": "a"\n}', "line 1 is not a JSON object"),
        ("label,text\na,one\n", "line 1 is not a JSON object"),
        ("5\n" + GOOD, "line 1 holds something else"),
        (b"\x1f\x8b....", "Received: a gzip archive"),
        (b"PAR1....", "Received: a Parquet file"),
    ],
)
def test_files_without_objects(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read_examples(write(tmp_path, content))
