"""`predictor_handler`: an exported model in Apache Beam's RunInference, for millions of texts on many machines.

    texts ──► BatchElements ──► RunInference(predictor_handler) ──► PredictionResults
              by Beam           one Predictor in each process       in no order: each holds its text

    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference
    from keras_bert_kit.serving import predictor_handler

    with beam.Pipeline() as pipeline:          # runs here; options choose Flink, Spark, Dataflow, …
        (
            pipeline
            | beam.io.ReadFromText("headlines.txt")
            | RunInference(predictor_handler("saved_models/ag_news"))
            | beam.Map(lambda result: f"{result.inference.label}\\t{result.example}")
            | beam.io.WriteToText("labels.tsv")
        )

Keys go along with `KeyedModelHandler(predictor_handler(…))`, for pairs (key, text). One element that is no text stops
the pipeline, unless it says `RunInference(…).with_exception_handling()`.
"""

from pathlib import Path

from keras_bert_kit.serving.predictor import Predictor, newest_version


def predictor_handler(path, *, max_batch_size=128, **settings):
    """Makes the `ModelHandler` of an exported model: RunInference takes texts (str or bytes) and gives `Prediction`s.

    The kit has to be installed on the workers, and the model must lie there under the same path. The version is chosen
    here, so that all workers have the same one, whatever is exported meanwhile.

    Args:
        path: folder of the model, of which the largest version is taken, or folder of a version.
        max_batch_size: int, texts that Beam gives to the model at once. `Predictor` sorts them by length and cuts them
            into batches of 32.
        **settings: further ones of `apache_beam.ml.inference.base.ModelHandler`, such as `large_model=True`: one model
            on each machine, not in each process.

    Returns:
        `apache_beam.ml.inference.base.ModelHandler`. Its results are `PredictionResult(example, inference, model_id)`:
        the text, its `Prediction`, and the path of the version.

    Raises:
        ImportError: Apache Beam is not installed.
        ExportError: there is no exported model.
    """
    try:
        from apache_beam.ml.inference import base
    except ImportError as error:
        raise ImportError("This needs Apache Beam. Run: pip install 'keras_bert_kit[beam]'") from error

    version = str(newest_version(Path(path)).resolve())

    class PredictorHandler(base.ModelHandler):
        """Loads the model once in a process, and answers what Beam has gathered."""

        def load_model(self):
            return Predictor(version)

        def run_inference(self, batch, model, inference_args=None):
            if inference_args:
                raise ValueError(f"inference_args must be left out: there are none. Received: {inference_args}.")
            predictions = model.predict(list(batch))
            return [base.PredictionResult(*pair, model_id=version) for pair in zip(batch, predictions, strict=True)]

        def get_num_bytes(self, batch):
            return sum(len(text) for text in batch)

    return PredictorHandler(max_batch_size=max_batch_size, **settings)
