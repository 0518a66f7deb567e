"""`pretrain_bert` and the command `pretrain`: phases, further pre-training, going on, and what is refused."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest
from click.testing import CliRunner

import keras_bert_kit as kbk
from keras_bert_kit.cli.command import cli
from keras_bert_kit.data import PretrainingBatches, PretrainingSettings, write_pretraining_data
from keras_bert_kit.recipes import new_pretrainer, pretrain_bert, pretrainer_of
from keras_bert_kit.recipes.pretraining import baselines_of, default_pretraining_rate

WORDS = "the cat sat on a mat and saw one dog run by my old red house near our long green river".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *WORDS]
CONFIG = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)


def write_corpus(path, num_documents=12, seed=0):
    """Documents of made-up sentences, one a line."""
    generator = np.random.default_rng(seed)
    sentences = [" ".join(generator.choice(WORDS, 6)) + " ." for _ in range(num_documents * 6)]
    documents = ["\n".join(sentences[i * 6 : i * 6 + 6]) for i in range(num_documents)]
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two sets of training data, of 16 and 32 tokens, and a held-out one."""
    folder = tmp_path_factory.mktemp("pretraining")
    tokenizer = kbk.BertTokenizer(VOCABULARY)
    for name, length, seed in (("short", 16, 0), ("long", 32, 1), ("held_out", 16, 2)):
        corpus = write_corpus(folder / f"{name}.txt", seed=seed)
        settings = PretrainingSettings(sequence_length=length)
        write_pretraining_data([corpus], tokenizer, folder / name, settings, processes=1, report=lambda _: None)
    return folder


def new_model(max_position_embeddings=32):
    keras.utils.set_random_seed(0)
    sizes = dict(CONFIG, vocab_size=len(VOCABULARY), max_position_embeddings=max_position_embeddings)
    return new_pretrainer(kbk.BertConfig(**sizes))


def run(folder, checkpoint_dir=None, **options):
    """Two phases of three steps; returns the model and what was reported."""
    model, lines = new_model(), []
    data = [PretrainingBatches(folder / name, size, seed=0) for name, size in (("short", 8), ("long", 4))]
    evaluation = PretrainingBatches(folder / "held_out", 8, seed=0)
    options = dict(checkpoint_dir=checkpoint_dir, report=lambda line: lines.append(str(line))) | options
    return model, pretrain_bert(model, data, [3, 3], evaluation, **options), lines


@pytest.fixture(scope="module")
def straight(folder):
    """A run of both phases, from start to end: (folder of checkpoints, model, history, lines reported)."""
    return folder / "run", *run(folder, folder / "run", validate_every=3, save_every=2)


def test_a_run_says_what_it_does_and_how_good_it_gets(straight):
    _, _, history, lines = straight
    text = "\n".join(lines)
    assert "rows of up to 16 tokens; 3 steps of 8 rows" in text and "rows of up to 32 tokens; 3 steps of 4 rows" in text
    assert "6 steps of adamw, 0 of them warm-up, rate 0.001" in text
    assert "always the most frequent answer, held out: masked words 0." in text
    assert "step 3 of 6, held out: masked words" in text and "next sentences" in text
    assert [step for step, _ in history.validations] == [3, 6]
    assert {"mlm_accuracy", "mlm_perplexity", "nsp_accuracy"} <= history.validations[-1][1].keys()
    assert history.step == 6


