"""The package as `help` shows it."""

import re
import types

import keras_bert_kit as kbk


def test_the_docstring_names_everything_public():
    public = {name for name, value in vars(kbk).items() if name[0] != "_" and not isinstance(value, types.ModuleType)}
    assert public <= set(re.findall(r"\w+", kbk.__doc__))
    listed = set(re.findall(r"[A-Za-z]+(?:_\w+|[a-z][A-Z]\w*)", kbk.__doc__))
    assert len(listed) > 50 and listed - {"keras_bert_kit", "SavedModel", "TensorFlow"} <= public
