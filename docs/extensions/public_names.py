"""What the package makes public, found by looking at it: names, the folder or file that each belongs to, methods.

A name has one place in the reference, the shortest by which it can be imported.
"""

import importlib
import inspect
import pkgutil
import types

import keras_bert_kit

PACKAGE = keras_bert_kit.__name__


def public_names(module):
    """Names that a module makes public: its `__all__`, or what it defines or imports from the package."""
    return getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if name[0] != "_" and not isinstance(value, types.ModuleType)
    ]


def _parts():
    """{part: its public names}: every folder of the package, and files whose names the package itself makes public."""
    parts = {}
    for info in pkgutil.iter_modules(keras_bert_kit.__path__):
        if info.ispkg:
            parts[info.name] = list(public_names(importlib.import_module(f"{PACKAGE}.{info.name}")))
    in_folders = {name for names in parts.values() for name in names}
    for name in public_names(keras_bert_kit):
        if name not in in_folders:
            parts.setdefault(_file_of(name), []).append(name)
    order = [part for part in vars(keras_bert_kit) if part in parts]  # as the package imports them, along the pipeline
    return {part: parts[part] for part in [*order, *(parts.keys() - set(order))]}


def _file_of(name):
    """The file of the package that a public name comes from."""
    for info in pkgutil.iter_modules(keras_bert_kit.__path__):
        module = importlib.import_module(f"{PACKAGE}.{info.name}") if info.name != "__main__" else None
        value = getattr(keras_bert_kit, name)
        if vars(module or object).get(name) is value and getattr(value, "__module__", None) in (None, module.__name__):
            return info.name
    raise LookupError(f"{PACKAGE}.{name} comes from no file of the package.")


PARTS = _parts()
# {public name: the shortest name that it can be imported by}
PLACES = {
    name: f"{PACKAGE}.{name}" if hasattr(keras_bert_kit, name) else f"{PACKAGE}.{part}.{name}"
    for part, names in PARTS.items()
    for name in names
}
# Those that are recognised in a text. A plain word, such as `freeze`, may be the name of an argument there.
SPEAKING = {name: place for name, place in PLACES.items() if not name.islower() or "_" in name}


def methods_of(a_class):
    """Public methods and properties that a class or a base of the package defines, and that no foreign base knows.

    What Keras or Python knows already, such as `call` and `get_config`, is described in the class.
    """
    bases = a_class.__mro__
    foreign = {name for base in bases if not base.__module__.startswith(PACKAGE) for name in dir(base)}
    ours = [base for base in bases if base.__module__.startswith(PACKAGE)]
    kinds = (types.FunctionType, property, classmethod, staticmethod)
    return [
        name
        for base in ours
        for name, value in vars(base).items()
        if name[0] != "_" and name not in foreign and isinstance(value, kinds) and inspect.getdoc(getattr(base, name))
    ]
