"""What a report of a problem should say about the machine: versions, devices, threads, instructions."""

import importlib.metadata
import os
import platform
from pathlib import Path

import tensorflow as tf

_PACKAGES = (
    "tensorflow",
    "keras",
    "numpy",
    "safetensors",
    "protobuf",
    "tensorflow-text",
    "tensorflow-hub",
    "keras-hub",
    "tokenizers",
    "kagglehub",
    "huggingface-hub",
)
# What makes matrix products in bfloat16 or with 8-bit integers fast; names as in Linux' /proc/cpuinfo.
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "bf16")


def describe_machine():
    """Returns a dictionary from topic to a line of text."""
    found = {
        "python": f"{platform.python_version()} on {platform.platform()}",
        **{package: _version_of(package) for package in _PACKAGES},
        "tensorflow-text imports": _imports_tensorflow_text(),
        "devices": ", ".join(f"{device.device_type} {device.name[-1]}" for device in tf.config.list_physical_devices()),
        "cores": str(os.cpu_count()),
        "threads": f"intra_op {tf.config.threading.get_intra_op_parallelism_threads() or 'all cores'}, "
        f"inter_op {tf.config.threading.get_inter_op_parallelism_threads() or 'all cores'}",
        "instructions": _instructions(),
        "oneDNN": "off" if os.environ.get("TF_ENABLE_ONEDNN_OPTS") == "0" else "on where TensorFlow has it",
    }
    return {topic: text for topic, text in found.items() if text}


def _version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _imports_tensorflow_text():
    """tensorflow-text only loads into the TensorFlow that it was built for."""
    if _version_of("tensorflow-text") == "not installed":
        return ""
    try:
        import tensorflow_text  # noqa: F401  (whether it can be imported is the question)
    except (ImportError, tf.errors.OpError) as error:
        return f"no: {str(error).splitlines()[0][:100]}"
    return "yes"


def _instructions():
    """The instruction sets of interest, where the system says them."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return "not known on this system"
    words = set(path.read_text(encoding="utf-8", errors="replace").split())
    has = [name for name in _INSTRUCTIONS if name in words]
    amx = "AMX: yes" if "amx_bf16" in words else "AMX: no"
    return f"{', '.join(has) or 'none of interest'} ({amx})"
