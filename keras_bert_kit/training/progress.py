"""What a person sees while a model trains: a bar in a terminal, plain lines elsewhere."""

import sys
import time

_SHOWN = ("loss", "accuracy", "mlm_accuracy", "nsp_accuracy", "learning_rate")


class ProgressBar:
    """Shows steps, time left, loss, accuracy, rate, speed and padding on standard error.

    Args:
        num_steps: int, steps of the whole run.
        first_step: int, steps done before.
        position: int, examples seen before.
    """

    def __init__(self, num_steps, first_step=0, position=0):
        from tqdm import tqdm

        self._terminal = sys.stderr.isatty()
        self._num_steps = num_steps
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
        self._began = time.monotonic()
        self._examples = self._tokens = self._places = 0
        if first_step:
            self.write(f"goes on after step {first_step} of {num_steps}, after {position} examples")

    def update(self, step, logs, examples):
        """Moves the bar to a step.

        Args:
            step: int.
            logs: dictionary of floats, of that step.
            examples: int, examples of that step.
        """
        self._examples += examples
        self._tokens += logs.get("tokens", 0)
        self._places += logs.get("tokens", 0) / (1 - logs.get("padding_share", 0))
        if self._terminal:
            self._bar.set_postfix_str(self._line(logs), refresh=False)
            self._bar.update()
        elif step % self._every == 0:
            self.write(f"step {step} of {self._num_steps}: {self._line(logs)}")

    def show(self, step, results):
        """Writes a line with the results of an evaluation."""
        line = "  ".join(f"{name} {value:.4f}" for name, value in results.items())
        self.write(f"evaluation after step {step}: {line}")

    def write(self, line):
        """Writes a line above the bar."""
        self._bar.write(line, file=sys.stderr)

    def close(self):
        """Closes the bar."""
        self._bar.close()

    def _line(self, logs):
        shown = [f"{name} {logs[name]:.4g}" for name in _SHOWN if name in logs]
        seconds = max(time.monotonic() - self._began, 1e-9)
        shown.append(f"{self._examples / seconds:.1f} examples/s")
        if self._tokens:
            padding = 1 - self._tokens / self._places
            shown.append(f"{self._tokens / seconds:.0f} tokens/s  padding {padding:.0%}")
        return "  ".join(shown)
