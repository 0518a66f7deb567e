"""Whole jobs: fine-tune and evaluate, reproducibly, and counted right."""

import dataclasses
import json

import numpy as np
import pytest
from fake_weights import write_hf_folder

import keras_bert_kit as kbk

TEXTS = ["the team wins the game", "we love the team", "the bank", "market report", "a space robot", "robot in space"]
EXAMPLES = kbk.Examples(TEXTS * 3, ["sports", "sports", "money", "money", "space", "space"] * 3)


def finetune(folder, examples=EXAMPLES, **options):
    bert = kbk.load_pretrained(folder)
    reports = []
    options = dict(epochs=2, batch_size=8, learning_rate=5e-3, max_length=16, report=reports.append) | options
    model, evaluations = kbk.finetune_classifier(bert, examples, examples, **options)
    return model, evaluations, reports


def test_the_same_seed_gives_the_same_weights(tmp_path):
    write_hf_folder(tmp_path, heads=())
    one, other, another = (finetune(tmp_path, seed=seed)[0].get_weights() for seed in (5, 5, 6))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(np.any(a != b) for a, b in zip(one, another, strict=True))


def test_the_plan_and_the_evaluations_are_reported(tmp_path):
    write_hf_folder(tmp_path, heads=())
    _, evaluations, (plan, table, *reported) = finetune(tmp_path, max_length=5)
    assert (plan.num_examples, plan.num_steps, plan.num_warmup_steps, plan.num_truncated) == (18, 6, 0, 6)
    assert plan.class_names == ("money", "space", "sports") and plan.class_counts == (6, 6, 6)
    assert str(plan).startswith("18 examples (6 money, 6 space, 6 sports), 6 truncated; 6 steps, 0 of them warm-up")
    assert reported == evaluations and len(evaluations) == 2
    assert table.splitlines()[0].split() == ["layer", "variables", "numbers", "trained", "decayed", "rate"]


def test_the_default_rate_falls_with_the_size():
    rates = [kbk.recipes.default_learning_rate(kbk.BertConfig.from_name(size, vocab_size=9)) for size in kbk.SIZES]
    assert rates == sorted(rates, reverse=True) and (rates[0], rates[-2], rates[-1]) == (1e-4, 3e-5, 2e-5)


def test_five_rows_are_one_step(tmp_path):
    write_hf_folder(tmp_path, heads=())
    _, _, reports = finetune(tmp_path, EXAMPLES.select(range(5)), batch_size=32, epochs=1)
    assert (reports[0].num_steps, reports[0].num_warmup_steps) == (1, 0)


def test_what_looks_like_a_mistake_is_warned_of(tmp_path):
    write_hf_folder(tmp_path, heads=())
    strange = kbk.Examples(["zebra quagga"] * 4 + EXAMPLES.texts[:2], ["a", "b"] * 3)
    (plan, *_), (usual, *_) = (
        finetune(tmp_path, examples, max_length=length, learning_rate=rate, epochs=1)[2]
        for examples, length, rate in ((strange, 3, 1e-2), (EXAMPLES, 16, 1e-4))
    )
    assert usual.warnings == () and len(plan.warnings) == 3
    lines = str(plan).splitlines()
    assert (
        lines[1] == "Warning: a rate of 0.01 is high for an encoder of this size that is trained too; 0.0001 is usual"
    )
    assert "of the tokens are [UNK]" in lines[2] and lines[3].startswith("Warning: 100% of the texts are truncated")


def stop_at_the_plan(plan):
    raise StopIteration(plan)


def plan_of(folder, examples):
    """The plan of a run that goes no further."""
    with pytest.raises(StopIteration) as stopped:
        finetune(folder, examples, report=stop_at_the_plan, learning_rate=1e-4)
    return stopped.value.value


def test_the_plan_counts_empty_texts_and_tells_of_joined_columns(tmp_path):
    write_hf_folder(tmp_path, heads=())
    texts = [*TEXTS, "", "  ", "\u200b"]
    examples = kbk.Examples(texts, ["a", "b", "c"] * 3, text_columns=("sentence1", "sentence2"))
    first, *_, last = str(plan_of(tmp_path, examples)).splitlines()
    assert first.startswith("9 examples (3 a, 3 b, 3 c), 0 truncated, 3 empty; 4 steps")
    assert last.startswith("Texts are sentence1 + sentence2, joined by a space: ask the model, and a server, for one")


