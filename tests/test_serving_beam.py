"""RunInference gives the answers of Predictor. Runs where Beam is installed: .ci/run has an environment for it."""

import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from serving_models import small_classifier, small_pack

from keras_bert_kit.errors import ExportError
from keras_bert_kit.serving import Predictor, beam_inference, check, export_for_serving, predictor_handler

TEXTS = ["We love the news", "", "Über 中 cafe!", "team wins the game " * 20, b"\xff news", "a\x00b"] * 20


@pytest.fixture(scope="module")
def version(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "require_same_answers", lambda *args, **kwargs: 0.0)  # tested in test_serving_export.py
        return export_for_serving(small_classifier(), small_pack(), tmp_path_factory.mktemp("模型") / "news")


@pytest.fixture
def beam():
    return pytest.importorskip("apache_beam", reason="needs Apache Beam: pip install 'keras_bert_kit[beam]'")


def as_row(result):
    """What can be compared and sorted."""
    return result.example, result.inference.label, list(result.inference.probabilities.values())


def write_rows(rows, path):
    """Called by the pipeline, perhaps in another process."""
    np.save(path, np.array(rows, object))


def run(beam, texts, handler, path):
    """The results of a pipeline, as rows."""
    from apache_beam.ml.inference.base import RunInference

    # In this process: the runner's own choice may be another one, and TensorFlow starts slowly.
    options = beam.options.pipeline_options.PipelineOptions(runner="DirectRunner", direct_running_mode="in_memory")
    with beam.Pipeline(options=options) as pipeline:
        results = pipeline | beam.Create(texts) | RunInference(handler) | beam.Map(as_row)
        results | beam.combiners.ToList() | beam.Map(write_rows, str(path))
    return np.load(path, allow_pickle=True).tolist()


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")  # Beam and its dependencies warn of each other
def test_the_answers_of_predictor(beam, version, tmp_path):
    rows = run(beam, TEXTS, predictor_handler(version.parent, max_batch_size=50), tmp_path / "rows.npy")
    assert len(rows) == len(TEXTS)
    expected = dict(zip(TEXTS, Predictor(version).predict(TEXTS), strict=True))
    assert {example for example, _, _ in rows} == set(expected)
    for example, label, probabilities in rows:
        assert label == expected[example].label
        np.testing.assert_allclose(probabilities, list(expected[example].probabilities.values()), atol=1e-5)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_with_keys(beam, version, tmp_path):
    from apache_beam.ml.inference.base import KeyedModelHandler, RunInference

    path = str(tmp_path / "rows.npy")
    with beam.Pipeline(options=beam.options.pipeline_options.PipelineOptions(runner="DirectRunner")) as pipeline:
        results = (
            pipeline | beam.Create(list(enumerate(TEXTS))) | RunInference(KeyedModelHandler(predictor_handler(version)))
        )
        labels = results | beam.Map(lambda pair: (pair[0], pair[1].inference.label, pair[1].model_id))
        labels | beam.combiners.ToList() | beam.Map(write_rows, path)
    expected = [prediction.label for prediction in Predictor(version).predict(TEXTS)]
    assert sorted(np.load(path, allow_pickle=True).tolist()) == [
        [key, label, str(version)] for key, label in enumerate(expected)
    ]


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_the_example(beam, version, tmp_path, monkeypatch):
    """The example in the module's docstring, word by word."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(version.parent, "saved_models/ag_news")
    texts = ["We love the news", "team wins", "Über 中 cafe!"]
    Path("headlines.txt").write_text("\n".join(texts), encoding="utf-8")
    example = "\n".join(line for line in beam_inference.__doc__.splitlines() if line.startswith("    "))
    example = "import apache_beam" + example.partition("import apache_beam")[2]
    exec(textwrap.dedent(f"    {example}"), {})
    written = [path.read_text(encoding="utf-8").splitlines() for path in tmp_path.glob("labels.tsv-*")]
    expected = [
        f"{answer.label}\t{text}" for answer, text in zip(Predictor(version).predict(texts), texts, strict=True)
    ]
    assert sorted(sum(written, [])) == sorted(expected)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_text(beam, version, tmp_path):
    with pytest.raises(Exception, match="must be strings. Received: None"):
        run(beam, ["news", None], predictor_handler(version), tmp_path / "rows.npy")


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_arguments_that_would_say_nothing(beam, version):
    handler = predictor_handler(version)
    with pytest.raises(ValueError, match=r"inference_args must be left out.* Received: {'batch_size': 8}"):
        handler.run_inference(["news"], None, {"batch_size": 8})


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_no_model(beam, tmp_path):
    with pytest.raises(ExportError, match="absent or empty"):
        predictor_handler(tmp_path / "nothing")


def test_without_beam_the_error_says_how_to_get_it(version, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    monkeypatch.setitem(sys.modules, "apache_beam.ml.inference", None)
    with pytest.raises(ImportError, match=r"needs Apache Beam. Run: pip install 'keras_bert_kit\[beam\]'"):
        predictor_handler(version)
