"""What a person wants to know of an exported model before it serves: ops, signatures, sizes, speed, differences."""

import dataclasses
import statistics
import sys
import time

import numpy as np
import tensorflow as tf

from keras_bert_kit.serving import check
from keras_bert_kit.serving.export import ops_beside_core
from keras_bert_kit.serving.ops import require_core_ops
from keras_bert_kit.serving.predictor import Predictor, read_kit_file
from keras_bert_kit.serving.questions import Question, check_texts, inputs_for, question_for
from keras_bert_kit.serving.signatures import Signatures
from keras_bert_kit.serving.warm_up import LENGTHS

_RUNS = 20  # of which the median is taken


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What was found.

    Attributes:
        saved_model: str, the folder of the version.
        ops: tuple of str, what the graph runs.
        signatures: dictionary from signature to {"inputs": …, "outputs": …}, each from name to dtype and shape.
        file_bytes: dictionary from file to int.
        load_seconds: float, in this process.
        latency_ms: dictionary from tokens of a text to float: the median time of a request of one text.
        tensorflow: str, the version in the process that answers were compared with.
        difference_between_processes: float, largest difference of a number between this Python and the other one.
        difference_to_model: float, largest difference of a probability or embedding to the trained model; None where
            that was not given.
        tolerance: float, what the differences may be; of a version in int8, what their mean may be.
    """

    saved_model: str
    ops: tuple
    signatures: dict
    file_bytes: dict
    load_seconds: float
    latency_ms: dict
    tensorflow: str
    difference_between_processes: float
    difference_to_model: float | None
    tolerance: float

    def __str__(self):
        signatures = [f"{name}({_some(s['inputs'])}) -> {_some(s['outputs'])}" for name, s in self.signatures.items()]
        lines = [
            f"saved model  {self.saved_model}",
            f"ops          {len(self.ops)} of TensorFlow: {' '.join(self.ops)}",
            *(f"signature    {line}" for line in signatures),
            f"files        {sum(self.file_bytes.values()):,} bytes: "
            + ", ".join(f"{name} {size:,}" for name, size in self.file_bytes.items()),
            f"loading      {self.load_seconds:.1f} s",
            *(f"latency      {ms:.1f} ms for a text of {tokens} tokens" for tokens, ms in self.latency_ms.items()),
            f"difference   {self.difference_between_processes:.2g} to TensorFlow {self.tensorflow} in another process",
        ]
        if self.difference_to_model is not None:
            lines.append(f"difference   {self.difference_to_model:.2g} to the trained model")
        return "\n".join(lines)


def inspect_export(path, model=None, pack=None, python=sys.executable):
    """Looks at an exported model, runs it here and in another process, and compares it with the trained model.

    Args:
        path: folder of the model, of which the newest version is taken, or folder of a version.
        model: the trained `BertClassifier`, or None.
        pack: its `BertPacker`.
        python: path of the Python of the other process, which may have another TensorFlow. It needs nothing else.

    Returns:
        `Inspection`.

    Raises:
        ExportError: the model does not load, holds an op that servers lack, or answers something else in the other
            process, or than the trained model.
    """
    start = time.perf_counter()
    predictor = Predictor(path)
    load_seconds = time.perf_counter() - start
    folder = predictor.version_folder
    kit_file = read_kit_file(folder)
    ops = require_core_ops(folder, ops_beside_core(kit_file["quantize"]))
    loaded = tf.saved_model.load(str(folder))  # signatures do not keep the model they belong to
    serve = {name: loaded.signatures[name] for name in kit_file["signatures"]}
    bounds = check.tolerance_of(kit_file["dtype"], kit_file["quantize"])
    version, difference = compare_processes(folder, serve, predictor.class_names, python, *bounds)
    return Inspection(
        saved_model=str(folder),
        ops=tuple(ops),
        signatures={name: _specs(function) for name, function in serve.items()},
        file_bytes=_file_bytes(folder),
        load_seconds=load_seconds,
        latency_ms=latencies(serve["serving_default"], kit_file["max_sequence_length"]),
        tensorflow=version,
        difference_between_processes=difference,
        difference_to_model=None if model is None else compare_to_model(folder, kit_file, model, pack, *bounds),
        tolerance=bounds[0],
    )


def latencies(serve, longest):
    """Median milliseconds of a request of one text, by its tokens: dictionary from int to float."""
    medians = {}
    for tokens in sorted({min(length, longest) for length in (*LENGTHS, longest)}):
        text, times = tf.constant([" ".join(["a"] * (tokens - 2))]), []
        for _ in range(_RUNS + 1):
            start = time.perf_counter()
            serve(text=text)["probabilities"].numpy()
            times.append(time.perf_counter() - start)
        medians[tokens] = 1000 * statistics.median(times[1:])  # the first one optimises the graph
    return medians


def compare_processes(folder, serve, class_names, python, tolerance, measure):
    """Asks every signature here and in a process of another Python, which may have another TensorFlow.

    Args:
        folder: `pathlib.Path` of the version.
        serve: its signatures, loaded here.
        class_names: tuple of str.
        python: path of a Python.
        tolerance: float, largest difference.
        measure: what of the differences it is for, see `check.tolerance_of`.

    Returns:
        (version of the other TensorFlow, largest difference of a number).
    """
    questions = []
    for name, function in serve.items():
        inputs = inputs_for(name, check_texts([]))
        outputs = {key: x.numpy() for key, x in function(**{key: tf.constant(x) for key, x in inputs.items()}).items()}
        numbers = {key: x for key, x in outputs.items() if x.dtype == np.float32 and key != "logits"}
        strings = {key: _decoded(x) for key, x in outputs.items() if name == "metadata"}
        questions.append(Question(name, inputs, numbers | strings))
    answers = check.fresh_answers(folder, questions, python)
    difference = check.largest_difference(answers["answers"], questions, class_names, tolerance, measure)
    return answers["tensorflow"], difference


def compare_to_model(folder, kit_file, model, pack, tolerance, measure):
    """Largest difference of the exported model, in a fresh process, to the trained one."""
    settings = [kit_file[name] for name in ("long_text", "max_windows", "embedding")]
    signatures = Signatures(model, pack, [], {}, *settings)
    questions = [question_for(signatures, name) for name in kit_file["signatures"]]
    return check.require_same_answers(folder, questions, kit_file["class_names"], tolerance, measure)


def _specs(function):
    """Inputs and outputs of a signature, for people."""
    inputs = function.structured_input_signature[1]
    described = {"inputs": inputs, "outputs": function.structured_outputs}
    return {
        side: {name: f"{spec.dtype.name} {tuple(spec.shape)}" for name, spec in specs.items()}
        for side, specs in described.items()
    }


def _file_bytes(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _some(specs):
    return ", ".join(f"{name} {spec}" for name, spec in specs.items())


def _decoded(array):
    return np.char.decode(array.astype(bytes)).tolist()
