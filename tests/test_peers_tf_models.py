"""TF-Models, in its own environment, makes models that we open, and opens those that we write."""

import numpy as np
import pytest
from peers import run_peer

from keras_bert_kit.pretrained import load_pretrained, save_pretrained

pytestmark = pytest.mark.peers
SCRIPT = "tf_models_peer.py"
INPUTS = ("input_word_ids", "input_mask", "input_type_ids", "masked_lm_positions")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a checkpoint and SavedModels of one model, made by TF-Models."""
    folder = tmp_path_factory.mktemp("tf_models")
    run_peer("KIT_PEER_TF_MODELS", SCRIPT, "make", folder)
    return folder


def require_equal(bert, theirs, inputs):
    inputs = {key: inputs[key] for key in INPUTS}
    outputs = dict(bert.pretrainer(inputs)) if bert.pretrainer else {}
    del inputs["masked_lm_positions"]
    outputs |= bert.encoder(inputs)
    names = {"sequence_output", "pooled_output", "default"} | ({"mlm_logits"} if bert.pretrainer else set())
    for name in names:
        np.testing.assert_allclose(outputs[name], theirs[name], atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", ["checkpoint", "saved_model", "saved_model_mlm"])
def test_their_model_opens_here(made, name):
    golden = np.load(made / "expected.npz")
    bert = load_pretrained(made / name)
    assert (bert.pretrainer is None) == (name == "saved_model") and not bert.report.random
    assert bert.config.num_hidden_layers == 3 and bert.config.hidden_size == 24
    require_equal(bert, golden, golden)


@pytest.mark.parametrize("format", ["tf1", "tf-hub"])
def test_our_model_opens_there(made, tmp_path, format):
    golden = np.load(made / "expected.npz")
    bert = load_pretrained(made / "saved_model_mlm")
    for weight in bert.pretrainer.trainable_variables:  # other numbers than the ones that TF-Models wrote
        weight.assign(weight * 1.1)
    save_pretrained(bert.pretrainer, tmp_path / "ours", tokenizer=bert.tokenizer, format=format)
    np.savez(tmp_path / "ours/inputs.npz", **{key: golden[key] for key in INPUTS})
    run_peer("KIT_PEER_TF_MODELS", SCRIPT, format, tmp_path / "ours")
    require_equal(bert, np.load(tmp_path / "ours/theirs.npz"), golden)
