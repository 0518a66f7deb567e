"""Pictures are written, readable files; wrong shapes are refused."""

import numpy as np
import pytest

from keras_bert_kit import plots

TOKENS = ["[CLS]", "the", "team", "[SEP]"]


@pytest.mark.parametrize("shape", [(4, 4), (3, 6, 6)])
def test_a_heat_map_is_written(tmp_path, shape):
    pytest.importorskip("matplotlib")
    scores = np.random.default_rng(0).random(shape)
    path = plots.plot_attention(scores, TOKENS, tmp_path / "Bild für 模型.png")
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


def test_scores_that_do_not_fit_the_tokens_are_refused(tmp_path):
    pytest.importorskip("matplotlib")
    for shape in ((3, 3), (4, 5), (4,)):
        with pytest.raises(ValueError, match=r"scores must be .*Received: shape .*, 4 tokens"):
            plots.plot_attention(np.zeros(shape), TOKENS, tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(plots.KitError, match=r"pip install 'keras_bert_kit\[plots\]'"):
        plots.require_matplotlib()


@pytest.mark.parametrize("names", [(), ("accuracy",), ("mlm_accuracy", "nsp_accuracy")])
def test_the_curves_of_a_run(tmp_path, names):
    pytest.importorskip("matplotlib")
    accuracies = dict.fromkeys(names, 0.5)
    records = [{"step": step, "loss": 1.4 / step, "learning_rate": 1e-4} | accuracies for step in range(1, 41)]
    records.insert(20, {"step": 20, "validation": {"loss": 0.3} | accuracies})
    path = plots.plot_training(records, tmp_path / "training.png", title="A run")
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="at least one step. Received: 0 records"):
        plots.plot_training([], tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_the_running_mean_never_looks_ahead():
    np.testing.assert_allclose(plots._smoothed(np.arange(40.0))[:4], [0.0, 0.5, 1.5, 2.5])
