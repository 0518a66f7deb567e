"""Runs where PyTorch and Transformers are: makes models there, or opens ours. See test_peers_transformers.py.

transformers_peer.py make FOLDER    a folder for each class, random weights, with expected.npz in it
transformers_peer.py open FOLDER    outputs of the folder's model on its inputs.npz, to theirs.npz
"""

import sys
from pathlib import Path

import numpy as np
import torch
import transformers

SIZES = dict(
    vocab_size=67,
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=3,
    intermediate_size=40,
    max_position_embeddings=20,
    type_vocab_size=3,
    initializer_range=0.1,
    hidden_act="gelu",
    attn_implementation="eager",
)
CLASSES = {
    "BertModel": {},
    "BertForPreTraining": {"hidden_act": "gelu_new"},
    "BertForMaskedLM": {"num_attention_heads": 6},
    "BertForNextSentencePrediction": {"num_hidden_layers": 1},
    "BertForSequenceClassification": {"num_labels": 5, "layer_norm_eps": 1e-6},
    "BertForTokenClassification": {"num_labels": 4, "hidden_act": "relu"},
    "BertForQuestionAnswering": {"vocab_size": 90},
    "BertForMultipleChoice": {"intermediate_size": 17},
}


def make(folder):
    """Writes a model of each class, with biases and norms that are random too."""
    for seed, (name, changes) in enumerate(CLASSES.items()):
        torch.manual_seed(seed)
        config = transformers.BertConfig(**SIZES | changes)
        model = getattr(transformers, name)(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.randn_like(parameter) / 10)
        model.save_pretrained(folder / name)
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(config.vocab_size - 5))]
        (folder / name / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        inputs = inputs_for(name, config)
        np.savez(folder / name / "expected.npz", **inputs, **outputs_of(model, inputs))


def inputs_for(name, config):
    """Ids, masks and types for a class, as NumPy arrays."""
    dice = np.random.default_rng(1)
    shape = (2, 3, 9) if name == "BertForMultipleChoice" else (3, 9)
    mask = np.ones(shape, "int64")
    mask[-1, ..., 6:] = 0
    ids = dice.integers(5, config.vocab_size, shape) * mask
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": dice.integers(0, config.type_vocab_size, shape)}


def outputs_of(model, inputs):
    """All outputs of a model that are tensors, as NumPy arrays."""
    with torch.no_grad():
        outputs = model(**{name: torch.tensor(array) for name, array in inputs.items()})
    return {name: value.numpy() for name, value in outputs.items() if torch.is_tensor(value)}


def open_ours(folder):
    """Opens a folder with the class that its config.json names; no tensor may be missing or left over."""
    (name,) = transformers.BertConfig.from_pretrained(folder).architectures
    options = {"output_loading_info": True, "attn_implementation": "eager"}
    model, loading = getattr(transformers, name).from_pretrained(folder, **options)
    wrong = {key: list(loading[key]) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") if loading[key]}
    assert not wrong, wrong
    inputs = dict(np.load(folder / "inputs.npz"))
    np.savez(folder / "theirs.npz", **outputs_of(model.eval(), inputs))


if __name__ == "__main__":
    {"make": make, "open": open_ours}[sys.argv[1]](Path(sys.argv[2]))
