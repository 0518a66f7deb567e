"""The table in docs/loading.md, a test for each cell: heads from every format equal NumPy, and come back bit-equal."""

from pathlib import Path

import numpy as np
import pytest
from fake_checkpoints import write_google_folder, write_saved_model, write_tf_models_checkpoint
from fake_h5 import write_preset, write_tf_h5
from fake_tf1_hub import write_tf1_module
from fake_torch import write_torch
from fake_weights import write_hf_folder
from reference import Reference

from keras_bert_kit.pretrained import load_pretrained, save_pretrained
from keras_bert_kit.pretrained.heads import HEADS
from keras_bert_kit.pretrained.save import heads_left_behind, heads_not_in

IDS = np.array([[2, 20, 21, 22, 3, 0, 0], [2, 30, 31, 32, 33, 34, 3]])
INPUTS = {"input_word_ids": IDS, "input_mask": (IDS != 0).astype("int32"), "input_type_ids": (IDS > 31).astype("int32")}
POSITIONS = np.array([[1, 2], [0, 6]])
# Column of the table: heads of `fake_weights`, the attribute of `Pretrained`, the head in the report.
COLUMNS = {
    "encoder, pooler": ((), "encoder", "pooler"),
    "masked LM": (("mlm",), "pretrainer", "masked_lm"),
    "next sentence": (("nsp",), "next_sentence", "next_sentence"),
    "classifier": (("classifier",), "classifier", "classifier"),
    "token classifier": (("token_classifier",), "token_classifier", "token_classifier"),
    "question answering": (("question_answering",), "question_answering", "question_answering"),
    "multiple choice": (("multiple_choice",), "multiple_choice", "multiple_choice"),
}
ALL, OF_GOOGLE, OF_TF_HUB = [*COLUMNS], [*COLUMNS][:4] + ["question answering"], [*COLUMNS][:2]


def write_other_weights(folder, heads, write):
    """A Hugging Face folder with its weights in another file than model.safetensors."""
    written = write_hf_folder(folder, heads=heads)
    (folder / "model.safetensors").unlink()
    write(folder, written[0])
    return written


# Row of the table: what writes such a source, with which heads.
READ = {
    "Hugging Face, `model.safetensors`": (lambda folder, heads: write_hf_folder(folder, heads=heads), ALL),
    "Hugging Face, `pytorch_model.bin`": (
        lambda folder, heads: write_other_weights(
            folder, heads, lambda path, tensors: write_torch(path / "pytorch_model.bin", tensors)
        ),
        ALL,
    ),
    "Hugging Face, `tf_model.h5`": (
        lambda folder, heads: write_other_weights(
            folder, heads, lambda path, tensors: write_tf_h5(path / "tf_model.h5", tensors)
        ),
        ALL,
    ),
    "TF1 checkpoint of the original BERT": (
        lambda folder, heads: write_google_folder(folder, heads=heads),
        OF_GOOGLE,
    ),
    "TF1 module of TF-Hub": (lambda folder, heads: write_tf1_module(folder, heads=heads), OF_TF_HUB),
    "TF2 SavedModel of TF-Hub": (lambda folder, heads: write_saved_model(folder), OF_TF_HUB),
    "TF-Models object checkpoint": (lambda folder, heads: write_tf_models_checkpoint(folder), OF_TF_HUB),
    "keras-hub preset": (
        lambda folder, heads: write_preset(folder, head=heads[0] if heads else "classifier"),
        ["encoder, pooler", "masked LM", "classifier"],
    ),
}
WRITTEN = {
    "Hugging Face, `model.safetensors`": ("hf", ALL),
    "TF1 checkpoint of the original BERT": ("tf1", OF_GOOGLE),
    "TF2 SavedModel of TF-Hub": ("tf-hub", OF_TF_HUB),
}


def cells(table):
    return [(row, column) for row, (_, columns) in table.items() for column in columns]


def outputs_of(bert, column):
    """The output of the model with a head, as one array."""
    model = getattr(bert, COLUMNS[column][1])
    if column == "multiple choice":
        return np.asarray(model({name: array[None] for name, array in INPUTS.items()}))
    if column == "masked LM":
        return np.asarray(model(INPUTS | {"masked_lm_positions": POSITIONS})["mlm_logits"])
    outputs = model(INPUTS)
    if column == "question answering":
        return np.stack([outputs["start_logits"], outputs["end_logits"]], axis=-1)
    return np.asarray(outputs["pooled_output"] if column == "encoder, pooler" else outputs)


def expected_of(row, tensors, config, column):
    """The same from NumPy."""
    reference = Reference(tensors, config)
    outputs = reference(*INPUTS.values(), masked_lm_positions=POSITIONS)
    if row == "keras-hub preset" and column == "masked LM":  # its head has another GELU and epsilon than its encoder
        head = Reference(tensors, config | {"hidden_act": "gelu", "layer_norm_eps": 1e-5})
        return head.mlm_logits(np.take_along_axis(outputs["sequence_output"], POSITIONS[:, :, None], axis=1))
    if column in ("token classifier", "question answering"):
        return reference.dense(outputs["sequence_output"], "classifier" if "token" in column else "qa_outputs")
    names = {"encoder, pooler": "pooled_output", "masked LM": "mlm_logits", "next sentence": "nsp_logits"}
    logits = outputs[names.get(column, "logits")]
    return logits.reshape(1, -1) if column == "multiple choice" else logits


@pytest.mark.parametrize(("row", "column"), cells(READ))
def test_in(tmp_path, row, column):
    heads, _, head = COLUMNS[column]
    tensors, config = READ[row][0](tmp_path / "m", heads)
    bert = load_pretrained(tmp_path / "m")
    assert head in bert.report.heads
    np.testing.assert_allclose(outputs_of(bert, column), expected_of(row, tensors, config, column), atol=1e-5)


@pytest.mark.parametrize(("row", "column"), cells(WRITTEN))
def test_out(tmp_path, row, column):
    heads, attribute, head = COLUMNS[column]
    format, _ = WRITTEN[row]
    write_hf_folder(tmp_path / "in", heads=heads, hidden_act="gelu_new")
    bert = load_pretrained(tmp_path / "in")
    save_pretrained(getattr(bert, attribute), tmp_path / "out", tokenizer=bert.tokenizer, format=format)
    again = load_pretrained(tmp_path / "out")
    for one, two in zip(getattr(bert, attribute).weights, getattr(again, attribute).weights, strict=True):
        np.testing.assert_array_equal(one, two)
    assert again.report.heads == bert.report.heads and head in again.report.heads
    np.testing.assert_array_equal(outputs_of(again, column), outputs_of(bert, column))


def test_the_table_in_the_docs_has_these_cells_and_no_others():
    text = (Path(__file__).resolve().parents[1] / "docs/loading.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    header = next(number for number, line in enumerate(lines) if line == ["format", *COLUMNS])
    found = {row: dict(zip(COLUMNS, said, strict=True)) for row, *said in lines[header + 2 : header + 2 + len(READ)]}
    assert found.keys() == READ.keys()
    for row, said in found.items():
        for column, words in said.items():
            both = [word for word, table in (("in", READ), ("out", WRITTEN)) if (row, column) in cells(table)]
            assert words == (", ".join(both) or "–"), (row, column)
    for _, (format, columns) in WRITTEN.items():
        without = {head for head in HEADS if heads_not_in(format, [head]) or heads_left_behind(format, [head])}
        assert {column for column in COLUMNS if COLUMNS[column][2] not in without} == set(columns)
