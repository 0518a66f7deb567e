"""`Scalars`: numbers for TensorBoard, written by TensorFlow alone; TensorBoard is needed only to look at them."""

import tensorflow as tf


class Scalars:
    """Writes scalar summaries into the folder `tensorboard` of a run.

    Args:
        folder: `pathlib.Path` of the run, or None to write nothing.
    """

    def __init__(self, folder):
        self._writer = tf.summary.create_file_writer(str(folder / "tensorboard")) if folder else None
        self._metadata = tf.compat.v1.SummaryMetadata(
            plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
        )
        self._metadata.data_class = 1  # DATA_CLASS_SCALAR in TensorFlow's summary.proto

    def add(self, step, values, group):
        """Writes values of a step, as `<group>/<name>`."""
        if self._writer is None:
            return
        with self._writer.as_default():
            for name, value in values.items():
                tag = f"{group}/{name.replace(' ', '_')}"
                tf.summary.write(tag, tf.constant(value, tf.float32), step=step, metadata=self._metadata)

    def close(self):
        """Flushes and closes the file."""
        if self._writer is not None:
            self._writer.close()
