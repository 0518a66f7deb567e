"""Other people's files into our variables, and back: read, rename, assign.

A reader gives named arrays and knows nothing of Keras; `names.py` alone knows other people's names; `check.py`
accounts for every tensor on both sides, from headers, before a model is made.
"""

from keras_bert_kit.pretrained.build import Pretrained
from keras_bert_kit.pretrained.load import inspect_pretrained, load_pretrained
from keras_bert_kit.pretrained.preprocessor import load_preprocessor
from keras_bert_kit.pretrained.report import LoadReport
from keras_bert_kit.pretrained.save import save_pretrained

__all__ = ["LoadReport", "Pretrained", "inspect_pretrained", "load_preprocessor", "load_pretrained", "save_pretrained"]
