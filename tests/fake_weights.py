"""Small model folders with the real names and random weights, for tests that must run anywhere.

`write_hf_folder(path)` writes what Transformers' `save_pretrained` writes, `write_sentence_transformers_folder(path)`
the shape of all-MiniLM-L6-v2. Both return the tensors and the config, ready for `reference.Reference(tensors, config)`.
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

# The specials as ids 0 to 4, then punctuation, digits, words, pieces; a letter outside ASCII and an ideograph.
VOCABULARY = (
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    + ". , ! ? - ' \" ( ) $ % :".split()
    + "0 1 2 7 ##0 ##1 ##2 ##9".split()
    + "a i the of in and to is we love cafe über 中 news report team wins game bank market rise space robot".split()
    + "un play transform able ##able ##ing ##ed ##er ##ers ##s ##e ##a ##b ##t ##r ##n ##é ##中".split()
)

CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
}

ARCHITECTURES = {
    (): "BertModel",
    ("mlm",): "BertForMaskedLM",
    ("mlm", "nsp"): "BertForPreTraining",
    ("nsp",): "BertForNextSentencePrediction",
    ("classifier",): "BertForSequenceClassification",
    ("token_classifier",): "BertForTokenClassification",
    ("question_answering",): "BertForQuestionAnswering",
    ("multiple_choice",): "BertForMultipleChoice",
}


def write_hf_folder(
    path,
    *,
    heads=("mlm", "nsp"),
    num_labels=3,
    class_names=None,
    prefix=None,
    pooler=True,
    old_names=False,
    vocabulary=VOCABULARY,
    lowercase=True,
    seed=0,
    **config,
):
    """Write config.json, vocab.txt, tokenizer_config.json and model.safetensors in Hugging Face's layout.

    Args:
        path: folder to write, made if absent.
        heads: a key of ARCHITECTURES; `()` is a bare encoder.
        num_labels: rows of a classifier. `class_names`: its names for `id2label`; None writes LABEL_0, LABEL_1, ….
        prefix: before encoder names; None means "bert." with heads and "" without, as Transformers writes them.
        pooler: whether there is a pooler (Transformers' classes that work on tokens have none today, and once had one).
        old_names: LayerNorm "gamma" and "beta" and the int64 buffer `embeddings.position_ids`, as in the oldest files.
        vocabulary: list of tokens; its length is `vocab_size` unless `config` says otherwise.
        lowercase: `do_lower_case` of tokenizer_config.json.
        seed: of the random weights.
        **config: keys of config.json that differ from CONFIG, such as `hidden_act="gelu_new"`.

    Returns:
        (tensors, config): what was written, {name: float32 array} and the dictionary of config.json.
    """
    heads = tuple(heads)
    config = {"architectures": [ARCHITECTURES[heads]], **CONFIG, "vocab_size": len(vocabulary), **config}
    if "classifier" in heads or "token_classifier" in heads:
        names = class_names or [f"LABEL_{number}" for number in range(num_labels)]
        config["id2label"] = {str(number): name for number, name in enumerate(names)}
        config["label2id"] = {name: number for number, name in enumerate(names)}
        num_labels = len(names)
    prefix = ("bert." if heads else "") if prefix is None else prefix
    tensors = random_tensors(tensor_shapes(config, heads, prefix, pooler, num_labels), seed)
    if old_names:
        tensors = {rename_layer_norm(name): array for name, array in tensors.items()}
        tensors[f"{prefix}embeddings.position_ids"] = position_ids(config)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", config)
    write_json(folder / "tokenizer_config.json", {"do_lower_case": lowercase, "tokenizer_class": "BertTokenizer"})
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
    return tensors, config


def write_sentence_transformers_folder(path, **arguments):
    """Write a folder shaped as all-MiniLM-L6-v2 is: a bare encoder, and settings of the tokenizer that contradict.

    `sentence_bert_config.json` says `do_lower_case: false` (that program does not lower-case by itself) while
    `tokenizer_config.json` says true, and true is what holds. The int64 buffer `embeddings.position_ids` is no weight.

    Args:
        path: folder to write.
        **arguments: as for `write_hf_folder`.

    Returns:
        (tensors, config), as `write_hf_folder`.
    """
    tensors, config = write_hf_folder(path, heads=(), **arguments)
    folder = Path(path)
    tensors["embeddings.position_ids"] = position_ids(config)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": number, "name": str(number), "path": part, "type": f"sentence_transformers.models.{kind}"}
        for number, (part, kind) in enumerate(parts)
    ]
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 16, "do_lower_case": False})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": config["hidden_size"], "pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    return tensors, config


def tensor_shapes(config, heads, prefix, pooler, num_labels):
    """{Hugging Face name: shape} of all tensors of a BERT; dense kernels are (outputs, inputs)."""
    hidden, inner, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {
        f"{prefix}embeddings.word_embeddings.weight": (vocab, hidden),
        f"{prefix}embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        f"{prefix}embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden),
        **layer_norm_shapes(f"{prefix}embeddings.LayerNorm", hidden),
    }
    for number in range(config["num_hidden_layers"]):
        layer = f"{prefix}encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= dense_shapes(f"{layer}.attention.{part}", hidden, hidden)
        shapes |= layer_norm_shapes(f"{layer}.attention.output.LayerNorm", hidden)
        shapes |= dense_shapes(f"{layer}.intermediate.dense", hidden, inner)
        shapes |= dense_shapes(f"{layer}.output.dense", inner, hidden)
        shapes |= layer_norm_shapes(f"{layer}.output.LayerNorm", hidden)
    if pooler:
        shapes |= dense_shapes(f"{prefix}pooler.dense", hidden, hidden)
    if "mlm" in heads:
        shapes |= dense_shapes("cls.predictions.transform.dense", hidden, hidden)
        shapes |= layer_norm_shapes("cls.predictions.transform.LayerNorm", hidden)
        shapes["cls.predictions.bias"] = (vocab,)
    if "nsp" in heads:
        shapes |= dense_shapes("cls.seq_relationship", hidden, 2)
    if "classifier" in heads or "token_classifier" in heads:
        shapes |= dense_shapes("classifier", hidden, num_labels)
    if "multiple_choice" in heads:
        shapes |= dense_shapes("classifier", hidden, 1)
    if "question_answering" in heads:
        shapes |= dense_shapes("qa_outputs", hidden, 2)
    return shapes


def dense_shapes(name, inputs, outputs):
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def layer_norm_shapes(name, size):
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def random_tensors(shapes, seed):
    """Seeded float32 noise of deviation 0.3, large enough that outputs depend on every tensor; scales are near 1."""
    generator = np.random.default_rng(seed)
    return {
        name: (generator.normal(scale=0.3, size=shape) + name.endswith("LayerNorm.weight")).astype(np.float32)
        for name, shape in shapes.items()
    }


def rename_layer_norm(name):
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def position_ids(config):
    """The integer buffer of older files: 0, 1, … with a batch axis, (1, max_position_embeddings)."""
    return np.arange(config["max_position_embeddings"], dtype=np.int64)[None, :]


def write_json(path, content):
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
