"""What a server can be asked: the signatures of an exported classifier, all of them on the same weights.

    serving_default   text                                          label, probabilities, logits
    pairs             text_a, text_b                                the same three
    token_ids         input_word_ids, input_mask, input_type_ids    the same three
    examples          examples (serialised tf.Example, key "text")  the same three
    embed             text                                          embeddings
    metadata          request (anything)                            kit_version, config, class_names, …

Every input and output has the batch as its first axis, those of `metadata` too: a server that joins the requests of
several clients to a batch has to cut the answers apart again.
"""

import dataclasses
import json
from typing import Any

import keras
import tensorflow as tf

from keras_bert_kit.models import ENCODER_INPUTS
from keras_bert_kit.serving.windows import in_chunks, logits_of_average, stride_for
from keras_bert_kit.text import BertPacker

LONG_TEXTS = ("truncate", "window")
EMBEDDINGS = ("mean", "cls")

INPUTS = {
    "serving_default": ("text",),
    "pairs": ("text_a", "text_b"),
    "token_ids": ENCODER_INPUTS,
    "examples": ("examples",),
    "embed": ("text",),
    "metadata": ("request",),
}
SIGNATURES = tuple(INPUTS)


@dataclasses.dataclass(frozen=True)
class Signatures:
    """The functions behind the signatures.

    Args:
        model: `BertClassifier`.
        pack: `BertPacker` that pads to the longest text of a batch.
        weights: list of pairs, a variable of the model and what the graph has in its place.
        metadata_strings: dictionary of what `metadata` answers: str, or list of str.
        long_text: "truncate", or "window": answers are averaged over windows. For single texts; pairs are truncated.
        max_windows: int, windows of a text at most.
        embedding: "mean", the average over the tokens, [CLS] and [SEP] among them; or "cls", the vector of [CLS].
    """

    model: Any
    pack: BertPacker
    weights: list
    metadata_strings: dict
    long_text: str = "truncate"
    max_windows: int = 64
    embedding: str = "mean"

    def functions(self, names):
        """Returns a dictionary from names of signatures to `tf.function`s."""
        return {
            name: tf.function(
                getattr(self, name),
                input_signature=[_spec(name, argument) for argument in INPUTS[name]],
                autograph=False,
            )
            for name in names
        }

    def serving_default(self, text):
        """string (batch,) -> label string (batch,), probabilities and logits float32 (batch, classes)."""
        return self._answers(self._of_text(text, self._logits, self.model.num_classes, logits_of_average))

    def pairs(self, text_a, text_b):
        """Two segments, string (batch,) each -> as `serving_default`."""
        return self._answers(self._logits(self.pack((text_a, text_b))))

    def token_ids(self, input_word_ids, input_mask, input_type_ids):
        """What the packer makes, int32 (batch, sequence) each -> as `serving_default`."""
        input_mask = mask_without_servers_padding(input_word_ids, input_mask, self.pack.tokenizer.cls_id)
        return self._answers(
            self._logits(dict(zip(ENCODER_INPUTS, (input_word_ids, input_mask, input_type_ids), strict=True)))
        )

    def examples(self, examples):
        """Serialised `tf.Example`s with a bytes feature "text", string (batch,) -> as `serving_default`."""
        feature = tf.io.FixedLenFeature([], tf.string)
        return self.serving_default(tf.io.parse_example(examples, {"text": feature})["text"])

    def embed(self, text):
        """string (batch,) -> embeddings float32 (batch, hidden)."""
        hidden_size = self.model.encoder.config.hidden_size
        return {"embeddings": self._of_text(text, self._embeddings, hidden_size, tf.math.segment_mean)}

    def metadata(self, request):
        """Any strings (batch,) -> the same strings about the model for each of them."""
        strings = {name: tf.constant([value]) for name, value in self.metadata_strings.items()}
        return {name: tf.repeat(value, tf.size(request), axis=0) for name, value in strings.items()}

    def _of_text(self, text, function, size, average):
        """float32 (batch, size): what a function of packed inputs gives for texts."""
        if self.long_text == "truncate":
            return function(self.pack(text))
        windows = self.pack.windows(text, stride_for(self.pack), max_windows=self.max_windows)
        return average(in_chunks(function, windows.inputs, size), windows.rows)

    def _logits(self, inputs):
        """float32 (batch, classes)."""
        with with_weights(self.weights):
            return tf.cast(self.model(inputs, training=False), tf.float32)

    def _embeddings(self, inputs):
        """float32 (batch, hidden)."""
        with with_weights(self.weights):
            return embeddings_of(self.model.encoder, inputs, self.embedding)

    def _answers(self, logits):
        label = tf.gather(tf.constant(self.model.class_names), tf.argmax(logits, axis=-1))
        return {"label": label, "probabilities": tf.nn.softmax(logits), "logits": logits}


def mask_without_servers_padding(word_ids, mask, cls_id):
    """The mask of token ids, 0 also where a server has padded them.

    To join requests of different lengths, TF Serving fills each input up with that input's first element, which is
    [CLS] in the ids and 1 in the mask (`batching_util.h`). No row has [CLS] behind its last [SEP], so a run of [CLS] at
    the end of a row is such padding.

    Args:
        word_ids: int32 (batch, sequence).
        mask: int32 (batch, sequence).
        cls_id: int.

    Returns:
        int32 (batch, sequence).
    """
    place = tf.range(tf.shape(word_ids)[1])  # (S,)
    last = tf.reduce_max(tf.where(word_ids == cls_id, 0, place), axis=1, keepdims=True)  # (B, 1)
    return tf.where(place <= last, mask, 0)


def with_weights(weights):
    """A scope in which models compute with other tensors in the place of their variables: pairs of both."""
    scope = keras.StatelessScope()
    for variable, weight in weights:
        scope.add_update((variable, tf.convert_to_tensor(weight)))  # as it is: the constructor would cast it
    return scope


def embeddings_of(encoder, inputs, embedding):
    """One vector for each text, float32 (batch, hidden): see `Signatures`."""
    hidden = tf.cast(encoder(inputs, training=False, only="tokens")["sequence_output"], tf.float32)  # (B, S, D)
    if embedding == "cls":
        return hidden[:, 0]
    mask = tf.cast(inputs["input_mask"], tf.float32)[..., None]  # (B, S, 1)
    return tf.math.divide_no_nan(tf.reduce_sum(hidden * mask, axis=1), tf.reduce_sum(mask, axis=1))


def metadata_of(model, kit_version, vocabulary_sha256, weights_source, requirement=None):
    """What the signature `metadata` says about a model; `requirement` is what it needs besides core TensorFlow."""
    needs = {} if requirement is None else {"requires": requirement}
    return needs | {
        "kit_version": kit_version,
        "config": json.dumps(model.encoder.config.to_dict()),
        "vocabulary_sha256": vocabulary_sha256,
        "class_names": list(model.class_names),
        "weights_source": weights_source,
    }


def _spec(signature, argument):
    if signature == "token_ids":
        return tf.TensorSpec([None, None], tf.int32, name=argument)
    return tf.TensorSpec([None], tf.string, name=argument)