def test_a_run_that_was_cut_goes_on_bit_identical(folder, straight, tmp_path):
    checkpoints, model, _, _ = straight
    shutil.copytree(checkpoints, tmp_path / "cut")
    shutil.rmtree(tmp_path / "cut/step-00000006")  # goes on after step 4, in the second phase
    resumed, history, _ = run(folder, tmp_path / "cut", validate_every=3, save_every=2)
    assert history.step == 6
    for one, other in zip(model.weights, resumed.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_other_settings_are_refused(folder, straight):
    with pytest.raises(kbk.CheckpointError, match="learning_rate was 0.001 and is 0.01"):
        run(folder, straight[0], learning_rate=0.01)


def test_the_baselines_are_the_shares_of_the_most_frequent_answers():
    words, sentences = [[[1, 2, -100], [2, -100, -100]], [[7, 2, 7]]], [[0, 1], [1]]
    labels = [{"mlm_logits": np.array(a), "nsp_logits": np.array(b)} for a, b in zip(words, sentences, strict=True)]
    assert baselines_of((None, found) for found in labels) == {"mlm_accuracy": 3 / 6, "nsp_accuracy": 2 / 3}


def test_data_that_does_not_fit_the_model_is_refused(folder):
    data = [PretrainingBatches(folder / "long", 4)]
    with pytest.raises(kbk.DataError, match="longer sequences.*sequence_length=32.*max_position_embeddings=16"):
        pretrain_bert(new_model(max_position_embeddings=16), data, [1])
    small = new_pretrainer(kbk.BertConfig(**CONFIG, vocab_size=20))
    with pytest.raises(kbk.DataError, match=f"vocabulary of the model. Received: {len(VOCABULARY)} tokens.*=20"):
        pretrain_bert(small, data, [1])


def test_an_encoder_without_heads_gets_new_ones(tmp_path):
    tokenizer = kbk.BertTokenizer(VOCABULARY)
    kbk.save_pretrained(new_model().encoder, tmp_path / "encoder", tokenizer=tokenizer)
    model, new = pretrainer_of(kbk.load_pretrained(tmp_path / "encoder"))
    assert new == ("masked_lm", "next_sentence")
    kbk.save_pretrained(model, tmp_path / "pretrainer", tokenizer=tokenizer)
    assert pretrainer_of(kbk.load_pretrained(tmp_path / "pretrainer"))[1] == ()


def invoke(*arguments):
    return CliRunner().invoke(cli, ["pretrain", *map(str, arguments)])


def test_command_line_from_data_to_a_bert_and_further(folder, tmp_path):
    ran = invoke(
        *("--data", folder / "short", "--steps", 2, "--data", folder / "long", "--steps", 1, "--batch-size", 4),
        *("--eval", folder / "held_out", "--size", "L-1_H-16_A-2", "--optimizer", "lamb", "--strategy", "cpu"),
        *("--out", tmp_path / "bert", "--json"),
    )
    assert ran.exit_code == 0, ran.output
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["steps"] == 3 and 0 <= result["mlm_accuracy"] <= 1 and "nsp_accuracy" in result
    bert = kbk.load_pretrained(tmp_path / "bert")
    assert bert.tokenizer.vocabulary == VOCABULARY and bert.pretrainer is not None

    ran = invoke(
        *("--data", folder / "short", "--steps", 1, "--source", tmp_path / "bert", "--strategy", "cpu"),
        *("--out", tmp_path / "further"),
    )
    assert ran.exit_code == 0, ran.output
    assert kbk.load_pretrained(tmp_path / "further").config == bert.config


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max-predictions-per-seq", 10, "--max-predictions-per-seq=10, and 3 in"),
        ("--max-seq-length", 64, "--max-seq-length=64, and 16 in"),
    ],
)
def test_sizes_are_those_of_the_data(folder, tmp_path, option, value, message):
    ran = invoke(
        *("--data", folder / "short", "--steps", 1, "--size", "tiny", "--out", tmp_path / "bert", option, value),
        *("--strategy", "cpu"),
    )
    assert isinstance(ran.exception, kbk.DataError) and message in str(ran.exception)
    assert not (tmp_path / "bert").exists()


def test_another_vocabulary_than_the_checkpoints_is_refused(folder, tmp_path):
    words = [*VOCABULARY[:-2], "green", "brook"]
    kbk.save_pretrained(new_model(), tmp_path / "bert", tokenizer=kbk.BertTokenizer(words))
    ran = invoke(
        *("--data", folder / "short", "--steps", 1, "--source", tmp_path / "bert", "--out", tmp_path / "out"),
        *("--strategy", "cpu"),
    )
    assert isinstance(ran.exception, kbk.DataError)
    assert f"they differ first at id {len(words) - 1}" in str(ran.exception)


def make_data(text, vocab, out, *more):
    words = (text, "--vocab", vocab, "--out", out, "--max-length", 16, "--processes", 1, *more)
    return CliRunner().invoke(cli, ["make-pretraining-data", *map(str, words)])


