"""One question to TF Serving, how it can fail, and when to ask again. What REST and gRPC have in common."""

import dataclasses
import random
import time

import numpy as np

from keras_bert_kit.errors import ServingError

# Another attempt may go better; everything else fails the same way every time. Predicting changes nothing on the
# server, so that asking twice does no harm.
_PASSING = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_STEPS = {
    "NOT_FOUND": "Check the name and the version of the model, and whether the server's log says that it was loaded.",
    "INVALID_ARGUMENT": "Serve a model that export_for_serving of this version of the kit wrote.",
    "FAILED_PRECONDITION": "Serve a model that export_for_serving of this version of the kit wrote.",
    "UNAVAILABLE": "Check the address, and that the server runs.",
    "DEADLINE_EXCEEDED": "Give more time (timeout=…) or fewer texts at once.",
}


@dataclasses.dataclass(frozen=True)
class Call:
    """A question to a server.

    Args:
        model: str, the name the model is served by.
        version: int, or None for the one that the server takes.
        signature: str.
        inputs: dict from the name of a tensor to an object array of bytes (batch,).
    """

    model: str
    version: int | None
    signature: str
    inputs: dict[str, np.ndarray]

    def __str__(self):
        version = "" if self.version is None else f", version {self.version}"
        return f"signature {self.signature!r} of the model {self.model!r}{version}"


class PassingError(ServingError):
    """A failure after which it makes sense to ask again."""


def failure(code, words, call, address):
    """The error for a call that a server did not answer.

    Args:
        code: str, name of the gRPC status code: "NOT_FOUND".
        words: str, what the server or the network said.
    """
    kind = PassingError if code in _PASSING else ServingError
    step = _STEPS.get(code, "Look at the server's log.")
    return kind(f"{address} must answer {call}. Received: {code}, {' '.join(words.split())[:300]!r}. {step}")


def ask(transport, call, deadline, retries):
    """Asks until there is an answer: after a failure that may pass, again, with longer and longer pauses.

    The pauses are random between 0 and a limit that doubles: clients that failed together do not come back together
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter, "full jitter").

    Args:
        transport: object with `run(call, deadline)`, which returns the outputs or raises `ServingError`.
        call: `Call`.
        deadline: float, the time by `time.monotonic()` after which nothing is tried any more.
        retries: int, how often to ask again.

    Returns:
        dict from the name of an output to its values.

    Raises:
        ServingError: the last failure.
    """
    for attempt in range(retries + 1):
        try:
            return transport.run(call, deadline)
        except PassingError as error:
            pause = random.uniform(0, min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt))
            if attempt == retries or time.monotonic() + pause >= deadline:
                raise ServingError(f"{error} Asked {attempt + 1} time{'s' * (attempt > 0)}.") from error
        time.sleep(pause)
