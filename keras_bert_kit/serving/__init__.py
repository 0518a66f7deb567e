"""From a trained classifier to answers on a server: export, check, predict.

export.py         export_for_serving: a SavedModel from raw text to labels, written safely
requirements.py   what has to hold before that starts
signatures.py     what a server can be asked, and how the graph answers
int8.py           the same model with products in int8, for exports that ask for it
calibration.py    how large its numbers become, and which answers change
windows.py        documents longer than the model, inside the graph
ops.py            which TensorFlow ops it may hold
questions.py      what it is asked before it is published, and what the trained model says
check.py          the answers of a fresh process against those of the trained model
bare_answers.py   what that process runs: nothing but TensorFlow
warm_up.py        requests that a server answers itself, before the first client may
server_files.py   settings of a server, for Docker and Kubernetes, and a README
inspection.py     what a person wants to know of an exported model: ops, sizes, speed, differences
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
