"""`BertQuestionAnswering`: an encoder with two numbers for every token, whether the answer starts or ends there."""

import keras
import tensorflow as tf

from keras_bert_kit.models.with_encoder import ModelWithEncoder


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertQuestionAnswering(ModelWithEncoder):
    """Finds the answer to a question in a text: a dense layer on the output of every token, and no dropout.

    The inputs are pairs, the question and then the text: `pack((questions, texts))`. Train with
    `loss={"start_logits": loss, "end_logits": loss}`, where `loss = SparseCategoricalCrossentropy(from_logits=True)`,
    on a dictionary of positions int (batch,) with the same keys. A pair without the answer gets position 0, [CLS], as
    in SQuAD 2; or -100 to be left out, with `ignore_class=-100`.

    Args:
        encoder: `BertEncoder`, with or without a pooler, which is not used. It is shared, not copied.

    Call arguments:
        inputs: dictionary of the three int tensors (batch, sequence) that `BertEncoder` takes.
        training: bool, whether dropout is on in the encoder.

    Returns:
        Dictionary of `start_logits` and `end_logits`, float32 (batch, sequence): the greater, the likelier the answer
        starts or ends (inclusive) at that token. Tokens of the question and padding have logits too: leave them out
        when an answer is picked.

    Source: `create_model` in google-research/bert, run_squad.py.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(encoder, needs_pooler=False, **kwargs)
        self.dense = self.new_dense(2)
        self.build()

    def heads(self):
        """See `ModelWithEncoder`."""
        return {"question_answering": self.dense}

    def call(self, inputs, training=None):
        """See the class."""
        logits = self.dense(self.encoder(inputs, training=training)["sequence_output"])  # (B, S, 2)
        start, end = tf.unstack(tf.cast(logits, tf.float32), axis=-1)  # (B, S) each
        return {"start_logits": start, "end_logits": end}