def test_data_for_a_source_has_all_settings_of_its_tokenizer(tmp_path):
    """A German model keeps its accents: on text without them it would be trained on words that it never meets."""
    text = write_corpus(tmp_path / "text.txt")
    text.write_text(text.read_text(encoding="utf-8").replace("mat", "mät"), encoding="utf-8")
    tokenizer = kbk.BertTokenizer(
        [word.replace("mat", "mät") for word in VOCABULARY], strip_accents=False, special_tokens_in_text=False
    )
    kbk.save_pretrained(new_model(), tmp_path / "bert", tokenizer=tokenizer)
    assert make_data(text, tmp_path / "bert/vocab.txt", tmp_path / "stripped").exit_code == 0
    assert make_data(text, tmp_path / "bert", tmp_path / "fitting").exit_code == 0
    assert make_data(text, tmp_path / "fitting", tmp_path / "like other data").exit_code == 0
    for name, unknown in (("stripped", True), ("fitting", False), ("like other data", False)):
        statistics = json.loads((tmp_path / name / "statistics.json").read_text())
        assert (statistics["unknown_tokens"] > 0) == unknown

    options = ("--steps", 1, "--source", tmp_path / "bert", "--out", tmp_path / "further", "--strategy", "cpu")
    ran = invoke("--data", tmp_path / "stripped", *options)
    assert isinstance(ran.exception, kbk.DataError) and not (tmp_path / "further").exists()
    assert "strip_accents=True and False, special_tokens_in_text=True and False" in str(ran.exception)
    assert f"--vocab {tmp_path / 'bert'}" in str(ran.exception)
    ran = invoke("--data", tmp_path / "fitting", *options)
    assert ran.exit_code == 0, ran.output
    further = kbk.load_pretrained(tmp_path / "further").tokenizer
    assert further.get_config() | {"name": ""} == tokenizer.get_config() | {"name": ""}
    ran = make_data(text, tmp_path / "bert", tmp_path / "out", "--cased")
    assert ran.exit_code == 2 and "--cased is for a vocab.txt" in ran.output


def test_a_finished_run_does_not_stand_for_one_from_another_source(folder, straight, tmp_path):
    kbk.save_pretrained(straight[1], tmp_path / "bert", tokenizer=kbk.BertTokenizer(VOCABULARY))
    source = kbk.load_pretrained(tmp_path / "bert")
    with pytest.raises(
        kbk.CheckpointError,
        match="fingerprint of source was None and is '[0-9a-f]{16}'; learning_rate was 0.001 and is 0.0002, in",
    ):
        run(folder, straight[0], source=source)


def test_the_rate_of_further_training_is_a_fifth():
    rates = [default_pretraining_rate(kbk.BertConfig.from_name(size, vocab_size=9), True) for size in ("tiny", "base")]
    assert rates == [pytest.approx(2e-4), pytest.approx(2e-5)]


def test_a_share_of_warm_up_is_told_in_steps(folder):
    with pytest.raises(KeyboardInterrupt):  # nothing is trained
        run(folder, num_warmup_steps=0.5, report=stop_at_the_plan)


def stop_at_the_plan(plan):
    assert "6 steps of adamw, 3 of them warm-up" in str(plan)
    raise KeyboardInterrupt


def test_of_several_workers_the_chief_saves(folder, straight, tmp_path, monkeypatch):
    for place in ("recipes.pretraining", "recipes.same_run", "cli.pretrain", "cli.command"):
        monkeypatch.setattr(f"keras_bert_kit.{place}.is_chief", lambda strategy: False)
    ran = invoke(
        *("--data", folder / "short", "--steps", 1, "--batch-size", 4, "--size", "L-1_H-16_A-2", "--strategy", "cpu"),
        *("--out", tmp_path / "bert", "--checkpoint-dir", tmp_path / "run"),
    )
    assert ran.exit_code == 0, ran.output
    assert f"trained; the chief worker saves to {tmp_path / 'bert'}" in ran.output and not (tmp_path / "bert").exists()
    assert not [path for path in (tmp_path / "run").iterdir() if path.name in ("training.png", "settings.json")]


def test_all_data_of_a_run_has_one_tokenizer_and_one_form(folder, tmp_path):
    settings = PretrainingSettings(sequence_length=16)
    for name, vocabulary, packed in (
        ("other", VOCABULARY[:5] + VOCABULARY[:4:-1], False),
        ("packed", VOCABULARY, True),
    ):
        made = dict(settings=dataclasses.replace(settings, packed=packed), processes=1, report=lambda _: None)
        write_pretraining_data(folder / "short.txt", kbk.BertTokenizer(vocabulary), tmp_path / name, **made)
    short, other, packed = (
        PretrainingBatches(path, 4) for path in (folder / "short", tmp_path / "other", tmp_path / "packed")
    )
    for data, evaluation in (([short, other], None), ([short], other)):
        with pytest.raises(kbk.DataError, match="with the vocabulary of .*short. Received: .*differ first at id 5"):
            pretrain_bert(new_model(), data, [1] * len(data), evaluation)
    with pytest.raises(
        kbk.DataError, match="phases must be packed, or none. Received: packed=False in .*short, packed=True"
    ):
        pretrain_bert(new_model(), [short, packed], [1, 1])


@pytest.mark.parametrize(
    "arguments", [["--steps", 1], ["--steps", 1, "--size", "tiny", "--source", "x"], ["--steps", 1, "--steps", 2]]
)
def test_wrong_usage(folder, tmp_path, arguments):
    ran = invoke("--data", folder / "short", "--out", tmp_path / "bert", *arguments)
    assert ran.exit_code == 2 or isinstance(ran.exception, SystemExit), ran.output
