"""What a person sees while a model trains: a bar in a terminal, plain lines elsewhere."""

import sys


class ProgressBar:
    """Shows steps, speed, time left, loss, accuracy and rate on standard error.

    Args:
        num_steps: int, steps of the whole run.
        first_step: int, steps done before.
    """

    def __init__(self, num_steps, first_step=0):
        from tqdm import tqdm

        self._terminal = sys.stderr.isatty()
        self._every = max(num_steps // 10, 1)  # without a terminal, ten lines
        self._bar = tqdm(
            total=num_steps,
            initial=first_step,
            unit=" steps",
            file=sys.stderr,
            disable=not self._terminal,
            dynamic_ncols=True,
            leave=False,
        )
        self._num_steps = num_steps

    def update(self, step, logs):
        """Moves the bar to a step."""
        shown = "  ".join(f"{name} {logs[name]:.4g}" for name in ("loss", "accuracy", "learning_rate") if name in logs)
        if self._terminal:
            self._bar.set_postfix_str(shown, refresh=False)
            self._bar.update()
        elif step % self._every == 0:
            self._bar.write(f"step {step} of {self._num_steps}: {shown}", file=sys.stderr)

    def show(self, step, results):
        """Writes a line with the results of an evaluation."""
        line = "  ".join(f"{name} {value:.4f}" for name, value in results.items())
        self._bar.write(f"evaluation after step {step}: {line}", file=sys.stderr)

    def close(self):
        """Closes the bar."""
        self._bar.close()
