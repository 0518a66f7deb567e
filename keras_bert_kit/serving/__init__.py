"""From a trained classifier to answers on a server: export, check, predict.

export.py         export_for_serving: a SavedModel from raw text to labels, written safely
ops.py            which TensorFlow ops it may hold
check.py          the answers of a fresh process against those of the trained model
bare_answers.py   what that process runs: nothing but TensorFlow
predictor.py      Predictor: an exported model in Python
predictions.py    Prediction, and texts in batches
client.py         ServingClient: the same answers from TF Serving
calls.py          one question to a server, its failures, and when to ask again
rest.py           over HTTP
grpc_api.py       over gRPC
beam_inference.py predictor_handler: in Apache Beam's RunInference
"""

from keras_bert_kit.serving.beam_inference import predictor_handler
from keras_bert_kit.serving.client import ServingClient
from keras_bert_kit.serving.export import export_for_serving
from keras_bert_kit.serving.predictions import Prediction
from keras_bert_kit.serving.predictor import Predictor

__all__ = ["Prediction", "Predictor", "ServingClient", "export_for_serving", "predictor_handler"]
