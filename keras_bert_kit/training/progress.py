"""What a person sees while a model trains: a bar in a terminal, a line now and then in a log file."""

import sys


class ProgressBar:
    """Shows steps, speed, time left, loss and rate on standard error.

    Args:
        num_steps: int, steps of the whole run.
        first_step: int, steps done before.
    """

    def __init__(self, num_steps, first_step=0):
        from tqdm import tqdm

        terminal = sys.stderr.isatty()
        self._bar = tqdm(
            total=num_steps, initial=first_step, unit=" steps", disable=not terminal, dynamic_ncols=True, leave=False
        )

    def update(self, step, logs):
        """Moves the bar to a step."""
        shown = {name: logs[name] for name in ("loss", "accuracy") if name in logs}
        self._bar.set_postfix_str("  ".join(f"{name} {value:.4f}" for name, value in shown.items()), refresh=False)
        self._bar.update()

    def write(self, line):
        """Writes a line above the bar."""
        self._bar.write(line, file=sys.stderr)

    def close(self):
        """Closes the bar."""
        self._bar.close()
