"""Small HDF5 files of Keras with the real names and random weights: presets of keras-hub, and `tf_model.h5`."""

import h5py
from fake_checkpoints import fake_bert, google_array, google_name
from fake_weights import VOCABULARY, write_json

_PRESET_NAMES = {
    "bert/embeddings/word_embeddings": "reversible_embedding/vars/0",
    "bert/embeddings/position_embeddings": "position_embedding/vars/0",
    "bert/embeddings/token_type_embeddings": "embedding/vars/0",
    "bert/embeddings/LayerNorm/": "layer_normalization/vars/",
    "bert/encoder/layer_0/": "transformer_encoder/",
    "bert/encoder/layer_": "transformer_encoder_",
    "attention/self/query/": "_self_attention_layer/query_dense/vars/",
    "attention/self/key/": "_self_attention_layer/key_dense/vars/",
    "attention/self/value/": "_self_attention_layer/value_dense/vars/",
    "attention/output/dense/": "_self_attention_layer/output_dense/vars/",
    "attention/output/LayerNorm/": "_self_attention_layer_norm/vars/",
    "intermediate/dense/": "_feedforward_intermediate_dense/vars/",
    "output/dense/": "_feedforward_output_dense/vars/",
    "output/LayerNorm/": "_feedforward_layer_norm/vars/",
    "bert/pooler/dense/": "dense/vars/",
    "cls/predictions/output_bias": "masked_lm_head/vars/0",
    "cls/predictions/transform/dense/": "masked_lm_head/_intermediate_dense/vars/",
    "cls/predictions/transform/LayerNorm/": "masked_lm_head/_intermediate_layer_norm/vars/",
    "kernel": "0",
    "gamma": "0",
    "bias": "1",
    "beta": "1",
}


def write_preset(folder, class_name="BertBackbone", head="classifier", **config):
    """Writes a preset with the head "classifier" or "mlm"; returns tensors under Hugging Face's names, the config."""
    tensors, config = fake_bert((head,), **config)
    heads = config["num_attention_heads"]
    (folder / "assets/tokenizer").mkdir(parents=True)
    text = "".join(f"{token}\n" for token in VOCABULARY)
    (folder / "assets/tokenizer/vocabulary.txt").write_text(text, encoding="utf-8")
    values = {
        "vocabulary_size": config["vocab_size"],
        "num_layers": config["num_hidden_layers"],
        "num_heads": heads,
        "hidden_dim": config["hidden_size"],
        "intermediate_dim": config["intermediate_size"],
        "dropout": 0.2,
        "max_sequence_length": config["max_position_embeddings"],
        "num_segments": 2,
    }
    write_json(folder / "config.json", {"class_name": class_name, "config": values})
    write_json(folder / "tokenizer.json", {"config": {"lowercase": False, "strip_accents": False}})
    write_json(folder / "task.json", {"class_name": "BertTextClassifier", "config": {"activation": "softmax"}})
    with h5py.File(folder / "task.weights.h5", "w") as task, h5py.File(folder / "model.weights.h5", "w") as model:
        if head == "classifier":
            task["layers/dense/vars/0"] = tensors["classifier.weight"].T
            task["layers/dense/vars/1"] = tensors["classifier.bias"]
        task["optimizer/vars/0"] = 3
        for name, array in tensors.items():
            name, array = google_name(name), google_array(name, array)
            for theirs, preset in _PRESET_NAMES.items():
                name = name.replace(theirs, preset)
            if "/query_" in name or "/key_" in name or "/value_" in name:
                array = array.reshape(*array.shape[:-1], heads, -1)
            if name.endswith("_self_attention_layer/output_dense/vars/0"):
                array = array.reshape(heads, -1, array.shape[-1])
            if not name.startswith("output_"):
                (task if name.startswith("masked_lm_head") else model)[f"layers/{name}"] = array
    return tensors, config


def write_tf_h5(path, tensors, head="sequence_classification"):
    """Writes tensors under Hugging Face's names as the TFBert class of one head saved them."""
    with h5py.File(path, "w") as file:
        for name, array in tensors.items():
            dense = array.ndim == 2 and "embeddings" not in name
            ending = "kernel" if dense else "embeddings" if "_embeddings." in name else "gamma"
            place = name.removesuffix(".weight") + f".{ending}" if name.endswith(".weight") else name
            place = (
                place.replace("LayerNorm.bias", "LayerNorm.beta").replace("cls.seq", "nsp___cls.seq").replace(".", "/")
            )
            place = place.replace("cls/predictions", "mlm___cls/predictions")
            place = place.replace("encoder/layer/", "encoder/layer_._")
            first = place.split("/")[0]
            layer = first if first in ("classifier", "qa_outputs", "nsp___cls", "mlm___cls") else "bert"
            file[f"{layer}/tf_bert_for_{head}/{place}:0"] = array.T if dense else array
