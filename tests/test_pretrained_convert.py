"""`keras-bert-kit convert`: between all formats and back bit-equal; a head is dropped only when others are named."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from fake_checkpoints import write_google_folder, write_saved_model, write_tf_models_checkpoint
from fake_tf1_hub import write_tf1_module
from fake_weights import write_hf_folder

from keras_bert_kit.cli.command import cli
from keras_bert_kit.pretrained import load_pretrained


def convert(source, out, to, *options):
    """Runs the command; returns the JSON object that it prints, or raises what it raises."""
    command = ["convert", str(source), str(out), "--to", to, "--json", *options]
    result = CliRunner().invoke(cli, command, catch_exceptions=False, standalone_mode=False)
    assert not result.exception, result.output
    return json.loads(result.output.splitlines()[-1])


def weights_of(folder):
    bert = load_pretrained(folder)
    model = bert.pretrainer or bert.question_answering or bert.classifier or bert.encoder
    return {variable.path: np.asarray(variable) for variable in model.trainable_variables}, bert


def require_same(folder, other):
    (weights, bert), (others, again) = weights_of(folder), weights_of(other)
    assert weights.keys() == others.keys()
    for path, array in weights.items():
        np.testing.assert_array_equal(array, others[path])
    assert again.config == bert.config and again.report.heads == bert.report.heads
    assert again.tokenizer.vocabulary == bert.tokenizer.vocabulary
    assert again.tokenizer.lowercase == bert.tokenizer.lowercase


@pytest.mark.parametrize(
    ("write", "ways"),
    [
        (write_google_folder, [("hf", "tf1"), ("tf1", "hf")]),
        (write_saved_model, [("hf", "tf-hub"), ("tf1", "tf-hub"), ("tf-hub", "hf")]),
        (write_tf1_module, [("tf1", "tf-hub", "hf")]),
    ],
)
def test_any_way_through_the_formats_ends_where_it_began(tmp_path, write, ways):
    write(tmp_path / "source")
    for way in ways:
        here = tmp_path / "source"
        for step, to in enumerate(way):
            there = tmp_path / "-".join(way) / str(step)
            result = convert(here, there, to)
            assert result["out"] == str(there) and result["format"] == to and result["dropped_heads"] == []
            here = there
        require_same(tmp_path / "source", here)


@pytest.mark.parametrize(
    ("folder", "formats"),
    [
        ("hf/pretraining_gelu_new", ("hf", "tf1")),
        ("hf/pretraining_gelu", ("hf", "tf1")),
        ("hf/tf_model_h5_pretraining", ("hf", "tf1")),
        ("hf/question_answering", ("hf", "tf1")),
        ("hub/encoder_v4_with_mlm", ("hf", "tf1", "tf-hub")),
        ("keras_hub/text_classifier", ("hf", "tf1")),
        ("keras_hub/masked_lm", ("tf-hub",)),
        ("tf1_checkpoint", ("hf", "tf1")),
    ],
)
def test_fixtures_come_back_bit_equal(shared, tmp_path, folder, formats):
    for to in formats:
        convert(shared / "fixtures" / folder, tmp_path / to, to)
        require_same(shared / "fixtures" / folder, tmp_path / to)


def test_a_head_without_a_place_is_dropped_only_when_the_others_are_named(tmp_path):
    write_google_folder(tmp_path / "m", heads=("classifier",))
    with pytest.raises(ValueError, match="Received: pooler, classifier in .*'tf-hub' has no place for classifier"):
        convert(tmp_path / "m", tmp_path / "out", "tf-hub")
    assert not (tmp_path / "out").exists()
    result = convert(tmp_path / "m", tmp_path / "encoder", "tf-hub", "--head", "pooler")
    assert result["dropped_heads"] == ["classifier"]


def test_the_next_sentence_head_that_tf_hub_never_holds_is_left_behind_and_said_so(tmp_path, caplog):
    write_google_folder(tmp_path / "m")
    result = convert(tmp_path / "m", tmp_path / "out", "tf-hub")
    assert result["dropped_heads"] == ["next_sentence"]
    assert "format='tf-hub' has no place for next_sentence: not written to" in caplog.text
    assert load_pretrained(tmp_path / "out").report.heads == ("pooler", "masked_lm")


def test_a_source_of_several_models_must_be_reduced_to_one(tmp_path):
    write_google_folder(tmp_path / "m", heads=("mlm", "classifier"))
    with pytest.raises(ValueError, match="Received: pooler, masked_lm, classifier.*but a folder holds one model"):
        convert(tmp_path / "m", tmp_path / "out", "hf")
    convert(tmp_path / "m", tmp_path / "out", "hf", "--head", "classifier")
    assert load_pretrained(tmp_path / "out").report.heads == ("pooler", "classifier")


def test_what_cannot_be_written_is_said_before_anything_is(tmp_path):
    write_tf_models_checkpoint(tmp_path / "m")
    with pytest.raises(ValueError, match="must hold a vocabulary. Received: none in .*Put its vocab.txt there"):
        convert(tmp_path / "m", tmp_path / "out", "hf")
    write_hf_folder(tmp_path / "hf", layer_norm_eps=1e-5)
    with pytest.raises(ValueError, match="Google's code has no other.*Received: layer_norm_eps=1e-05"):
        convert(tmp_path / "hf", tmp_path / "out", "tf1")
    with pytest.raises(FileExistsError, match="must not exist yet, or be empty"):
        convert(tmp_path / "hf", tmp_path / "hf", "hf")
    assert not (tmp_path / "out").exists()
