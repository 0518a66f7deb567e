"""keras-hub in the benchmarks: a side, see side.py.

`BertTextClassifier` with its preprocessor apart, as its documentation shows it: mapped over the data set of `fit`, and
called before `predict_on_batch`, for `fit` and `predict` would trace it anew in each call. It pads every text to the
full length. Its GELU is the tanh form.
"""

import functools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import keras_hub
import side
import tensorflow as tf


def new_classifier(job, jit_compile="auto"):  # "auto" means no XLA on CPU
    side.use_cores(job["threads"])
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    keras.utils.set_random_seed(0)
    config, models = job["config"], keras_hub.models
    tokenizer = models.BertTokenizer(vocabulary=job["vocab"], lowercase=True)
    backbone = models.BertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        intermediate_dim=config["intermediate_size"],
        max_sequence_length=config["max_position_embeddings"],
        dtype="mixed_bfloat16",
    )
    preprocessor = models.BertTextClassifierPreprocessor(tokenizer, sequence_length=job["max_length"])
    classifier = models.BertTextClassifier(backbone, len(job["class_names"]), preprocessor=None)
    classifier.compile(
        optimizer=keras.optimizers.AdamW(3e-5, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=jit_compile,
    )
    return classifier, preprocessor


def finetune(job):
    """From raw texts to trained steps. Without XLA, with which a step took half as long again on two cores."""
    classifier, preprocess = new_classifier(job)
    options = tf.data.Options()
    options.autotune.enabled = False  # as in the kit: the end of a turn could take seconds more
    datasets = {
        order: tf.data.Dataset.from_tensor_slices(tuple(examples))
        .batch(job["batch_size"])
        .map(preprocess, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
        .with_options(options)
        for order, examples in job["examples"].items()
    }
    texts, _ = next(iter(job["examples"].values()))
    tokens = int(tf.reduce_sum(tf.cast(preprocess(texts)["padding_mask"], tf.int32)))

    def train(order):
        history = classifier.fit(datasets[order], shuffle=False, verbose=0)
        return {"loss": float(history.history["loss"][-1])}

    return {"keras-hub bfloat16": train}, {"parameters": classifier.count_params(), "tokens": tokens}


def answers(job):
    """From raw texts to probabilities."""

    def answer(classifier, preprocess, batches):
        logits = [classifier.predict_on_batch(preprocess(texts)) for texts in batches]
        return {"probabilities": tf.nn.softmax(tf.cast(tf.concat(logits, 0), tf.float32)).numpy()}

    contenders, compiling = {}, {"keras-hub bfloat16": "auto", "keras-hub bfloat16, XLA": True}
    for name, jit_compile in side.asked_for(job, compiling).items():
        classifier, preprocess = new_classifier(job, jit_compile)
        contenders[name] = functools.partial(answer, classifier, preprocess)
    return contenders, {"parameters": classifier.count_params()}


if __name__ == "__main__":
    side.run({task.__name__: task for task in (finetune, answers)})
