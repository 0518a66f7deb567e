"""BERT's forward pass in plain NumPy, float64, from Hugging Face's tensor names: the yardstick for everything else.

It shares no code and no design with the package (no flat tokens, no fused projections, no tf), so that a fault in one
is not a fault in both. Written from the papers: Vaswani et al. 2017, arXiv 1706.03762; Devlin et al. 2018, 1810.04805.

B batch, S sequence, D hidden = N·H, N heads, H head size, F feed-forward, V vocabulary, P predictions, C classes.
"""

import math

import numpy as np

erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu_erf(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# Keys are Hugging Face's `hidden_act`, where a bare "gelu" is the erf form.
ACTIVATIONS = {
    "gelu": gelu_erf,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


def softmax(x):
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


class Reference:
    """One BERT: call it with ids, get a dictionary of everything it computes.

    Args:
        tensors: {Hugging Face name: array}, with or without "bert." before; LayerNorm's "gamma" and "beta" also do.
        config: Hugging Face's config.json as a dictionary.
    """

    def __init__(self, tensors, config):
        newer = {"gamma": "weight", "beta": "bias"}
        self.tensors = {}
        for name, array in tensors.items():
            path, _, last = name.removeprefix("bert.").rpartition(".")
            self.tensors[f"{path}.{newer.get(last, last)}"] = np.asarray(array, np.float64)
        self.layers = config["num_hidden_layers"]
        self.heads = config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.activation = ACTIVATIONS[config["hidden_act"]]

    def dense(self, x, name):
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]  # PyTorch stores (outputs, inputs)

    def layer_norm(self, x, name):
        mean = x.mean(axis=-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
        normal = (x - mean) / np.sqrt(variance + self.epsilon)
        return normal * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def embed(self, ids, types):
        table = {
            kind: self.tensors[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
        }
        summed = table["word"][ids] + table["position"][: ids.shape[1]] + table["token_type"][types]
        return self.layer_norm(summed, "embeddings.LayerNorm")  # (B, S, D)

    def attend(self, x, mask, name):
        """Self-attention of one layer: its output before the residual, (B, S, D), and probabilities, (B, N, S, S)."""
        batch, sequence, hidden = x.shape

        def split(projected):
            return projected.reshape(batch, sequence, self.heads, -1).transpose(0, 2, 1, 3)  # (B, N, S, H)

        query, key, value = (split(self.dense(x, f"{name}.self.{part}")) for part in ("query", "key", "value"))
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(hidden // self.heads)  # (B, N, S, S)
        probabilities = softmax(np.where(mask[:, None, None, :], scores, -1e30))  # padded keys get 0
        context = (probabilities @ value).transpose(0, 2, 1, 3).reshape(batch, sequence, hidden)
        return self.dense(context, f"{name}.output.dense"), probabilities

    def block(self, x, mask, name):
        """One encoder layer; LayerNorm comes after each residual sum."""
        attended, probabilities = self.attend(x, mask, f"{name}.attention")
        x = self.layer_norm(x + attended, f"{name}.attention.output.LayerNorm")
        inner = self.activation(self.dense(x, f"{name}.intermediate.dense"))  # (B, S, F)
        return self.layer_norm(x + self.dense(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"), probabilities

    def mlm_logits(self, states):
        """Vocabulary logits, the decoder tied to the word table unless a decoder of its own is stored."""
        states = self.activation(self.dense(states, "cls.predictions.transform.dense"))
        states = self.layer_norm(states, "cls.predictions.transform.LayerNorm")
        table = self.tensors["embeddings.word_embeddings.weight"]
        return (
            states @ self.tensors.get("cls.predictions.decoder.weight", table).T + self.tensors["cls.predictions.bias"]
        )

    def __call__(self, ids, mask=None, types=None, masked_lm_positions=None):
        """Compute all that the tensors allow.

        Args:
            ids, mask, types: integers (B, S); without mask all tokens count, without types all are 0.
            masked_lm_positions: integers (B, P); without them MLM logits are for all S positions.

        Returns:
            Dictionary of float64 arrays: "hidden_states", a list of L + 1 (B, S, D), the embedding output first;
            "attentions", a list of L (B, N, S, S); "sequence_output" (B, S, D); and where the tensors for them are:
            "pooled_output" (B, D), "mlm_logits" (B, P or S, V), "nsp_logits" (B, 2), "logits" (B, C).
        """
        ids = np.asarray(ids)
        mask = np.ones_like(ids) if mask is None else np.asarray(mask)
        types = np.zeros_like(ids) if types is None else np.asarray(types)
        states, attentions = [self.embed(ids, types)], []
        for layer in range(self.layers):
            output, probabilities = self.block(states[-1], mask != 0, f"encoder.layer.{layer}")
            states.append(output)
            attentions.append(probabilities)
        result = {"hidden_states": states, "attentions": attentions, "sequence_output": states[-1]}
        if "pooler.dense.weight" in self.tensors:
            pooled = result["pooled_output"] = np.tanh(self.dense(states[-1][:, 0], "pooler.dense"))
            if "cls.seq_relationship.weight" in self.tensors:
                result["nsp_logits"] = self.dense(pooled, "cls.seq_relationship")
            if "classifier.weight" in self.tensors:
                result["logits"] = self.dense(pooled, "classifier")
        if "cls.predictions.bias" in self.tensors:
            chosen = states[-1]
            if masked_lm_positions is not None:
                chosen = np.take_along_axis(chosen, np.asarray(masked_lm_positions)[:, :, None], axis=1)  # (B, P, D)
            result["mlm_logits"] = self.mlm_logits(chosen)
        return result
