"""Pictures are written, readable files, or figures for a notebook; wrong shapes are refused."""

import numpy as np
import pytest

from keras_bert_kit import plots
from keras_bert_kit.plots import evaluation, figures, training

TOKENS = ["[CLS]", "the", "$team$", "[SEP]"]  # no mathematics


def random_scores(*shape):
    return np.random.default_rng(0).random(shape)


@pytest.mark.parametrize("shape", [(4, 4), (3, 6, 6)])
def test_a_heat_map_is_written(tmp_path, shape):
    pytest.importorskip("matplotlib")
    path = plots.plot_attention(random_scores(*shape), TOKENS, tmp_path / "Bild für 模型.png")
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


@pytest.mark.parametrize("heads", [1, 3, 6])
def test_all_heads_of_a_block(heads):
    pytest.importorskip("matplotlib")
    scores = random_scores(heads, 5, 5)
    figure = plots.plot_attention_heads(scores, TOKENS, title="Heads")
    pictures = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title() for axes in pictures] == [f"head {head}" for head in range(heads)]
    for axes, head in zip(pictures, scores, strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), head[:4, :4], rtol=1e-6)
    first, last = pictures[0], pictures[-1]
    assert [label.get_text() for label in first.get_yticklabels()] == TOKENS
    assert [label.get_text() for label in last.get_xticklabels()] == TOKENS
    figure.canvas.draw()  # a warning would be an error


def test_all_heads_of_all_blocks(tmp_path):
    pytest.importorskip("matplotlib")
    scores = random_scores(2, 3, 5, 5)
    figure = plots.plot_all_attention(list(scores), TOKENS)
    pictures = [axes for axes in figure.axes if axes.images]
    assert pictures[4].get_title() == "block 1, head 1"
    np.testing.assert_allclose(pictures[4].images[0].get_array(), scores[1, 1, :4, :4], rtol=1e-6)
    assert plots.plot_all_attention(list(scores), TOKENS, tmp_path / "all.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("plot", "shapes"),
    [
        (plots.plot_attention, [(3, 3), (4, 5), (4,), (2, 2, 4, 4)]),
        (plots.plot_attention_heads, [(4, 4), (2, 3, 3), (2, 4, 5)]),
        (plots.plot_all_attention, [(4, 4), (2, 4, 4), (2, 2, 3, 3)]),
    ],
)
def test_scores_that_do_not_fit_the_tokens_are_refused(tmp_path, plot, shapes):
    pytest.importorskip("matplotlib")
    for shape in shapes:
        with pytest.raises(ValueError, match=r"scores must be .*Received: shape .*, 4 tokens"):
            plot(np.zeros(shape), TOKENS, tmp_path / "x.png")
    with pytest.raises(ValueError, match="0 tokens"):
        plot(np.zeros((2, 2, 4, 4)[-3:]), [], tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_many_tokens_do_not_make_a_giant_picture():
    pytest.importorskip("matplotlib")
    figure = plots.plot_all_attention(np.ones((1, 12, 128, 128)) / 128, ["token"] * 128)
    assert max(figure.get_size_inches()) * figure.get_dpi() <= 6000


def test_ideographs_are_drawn_where_a_font_has_them():
    pytest.importorskip("matplotlib")
    families = figures.style_of_tokens(8)["fontfamily"]
    assert families[0] == "DejaVu Sans" and len(families) <= 2


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(figures.importlib.util, "find_spec", lambda name: None)
    for draw in (plots.require_matplotlib, lambda: plots.plot_attention(np.eye(4), TOKENS, "x.png")):
        with pytest.raises(figures.KitError, match=r"pip install 'keras_bert_kit\[plots\]'"):
            draw()


@pytest.mark.parametrize("names", [(), ("accuracy",), ("mlm_accuracy", "nsp_accuracy")])
def test_the_curves_of_a_run(tmp_path, names):
    pytest.importorskip("matplotlib")
    accuracies = dict.fromkeys(names, 0.5)
    records = [{"step": step, "loss": 1.4 / step, "learning_rate": 1e-4} | accuracies for step in range(1, 41)]
    records.insert(20, {"step": 20, "validation": {"loss": 0.3} | accuracies})
    path = plots.plot_training(records, tmp_path / "training.png", title="A run")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(plots.plot_training(records).axes) == 3 if names else 2
    with pytest.raises(ValueError, match="at least one step. Received: 0 records"):
        plots.plot_training([], tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_the_running_mean_never_looks_ahead():
    np.testing.assert_allclose(training._smoothed(np.arange(40.0))[:4], [0.0, 0.5, 1.5, 2.5])


def test_a_confusion_matrix_counts():
    pytest.importorskip("matplotlib")
    labels, answers = [0, 0, 0, 2, 2], [0, 0, 2, 2, 0]
    assert evaluation.confusion_matrix(labels, answers, 3).tolist() == [[2, 0, 1], [0, 0, 0], [1, 0, 1]]
    figure = plots.plot_confusion_matrix(labels, answers, ["a", "b", "c"])
    axes = figure.axes[0]
    assert axes.get_title() == "3 of 5 right: accuracy 0.6000"
    assert [text.get_text() for text in axes.texts][:3] == ["2\n67%", "0\n0%", "1\n33%"]
    figure.canvas.draw()


@pytest.mark.parametrize(
    ("labels", "answers", "match"),
    [
        ([0, 1], [0], r"one number each .*Received: shapes \(2,\) and \(1,\)"),
        ([], [], r"at least one example"),
        ([0, 1], [0, 2], r"class numbers from 0 to 1. Received: dtype int64, from 0 to 2"),
        ([0, 1], [0, -1], r"from -1 to 1"),
        ([0, 1], [0.1, 0.9], r"dtype float64.*argmax"),
    ],
)
def test_answers_that_are_no_classes_are_refused(labels, answers, match):
    with pytest.raises(ValueError, match=match):
        plots.plot_confusion_matrix(np.array(labels), np.array(answers), ["a", "b"])


def test_token_lengths(tmp_path):
    pytest.importorskip("matplotlib")
    lengths = np.array([5, 6, 6, 7, 30])
    figure = plots.plot_token_lengths(lengths, max_length=16)
    (axes,) = figure.axes
    assert sum(bar.get_height() for bar in axes.patches) == 5
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words == ["median: 6", "95 % have at most 25", "cut at 16: 20.0% are longer"]
    assert plots.plot_token_lengths(np.full(3, 9), tmp_path / "equal.png").stat().st_size > 3000
    assert sum(bar.get_height() for bar in plots.plot_token_lengths(np.arange(1000)).axes[0].patches) == 1000
    with pytest.raises(ValueError, match="at least one text"):
        plots.plot_token_lengths([])
