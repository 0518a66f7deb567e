"""`BertConfig`: the sizes and choices that define a BERT, under the keys of Google's `bert_config.json`.

Two questions are answered here, once, for the whole kit, since wrong answers to them are silent:

* Which GELU? `"gelu"` in a file means the tanh approximation when Google's or TF-Models' code wrote it, and the exact
  erf form when Hugging Face's did. Our `hidden_act` says `"gelu_tanh"` or `"gelu_erf"`, never a bare `"gelu"`.
* Which LayerNorm epsilon? Google's files do not say; their code uses 1e-12. Hugging Face's files say `layer_norm_eps`.

Source: Devlin et al. 2018, https://arxiv.org/abs/1810.04805; sizes: Turc et al. 2019, arXiv 1908.08962.
"""

import dataclasses
import difflib
import json
import re
from pathlib import Path

from keras_bert_kit.errors import ConfigError

ACTIVATIONS = ("gelu_erf", "gelu_tanh", "relu", "silu", "tanh")

#: Sizes with a name: layers, hidden size, attention heads. Tiny to medium are Turc et al.'s.
SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}

# Vocabulary sizes of Google's releases, by what the model's name holds; the first that fits counts.
_VOCABULARY_SIZES = (
    (r"multi_cased", 119547),
    (r"multilingual", 105879),
    (r"chinese|zh", 21128),
    (r"uncased", 30522),
    (r"cased", 28996),
)

# What other programs' spellings of an activation mean. A bare "gelu" depends on who wrote the file.
_GOOGLE_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "tanh": "tanh"}
_HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}

