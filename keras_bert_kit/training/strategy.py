"""`make_strategy`: which devices train together, as a `tf.distribute` strategy."""

import json
import logging
import os

import tensorflow as tf

KINDS = ("auto", "cpu", "one_device", "mirrored", "multi_worker", "tpu")

_log = logging.getLogger(__name__)


def make_strategy(kind="auto", num_replicas=None):
    """Makes a `tf.distribute` strategy, and logs in one line what was found.

    Make it before anything else of TensorFlow runs, and make the model in its scope:

    >>> strategy = make_strategy("mirrored", num_replicas=2)
    >>> with strategy.scope():
    ...     model = BertClassifier(BertEncoder(config), num_classes=4)

    Args:
        kind: one of
            * `"auto"`: TPU where `TPU_NAME` is set, several workers where `TF_CONFIG` names them, all GPUs where there
              are several, else the one device there is;
            * `"cpu"`: the CPU, even where there is a GPU;
            * `"one_device"`: the first GPU, or the CPU;
            * `"mirrored"`: all GPUs of this machine, or `num_replicas` of them; without a GPU, `num_replicas` logical
              CPUs, for tests and teaching: they share the cores, so they are not faster than one;
            * `"multi_worker"`: the workers that the environment variable `TF_CONFIG` names, this process one of them;
            * `"tpu"`: the TPU that `tf.distribute.cluster_resolver.TPUClusterResolver` finds.
        num_replicas: int, for `"mirrored"`. Default: every GPU, or 2 logical CPUs.

    Returns:
        `tf.distribute.Strategy`.

    Raises:
        ValueError: Unknown kind, more replicas than GPUs, or `TF_CONFIG` is missing or holds no cluster.
        RuntimeError: Logical CPUs were asked for after TensorFlow had started.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}. Received: kind={kind!r}.")
    if num_replicas is not None and (kind != "mirrored" or num_replicas < 1):
        raise ValueError(
            f"num_replicas must be 1 or more, and is for kind='mirrored' only. Received: kind={kind!r}, "
            f"num_replicas={num_replicas}."
        )
    found = kind
    if kind == "auto":
        found = _kind_here()
    strategy = _MAKERS[found](num_replicas)
    _log.info("%s", describe(strategy, found))
    return strategy


def describe(strategy, kind=None):
    """Returns one line about a strategy: its class, replicas, workers and devices."""
    name = type(strategy).__name__ + (f" ({kind})" if kind else "")
    replicas = strategy.num_replicas_in_sync
    devices = ", ".join(sorted({device.split("/")[-1] for device in strategy.extended.worker_devices}))
    return f"{name}: {replicas} replica{'s' if replicas > 1 else ''} on {devices}"


def is_chief(strategy):
    """Says whether this process is the one of all workers that writes files: the chief, or else the first worker."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type or len(_workers()) < 2:
        return True
    first = "chief" if "chief" in resolver.cluster_spec().jobs else "worker"
    return resolver.task_type == first and resolver.task_id == 0


def _kind_here():
    if os.environ.get("TPU_NAME"):
        return "tpu"
    if len(_workers()) > 1:
        return "multi_worker"
    return "mirrored" if len(tf.config.list_physical_devices("GPU")) > 1 else "one_device"


def _workers():
    """The addresses of the workers (the chief among them) in `TF_CONFIG`, or an empty list."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
        return [address for job in ("chief", "worker") for address in cluster.get(job, [])]
    except (json.JSONDecodeError, AttributeError, TypeError):
        raise ValueError(
            "TF_CONFIG must hold JSON such as "
            '{"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}. '
            f"Received: TF_CONFIG={os.environ['TF_CONFIG']!r:.200}."
        ) from None


def _cpu(_):
    return tf.distribute.OneDeviceStrategy("/cpu:0")


def _one_device(_):
    return tf.distribute.OneDeviceStrategy("/gpu:0" if tf.config.list_physical_devices("GPU") else "/cpu:0")


def _mirrored(num_replicas):
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        wanted = num_replicas or len(gpus)
        if wanted > len(gpus):
            raise ValueError(f"num_replicas must not be above the number of GPUs, {len(gpus)}. Received: {wanted}.")
        return tf.distribute.MirroredStrategy([f"/gpu:{i}" for i in range(wanted)])
    wanted = num_replicas or 2
    _split_the_cpu(wanted)
    # Summed on one of them, in a fixed order: the default, collective operations, allows one group of CPUs a process.
    devices = [f"/cpu:{i}" for i in range(wanted)]
    return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())


def _split_the_cpu(wanted):
    """Makes at least `wanted` logical CPUs, which is possible only before TensorFlow has started."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    if len(tf.config.get_logical_device_configuration(cpu) or [None]) >= wanted:
        return
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * wanted)
    except RuntimeError:
        raise RuntimeError(
            f"Logical CPUs must be made before TensorFlow has started. Received: num_replicas={wanted} after "
            "something ran. Call make_strategy first in the process."
        ) from None


def _multi_worker(_):
    if not _workers():
        raise ValueError("kind='multi_worker' needs the environment variable TF_CONFIG with a cluster of workers.")
    return tf.distribute.MultiWorkerMirroredStrategy()


def _tpu(_):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)


_MAKERS = {
    "cpu": _cpu,
    "one_device": _one_device,
    "mirrored": _mirrored,
    "multi_worker": _multi_worker,
    "tpu": _tpu,
}
