"""What a person sees while a model trains: a bar in a terminal, a line per epoch in a log file."""

import sys

import keras


class ProgressBar(keras.callbacks.Callback):
    """Shows steps, speed, time left, loss and metrics on standard error.

    Args:
        num_steps: int, steps of the whole run.
    """

    def __init__(self, num_steps):
        super().__init__()
        self.num_steps = num_steps

    def on_train_begin(self, logs=None):
        """Opens the bar."""
        from tqdm import tqdm

        self._bar = tqdm(total=self.num_steps, unit=" steps", disable=not sys.stderr.isatty(), dynamic_ncols=True)

    def on_train_batch_end(self, batch, logs=None):
        """Moves the bar by one batch."""
        self._bar.update()
        self._bar.set_postfix_str("  ".join(f"{name} {value:.4f}" for name, value in (logs or {}).items()))

    def on_epoch_end(self, epoch, logs=None):
        """Writes the line of an epoch."""
        values = "  ".join(f"{name} {value:.4f}" for name, value in (logs or {}).items())
        self._bar.write(f"epoch {epoch + 1}: {values}", file=sys.stderr)

    def on_train_end(self, logs=None):
        """Closes the bar."""
        self._bar.close()
