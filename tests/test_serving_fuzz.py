"""Strange text through an exported model: no crash, no NaN, shapes as promised, and no row looks at another."""

import random

import numpy as np
import pytest
import tensorflow as tf
from serving_models import CLASS_NAMES, small_classifier, small_pack

from keras_bert_kit.serving import check, export_for_serving

NAMES = ("serving_default", "pairs", "embed", "examples")
SIZES = (0, 1, 7, 1000)
ALPHABETS = (
    "abcdefghij ",
    "news team wins ##ing [MASK] [PAD] [SEP] ",
    "\x00\t\r\n\x0b\x7f\x1b\u200b\u2028\ufeff\ufffd",  # NUL, controls, invisible characters
    "🙂👩‍👩‍👧‍👦🏳️‍🌈🇩🇪 ",
    "שלום עולם مرحبا بالعالم\u202e\u200f ",  # right to left
    "株式会社アリババ한국어ไทยहिन्दी",
    "éèüßøÅİıſǅ\u0301\u0327\u0308",  # accents, also as characters of their own
    ".,!?-'\"()$%:&*~^|",
    "\U000e0001\U0010ffff\ud7ff\ue000\uffff",  # the ends of planes, private use
)


def strange_texts(number, seed):
    """`number` texts as bytes: of one alphabet or of all, or bytes that are no UTF-8; half of them are cut anywhere."""
    draw = random.Random(seed)
    for _ in range(number):
        length = draw.choice((0, 1, 2, 5, 20, 100, 400))
        alphabet = draw.choice((*ALPHABETS, "".join(ALPHABETS)))
        text = "".join(draw.choices(alphabet, k=length)).encode()
        if draw.random() < 0.3:
            text = draw.randbytes(length)
        yield text[: draw.randint(0, len(text))] if draw.random() < 0.5 else text


@pytest.fixture(scope="module", params=["truncate", "window"])
def signatures(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("out") / "strange"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # tested in test_serving_export.py
        version = export_for_serving(
            small_classifier(), small_pack(), path, signatures=NAMES, long_text=request.param, max_windows=5
        )
    return tf.saved_model.load(str(version)).signatures


def ask(signatures, name, texts):
    """Checked answers to texts: logits, or embeddings."""
    if name == "examples":
        features = [{"text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))} for text in texts]
        texts = [tf.train.Example(features=tf.train.Features(feature=one)).SerializeToString() for one in features]
    tensor = tf.constant(texts, tf.string, shape=[len(texts)])
    inputs = {
        "pairs": lambda: {"text_a": tensor, "text_b": tf.roll(tensor, 1, axis=0) if len(texts) > 1 else tensor},
        "examples": lambda: {"examples": tensor},
    }.get(name, lambda: {"text": tensor})()
    answers = {key: value.numpy() for key, value in signatures[name](**inputs).items()}
    if name == "embed":
        assert answers["embeddings"].shape == (len(texts), 16) and np.isfinite(answers["embeddings"]).all()
        return answers["embeddings"]
    assert answers["label"].shape == (len(texts),)
    assert {label.decode() for label in answers["label"]} <= set(CLASS_NAMES)
    assert answers["probabilities"].shape == answers["logits"].shape == (len(texts), 3)
    assert np.isfinite(answers["logits"]).all()
    np.testing.assert_allclose(answers["probabilities"].sum(axis=1), 1, atol=1e-5)
    return answers["logits"]


def check_rows(signatures, name, texts, number_alone):
    """Asks in batches of all sizes; the rows of the largest must be what they are in others, and some of them alone."""
    together = ask(signatures, name, texts)
    for size in SIZES[:-1]:
        np.testing.assert_allclose(ask(signatures, name, texts[:size])[1:], together[1:size], atol=1e-5)
    if name != "pairs":  # a row of a pair has its neighbour as second text
        for row in random.Random(0).sample(range(len(texts)), number_alone):
            np.testing.assert_allclose(ask(signatures, name, texts[row : row + 1])[0], together[row], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_strange_texts(signatures, name):
    check_rows(signatures, name, list(strange_texts(150, seed=NAMES.index(name))), number_alone=20)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_strange_texts(signatures, name):
    for seed in range(10):
        check_rows(signatures, name, list(strange_texts(1000, seed)), number_alone=100)


@pytest.mark.slow
def test_a_megabyte(signatures):
    """In one batch with short texts, and without a space: one word of a million letters."""
    texts = [b"news " * 200_000, b"x" * 1_000_000, "\u0301".encode() * 500_000, b"\xff" * 1_000_000, b"\0" * 1_000_000]
    for name in NAMES:
        texts_of_all = [b"we love the news", *texts, b""]
        together = ask(signatures, name, texts_of_all)
        if name != "pairs":
            np.testing.assert_allclose(together[0], ask(signatures, name, [texts_of_all[0]])[0], atol=1e-5)
