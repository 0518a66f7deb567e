"""Transformers on PyTorch, in its own environment, makes models that we open, and opens those that we write."""

import numpy as np
import pytest
from peers import run_peer

from keras_bert_kit.pretrained import load_pretrained, save_pretrained

pytestmark = pytest.mark.peers
SCRIPT = "transformers_peer.py"
# Each class of Transformers, and the model in `Pretrained` that it is.
MODELS = {
    "BertModel": "encoder",
    "BertForPreTraining": "pretrainer",
    "BertForMaskedLM": "pretrainer",
    "BertForNextSentencePrediction": "next_sentence",
    "BertForSequenceClassification": "classifier",
    "BertForTokenClassification": "token_classifier",
    "BertForQuestionAnswering": "question_answering",
    "BertForMultipleChoice": "multiple_choice",
}
# Their names of outputs that have another name here.
OUTPUTS = {
    "last_hidden_state": "sequence_output",
    "pooler_output": "pooled_output",
    "prediction_logits": "mlm_logits",
    "seq_relationship_logits": "nsp_logits",
}
INPUTS = {"input_ids": "input_word_ids", "attention_mask": "input_mask", "token_type_ids": "input_type_ids"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a model of each class, made by Transformers."""
    folder = tmp_path_factory.mktemp("transformers")
    run_peer("KIT_PEER_PYTORCH", SCRIPT, "make", folder)
    return folder


def require_equal(name, model, theirs, inputs):
    """Compares all outputs that a class of Transformers gives with those of our model."""
    batch = {ours: inputs[name] for name, ours in INPUTS.items()}
    if name in ("BertForPreTraining", "BertForMaskedLM"):
        positions = np.arange(batch["input_mask"].shape[1])
        batch["masked_lm_positions"] = np.tile(positions, (len(batch["input_mask"]), 1))
    outputs = model(batch)
    outputs = outputs if isinstance(outputs, dict) else {"logits": outputs}
    for theirs_name in theirs:
        ours_name = "mlm_logits" if name == "BertForMaskedLM" else OUTPUTS.get(theirs_name, theirs_name)
        np.testing.assert_allclose(outputs[ours_name], theirs[theirs_name], atol=1e-5, err_msg=f"{name} {theirs_name}")


@pytest.mark.parametrize("name", MODELS)
def test_their_model_opens_here(made, name):
    golden = dict(np.load(made / name / "expected.npz"))
    inputs = {key: golden.pop(key) for key in INPUTS}
    bert = load_pretrained(made / name)
    assert golden and not bert.report.random
    require_equal(name, getattr(bert, MODELS[name]), golden, inputs)


@pytest.mark.parametrize("name", MODELS)
def test_our_model_opens_there(made, tmp_path, name):
    golden = dict(np.load(made / name / "expected.npz"))
    bert = load_pretrained(made / name)
    model = getattr(bert, MODELS[name])
    for weight in model.trainable_variables:  # other numbers than the ones that Transformers wrote
        weight.assign(weight * 1.1)
    save_pretrained(model, tmp_path / "ours", tokenizer=bert.tokenizer, format="hf")
    np.savez(tmp_path / "ours/inputs.npz", **{key: golden[key] for key in INPUTS})
    run_peer("KIT_PEER_PYTORCH", SCRIPT, "open", tmp_path / "ours")
    theirs = np.load(tmp_path / "ours/theirs.npz")
    assert set(theirs) == golden.keys() - INPUTS.keys()
    require_equal(name, model, theirs, golden)
