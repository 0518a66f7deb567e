"""The public lesson's code with our objects in the place of TF-Hub's: string input, vectorizer, encoder, Dense."""

import json
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf
from fake_weights import write_hf_folder

import keras_bert_kit as kbk

TEXTS = ["the team wins the game", "we love the team", "the bank", "market report", "a space robot", "robot in space"]
LABELS = [0, 0, 1, 1, 2, 2]


def lesson_model(folder):
    """As in the lesson, with two lines changed: where `vectorizer` and `bert` come from."""
    loaded = kbk.load_pretrained(folder)
    vectorizer = kbk.BertPacker(loaded.tokenizer, sequence_length=16)
    bert = loaded.encoder

    inp = keras.Input(shape=(), dtype="string")
    x = vectorizer(inp)
    x = bert(x)
    x = keras.layers.Dropout(0.1)(x["pooled_output"])
    out = keras.layers.Dense(3, activation="softmax")(x)
    return keras.models.Model(inp, out), bert


def batches():
    return tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(3)


def test_the_lesson_trains_and_learns(tmp_path):
    keras.utils.set_random_seed(0)
    write_hf_folder(tmp_path, heads=(), hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    model, _ = lesson_model(tmp_path)
    model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.Adam(3e-3), metrics=["acc"])
    history = model.fit(batches(), epochs=15, verbose=0, shuffle=False).history
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert model.predict(tf.constant(TEXTS), verbose=0).shape == (6, 3)


def test_the_lesson_freezes_the_encoder(tmp_path):
    write_hf_folder(tmp_path, heads=())
    model, bert = lesson_model(tmp_path)
    bert.trainable = False
    model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["acc"])
    before = bert.get_weights()
    model.fit(batches(), verbose=0, shuffle=False)
    assert [weight.path.split("/")[0] for weight in model.trainable_weights] == [model.layers[-1].name] * 2
    for old, new in zip(before, bert.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)

    bert.trainable = True  # the lesson's second part: fine-tune all of it
    model.compile(kbk.create_optimizer(1e-3, num_train_steps=2, num_warmup_steps=0), "sparse_categorical_crossentropy")
    model.fit(batches(), verbose=0, shuffle=False)
    assert any(np.any(old != new) for old, new in zip(before, bert.get_weights(), strict=True))


def test_the_lesson_survives_a_keras_file_in_a_fresh_process(tmp_path):
    write_hf_folder(tmp_path / "bert", heads=())
    model, _ = lesson_model(tmp_path / "bert")
    model.compile(kbk.create_optimizer(1e-3, num_train_steps=4, num_warmup_steps=1), "sparse_categorical_crossentropy")
    model.fit(batches(), verbose=0, shuffle=False)
    model.save(tmp_path / "lesson.keras")
    expected = model.predict(tf.constant(TEXTS), verbose=0)
    code = f"""
import json, keras, tensorflow as tf
import keras_bert_kit
model = keras.models.load_model({str(tmp_path / "lesson.keras")!r})
print(json.dumps(model.predict(tf.constant({TEXTS!r}), verbose=0).tolist()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    np.testing.assert_array_equal(np.array(json.loads(done.stdout), "float32"), expected)


def test_a_transformer_from_scratch_learns():
    """The lesson's first half: token and position embeddings, one encoder block, a mean over tokens."""
    keras.utils.set_random_seed(0)
    vectorizer = keras.layers.TextVectorization(max_tokens=50, output_sequence_length=8)
    vectorizer.adapt(TEXTS)
    inp = keras.Input(shape=(), dtype="string")
    x = kbk.TokenAndPositionEmbedding(vocab_size=50, sequence_length=8, hidden_size=16)(vectorizer(inp))
    x = kbk.EncoderBlock(num_heads=2, intermediate_size=32)(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    out = keras.layers.Dense(3, activation="softmax")(x)
    model = keras.Model(inp, out)
    model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.Adam(1e-2), metrics=["acc"])
    history = model.fit(batches(), epochs=20, verbose=0, shuffle=False).history
    assert history["acc"][-1] == 1.0