# Keys of other programs that do not change what the model computes: names of classes and labels, settings of training,
# of text generation (written into every configuration by Transformers 2 to 4), and what Google's code never reads.
_IGNORED_KEYS = frozenset(
    """
    _name_or_path architectures attn_implementation bos_token_id chunk_size_feed_forward classifier_dropout dtype
    eos_token_id eos_token_ids finetuning_task gradient_checkpointing id2label label2id num_labels output_attentions
    output_hidden_states output_past pad_token_id prefix problem_type return_dict sep_token_id task_specific_params
    tf_legacy_loss tokenizer_class torch_dtype torchscript transformers_version use_bfloat16 use_cache
    bad_words_ids begin_suppress_tokens cross_attention_hidden_size decoder_start_token_id diversity_penalty do_sample
    early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id
    forced_eos_token_id length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams
    num_return_sequences output_scores remove_invalid_values repetition_penalty return_dict_in_generate
    suppress_tokens temperature top_k top_p typical_p
    directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type
    """.split()
)
# Keys of other programs that would change it: only the value that BERT has is accepted.
_REQUIRED_VALUES = {
    "model_type": "bert",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "pruned_heads": {},
    "embedding_size": None,
}
_MOST_KEYS = 1000  # those of the largest configuration are about a hundred


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes and choices of a BERT encoder; checked when made, and never changed afterwards.

    Args:
        vocab_size: Rows of the word table.
        hidden_size: Width of a token's vector; a multiple of `num_attention_heads`.
        num_hidden_layers: Number of encoder blocks.
        num_attention_heads: Heads of each block's self-attention.
        intermediate_size: Width between the two dense layers of a block. Default: `4 * hidden_size`.
        hidden_act: One of `"gelu_erf"`, `"gelu_tanh"`, `"relu"`, `"silu"`, `"tanh"`.
        hidden_dropout_prob: Probability of dropping a value after embeddings and dense layers.
        attention_probs_dropout_prob: Probability of dropping an attention weight.
        max_position_embeddings: Rows of the position table, the longest sequence.
        type_vocab_size: Rows of the segment table; 2 for sentence A and B.
        initializer_range: Standard deviation of the truncated normal that new weights are drawn from.
        layer_norm_eps: Added to the variance in every LayerNorm.

    Raises:
        ConfigError: With all faults in one message.

    Example:

    >>> BertConfig(vocab_size=30522, hidden_size=128, num_hidden_layers=2, num_attention_heads=2).intermediate_size
    512
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int | None = None
    hidden_act: str = "gelu_erf"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12

    def __post_init__(self):
        if self.intermediate_size is None and isinstance(self.hidden_size, int):
            object.__setattr__(self, "intermediate_size", 4 * self.hidden_size)
        if faults := self._faults():
            raise ConfigError("BertConfig cannot describe a model:\n  " + "\n  ".join(faults))

    def _faults(self):
        faults = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type in (int, int | None) and (type(value) is not int or value < 1):
                faults.append(f"{field.name} must be a positive integer. Received: {field.name}={value!r:.80}.")
            if field.type is float and (type(value) not in (int, float) or not 0 <= value < 1):
                faults.append(f"{field.name} must be a number from 0 to below 1. Received: {field.name}={value!r:.80}.")
        if self.hidden_act == "gelu":
            faults.append(
                "hidden_act must say which GELU. Received: hidden_act='gelu'. Use 'gelu_tanh' for weights of Google or "
                "TF-Models, 'gelu_erf' for weights of Hugging Face."
            )
        elif self.hidden_act not in ACTIVATIONS:
            faults.append(f"hidden_act must be one of {', '.join(ACTIVATIONS)}. Received: {self.hidden_act!r:.80}.")
        if not faults and self.hidden_size % self.num_attention_heads:
            faults.append(
                "hidden_size must be a multiple of num_attention_heads. Received: "
                f"hidden_size={self.hidden_size}, num_attention_heads={self.num_attention_heads}. Change one of them."
            )
        return faults

    @classmethod
    def from_name(cls, name, **overrides):
        """Reads the sizes out of a name such as `bert_uncased_L-12_H-768_A-12`, `bert_en_cased_L-4_H-256_A-4/2`
        or `tiny`.

        Args:
            name: A name or handle that holds `L-<layers>_H-<hidden>_A-<heads>`, or a key of `SIZES`.
            **overrides: Fields that the name does not say, or that should differ, for example `vocab_size`.

        Returns:
            A `BertConfig`. `hidden_act` is `"gelu_tanh"`, since such names are Google's.
        """
        sizes = re.search(r"L-(\d+)_H-(\d+)_A-(\d+)", name)
        if sizes:
            layers, hidden, heads = (int(size) for size in sizes.groups())
        elif name in SIZES:
            layers, hidden, heads = SIZES[name]
        else:
            raise ConfigError(
                f"A model name must hold L-<layers>_H-<hidden>_A-<heads>, or be one of {', '.join(SIZES)}. "
                f"Received: {name!r}. Pass the sizes to BertConfig(...) instead."
            )
        vocabulary_sizes = [size for pattern, size in _VOCABULARY_SIZES if re.search(pattern, name.lower())]
        fields = dict(num_hidden_layers=layers, hidden_size=hidden, num_attention_heads=heads, hidden_act="gelu_tanh")
        if vocabulary_sizes:
            fields["vocab_size"] = vocabulary_sizes[0]
        fields.update(overrides)
        if "vocab_size" not in fields:
            raise ConfigError(
                f"The name must say the vocabulary (uncased, cased, multi_cased, chinese). Received: {name!r}. "
                "Pass vocab_size=30522, or the number of lines of your vocab.txt."
            )
        return cls(**fields)

    @classmethod
    def from_json_file(cls, path):
        """Reads Google's `bert_config.json` or Hugging Face's `config.json`; which one is found by content.

        Args:
            path: The file.

        Returns:
            A `BertConfig`.

        Raises:
            ConfigError: The file is missing or no JSON object, has unknown keys, or describes no BERT.
        """
        path = Path(path)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"A configuration file must exist. Received: {str(path)!r}.") from None
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} must hold JSON in UTF-8. Received: {error}.") from None
        if not isinstance(values, dict):
            raise ConfigError(f"{path} must hold one JSON object. Received: a {type(values).__name__}.")
        try:
            return cls.from_dict(values)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, values):
        """Makes a config from the keys of a configuration file, Google's, Hugging Face's or our own.

        Args:
            values: Dictionary as read from JSON.

        Returns:
            A `BertConfig`. What a bare `"gelu"` means is decided by `wrote_by_hugging_face(values)`.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        faults = []
        if len(values) > _MOST_KEYS:
            raise ConfigError(f"The configuration is not one of a BERT. Received: {len(values)} keys.")
        for key, value in values.items():
            if key in _REQUIRED_VALUES:
                if value not in (_REQUIRED_VALUES[key], None):
                    faults.append(f"{key} must be {_REQUIRED_VALUES[key]!r} in a BERT. Received: {value!r:.80}.")
            elif key not in known | _IGNORED_KEYS:
                near = difflib.get_close_matches(key, known, n=1)
                faults.append(f"unknown key {key!r:.80}" + (f"; did you mean {near[0]!r}?" if near else "."))
        if "vocab_size" not in values:
            faults.append("vocab_size is missing.")
        if faults:
            raise ConfigError("The configuration is not one of a BERT:\n  " + "\n  ".join(faults))
        fields = {key: value for key, value in values.items() if key in known}
        names = _HUGGING_FACE_ACTIVATIONS if wrote_by_hugging_face(values) else _GOOGLE_ACTIVATIONS
        act = values.get("hidden_act", "gelu")
        fields["hidden_act"] = names.get(act, act) if isinstance(act, str) else act
        return cls(**fields)

    def to_dict(self):
        """Returns the fields as a dictionary that `BertConfig(**…)` takes back."""
        return dataclasses.asdict(self)


def wrote_by_hugging_face(values):
    """Says whether a configuration dictionary is Hugging Face's (then `"gelu"` is erf) or Google's (then tanh).

    Hugging Face's writer always adds at least one of these keys; Google's and TF-Models' never do.
    """
    return any(key in values for key in ("model_type", "layer_norm_eps", "architectures", "transformers_version"))
