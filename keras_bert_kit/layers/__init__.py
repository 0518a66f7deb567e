"""The layers of BERT, each a Keras 3 layer that can be put into any model.

Shapes are written with these letters: B batch, S sequence, D hidden size (= N·H), N heads, H head size, F intermediate
size, V vocabulary, P predictions, C classes, T flat tokens (B·S, or fewer: `TokenLayout`).
"""

from keras_bert_kit.layers.attention import MultiHeadSelfAttention, scaled_dot_product_attention
from keras_bert_kit.layers.embeddings import (
    BertEmbeddings,
    SinusoidalPositionEncoding,
    TokenAndPositionEmbedding,
    sinusoidal_position_encoding,
)
from keras_bert_kit.layers.encoder_block import EncoderBlock
from keras_bert_kit.layers.heads import MaskedLMHead, NextSentenceHead, Pooler
from keras_bert_kit.layers.normalization import LayerNorm
from keras_bert_kit.layers.packed_rows import separate_sequences
from keras_bert_kit.layers.token_layout import TokenLayout

__all__ = [
    "BertEmbeddings",
    "EncoderBlock",
    "LayerNorm",
    "MaskedLMHead",
    "MultiHeadSelfAttention",
    "NextSentenceHead",
    "Pooler",
    "SinusoidalPositionEncoding",
    "TokenAndPositionEmbedding",
    "TokenLayout",
    "scaled_dot_product_attention",
    "separate_sequences",
    "sinusoidal_position_encoding",
]