def test_a_column_of_other_things_than_classes_is_warned_of(tmp_path):
    write_hf_folder(tmp_path, heads=())
    examples = kbk.Examples(TEXTS, ["1", "2", "3", "4", "5", "5"], label_column="id")
    assert plan_of(tmp_path, examples).warnings == ("4 of 5 classes have one example: is 'id' the label column?",)


def test_a_run_with_other_settings_does_not_go_on(tmp_path):
    """FC43: with another batch size, the steps that are left would be another number of epochs."""
    write_hf_folder(tmp_path / "m", heads=())
    finetune(tmp_path / "m", batch_size=8, epochs=1, checkpoint_dir=tmp_path / "run")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "run").iterdir())
    with pytest.raises(kbk.CheckpointError, match="batch_size was 8 and is 16; epochs was 1 and is 2, in .*run"):
        finetune(tmp_path / "m", batch_size=16, epochs=2, checkpoint_dir=tmp_path / "run")
    assert sorted((path.name, path.stat().st_mtime_ns) for path in (tmp_path / "run").iterdir()) == before


def test_a_run_goes_on_with_the_texts_and_the_source_that_it_began_with(tmp_path):
    write_hf_folder(tmp_path / "m", heads=())
    write_hf_folder(tmp_path / "other", heads=(), seed=1)
    options = dict(epochs=1, checkpoint_dir=tmp_path / "run")
    model = finetune(tmp_path / "m", **options)[0]
    for folder, examples, changed in (
        ("m", kbk.Examples(EXAMPLES.texts[::-1], EXAMPLES.labels), "examples"),
        ("m", kbk.Examples(EXAMPLES.texts, EXAMPLES.labels[::-1]), "examples"),
        ("other", EXAMPLES, "source"),
    ):
        with pytest.raises(
            kbk.CheckpointError,
            match=f"Received: fingerprint of {changed} was '[0-9a-f]{{16}}' and is '[0-9a-f]{{16}}',",
        ):
            finetune(tmp_path / folder, examples, **options)

    path = tmp_path / "run/settings.json"  # as earlier versions wrote it
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({name: settings[name] for name in settings if "fingerprint" not in name}))
    again = finetune(tmp_path / "m", **options)[0]
    for one, other in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_evaluation_counts_every_example_once(tmp_path):
    write_hf_folder(tmp_path, heads=("classifier",), class_names=["money", "space", "sports"])
    bert = kbk.load_pretrained(tmp_path)
    pack = kbk.BertPacker(bert.tokenizer, sequence_length=16)
    logits = bert.classifier(pack(EXAMPLES.texts)).numpy().astype("float64")
    labels = np.array([bert.classifier.class_names.index(label) for label in EXAMPLES.labels])
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    for batch_size in (1, 7, 18, 64):
        found = kbk.evaluate_classifier(bert.classifier, pack, EXAMPLES, batch_size)
        assert found.num_examples == 18
        assert found.accuracy == pytest.approx(np.mean(logits.argmax(-1) == labels))
        assert found.loss == pytest.approx(-np.log(probabilities[np.arange(18), labels]).mean(), abs=1e-5)
        money = (logits.argmax(-1) == labels)[labels == 0].mean()
        assert found.class_accuracies["money"] == pytest.approx(money)


def test_a_length_above_the_positions_is_refused_before_training(tmp_path):
    write_hf_folder(tmp_path, heads=())
    with pytest.raises(ValueError, match="max_length=33, max_position_embeddings=32"):
        finetune(tmp_path, max_length=33)


def test_a_source_without_vocabulary_is_refused(tmp_path):
    write_hf_folder(tmp_path, heads=())
    bert = dataclasses.replace(kbk.load_pretrained(tmp_path), tokenizer=None)
    with pytest.raises(kbk.CheckpointError, match="Texts need a vocabulary. Received: .*Put the vocab.txt"):
        kbk.recipes.packer_for(bert, 16)
