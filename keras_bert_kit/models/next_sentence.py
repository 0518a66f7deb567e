"""`BertNextSentence`: an encoder with the next-sentence head alone; `BertPretrainer` has the masked-LM head too."""

import keras

from keras_bert_kit.layers import NextSentenceHead
from keras_bert_kit.models.with_encoder import ModelWithEncoder


@keras.saving.register_keras_serializable(package="keras_bert_kit")
class BertNextSentence(ModelWithEncoder):
    """Says whether segment B followed segment A in the text that they come from.

    Train with `SparseCategoricalCrossentropy(from_logits=True)` on labels int (batch,): 0 where B follows A, 1 where B
    is a random sentence.

    Args:
        encoder: `BertEncoder` with a pooler. It is used, not copied: training the model trains it.

    Call arguments:
        inputs: dictionary of the three int tensors (batch, sequence) that `BertEncoder` takes.
        training: bool, whether dropout is on in the encoder.

    Returns:
        Logits, float32 (batch, 2). Column 0 means that B follows A, column 1 that B is a random sentence.

    Raises:
        ValueError: The encoder has no pooler.

    Source: google-research/bert, run_pretraining.py.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(encoder, needs_pooler=True, **kwargs)
        start = encoder.config.initializer_range
        self.head = NextSentenceHead(start, dtype=self.dtype_policy, name="next_sentence")
        self.build()

    def heads(self):
        """See `ModelWithEncoder`."""
        return {"next_sentence": self.head}

    def call(self, inputs, training=None):
        """See the class."""
        return self.head(self.encoder(inputs, training=training, only="pooled_output")["pooled_output"])  # (B, 2)
