"""`BertPretrainer`: an encoder with the two heads of pre-training."""

import keras
import tensorflow as tf

from keras_bert_kit.layers import MaskedLMHead, NextSentenceHead
from keras_bert_kit.layers.functions import require_below, shape_of
from keras_bert_kit.models.encoder import SEQUENCE_IDS, require_inputs
from keras_bert_kit.models.with_encoder import ModelWithEncoder, require_encoder


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertPretrainer(ModelWithEncoder):
    """Predicts masked words (MLM), and whether segment B followed segment A (NSP).

    Train with `PretrainingLoss` and `Trainer`; in Keras' `fit` with `loss={"mlm_logits": loss, "nsp_logits": loss}`,
    where `loss` is `SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)`. Labels are a dictionary with
    these keys: the ids of the masked words, -100 at positions that only fill up the batch; and 0 where B follows A, 1
    where B is a random sentence (`NextSentenceHead`).

    Args:
        encoder: `BertEncoder`. It is used, not copied; the masked-LM head shares its word table.
        next_sentence: bool, whether there is a next-sentence head; it needs an encoder with a pooler.
        head_activation: str, activation of the masked-LM head. Default: the encoder's, as in BERT.
        head_epsilon: float, added to the variance in the masked-LM head's LayerNorm. Default: the encoder's, as in
            BERT. keras-hub's pretraining has others in the head than in the encoder.

    Call arguments:
        inputs: dictionary of int tensors: the three (batch, sequence) that `BertEncoder` takes, and
            `masked_lm_positions` (batch, predictions), each in [0, sequence). Of packed rows also the encoder's
            `input_sequence_ids`, and `next_sentence_positions` (batch, sequences of a row), where the [CLS] of each
            sequence stands; 0 as a filler, where the label is -100.
        training: bool, whether dropout is on.

    Returns:
        Dictionary of float tensors:
            `mlm_logits`: float32 (batch, predictions, vocabulary).
            `nsp_logits`: float32 (batch, 2); column 0: B follows A, column 1: B is a random sentence.
            `sequence_output`: (batch, sequence, hidden). Not in training, where the last block computes only what the
                heads look at.
            `pooled_output`: (batch, hidden), if the encoder has a pooler.
        With `next_sentence_positions`, `nsp_logits` are (batch, sequences of a row, 2), and `pooled_output` is
        (batch, sequences of a row, hidden).

    Raises:
        ValueError: A tensor is missing, or `next_sentence` without a pooler.

    Source: google-research/bert, run_pretraining.py.
    """

    def __init__(self, encoder, next_sentence=True, head_activation=None, head_epsilon=None, **kwargs):
        require_encoder(encoder)
        if next_sentence and not encoder.add_pooler:
            raise ValueError("next_sentence=True needs an encoder with a pooler. Received: add_pooler=False.")
        super().__init__(encoder, needs_pooler=encoder.add_pooler, **kwargs)  # it is among the outputs
        self.next_sentence = next_sentence
        sizes, policy = encoder.config, self.dtype_policy
        self.masked_lm = MaskedLMHead(
            encoder.embeddings,
            head_activation or sizes.hidden_act,
            sizes.layer_norm_eps if head_epsilon is None else head_epsilon,
            sizes.initializer_range,
            dtype=policy,
            name="masked_lm",
        )
        self.next_sentence_head = None
        if next_sentence:
            self.next_sentence_head = NextSentenceHead(sizes.initializer_range, dtype=policy, name="next_sentence")
        self.build()

    def heads(self):
        """See `ModelWithEncoder`."""
        heads = {"masked_lm": self.masked_lm}
        return heads | {"next_sentence": self.next_sentence_head} if self.next_sentence else heads

    def call(self, inputs, training=None):
        """See the class."""
        (masked,) = require_inputs(inputs, ["masked_lm_positions"])  # (B, P); P may be 0
        packed = self.next_sentence and SEQUENCE_IDS in inputs
        # Where the sequences of packed rows begin; else each row begins with its [CLS].
        firsts = tf.zeros([shape_of(masked)[0], 1], tf.int32)
        if packed:
            (firsts,) = require_inputs(inputs, ["next_sentence_positions"])
        if training:
            hidden, firsts, masked = self._encode_what_heads_look_at(inputs, firsts, masked)  # (B, F + P, D)
            outputs = {}
        else:
            encoded = self.encoder(inputs)
            hidden = encoded["sequence_output"]  # (B, S, D)
            outputs = {name: encoded[name] for name in ("sequence_output", "pooled_output") if name in encoded}
        outputs["mlm_logits"] = self.masked_lm(hidden, masked)
        if packed or training and self.encoder.pooler:  # else the encoder has done it
            outputs["pooled_output"] = self.encoder.pooler(hidden, firsts if packed else None)
        if self.next_sentence_head:
            outputs["nsp_logits"] = self.next_sentence_head(outputs["pooled_output"])
        return outputs

    def _encode_what_heads_look_at(self, inputs, firsts, masked):
        """The last block at `firsts` (batch, F) and at `masked` (batch, P) alone, and where these stand in it then."""
        sequence, means = shape_of(inputs["input_word_ids"])[1], "the length of the sequence"
        firsts = require_below(firsts, sequence, "next_sentence_positions", means)
        masked = require_below(masked, sequence, "masked_lm_positions", means)
        at = tf.concat([firsts, masked], axis=1)
        hidden = self.encoder(inputs, training=True, at=at)["sequence_output"]
        places = tf.broadcast_to(tf.range(tf.shape(at)[1]), tf.shape(at))
        return hidden, *tf.split(places, [shape_of(firsts)[1], shape_of(masked)[1]], axis=1)

    def get_config(self):
        """Returns the constructor's arguments."""
        return super().get_config() | {
            "next_sentence": self.next_sentence,
            "head_activation": self.masked_lm.activation,
            "head_epsilon": self.masked_lm.epsilon,
        }
