"""`StopSignal`: a request to stop (SIGTERM) waits until the step is done and the state is saved."""

import contextlib
import signal
import threading


class StopSignal(contextlib.AbstractContextManager):
    """While the block runs, SIGTERM ends nothing: it sets `requested`, and the loop looks at it between steps.

    Attributes:
        requested: bool.
    """

    def __init__(self):
        self.requested = False
        self._before = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # only there may Python handle signals
            self._before = signal.signal(signal.SIGTERM, self._request)
        return self

    def __exit__(self, *_):
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _request(self, *_):
        self.requested = True
