"""Retry requests while the SuperLink answers with server errors.

Any client can keep a SuperLink busy for a while, so a server error (HTTP 5xx) does not end a run
at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

MAX_OUTAGE = 60.0  # seconds without a success after which the error is raised
PAUSE = 1.0  # seconds between two attempts

T = TypeVar("T")


class Retry:
    """Tolerates server errors of the SuperLink for at most ``MAX_OUTAGE`` seconds in a row.

    Args:
        say: called with a sentence when an outage begins.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since: float | None = None  # when the current outage began

    def tolerate(self, error: Exception) -> None:
        """Return if a request may be repeated after this error; otherwise raise the error.

        Connection failures are not passed to this method: Flower repeats such requests for ever.
        """
        # Read from the error, not its type: it does not matter which HTTP library Flower uses.
        status = getattr(getattr(error, "response", None), "status_code", 0)
        if status < 500:
            raise error
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self._say(f"The SuperLink answered with an error ({status}). Retrying.")
        elif now - self._since > MAX_OUTAGE:
            raise error

    def reset(self) -> None:
        """Note that a request has succeeded: the outage is over."""
        self._since = None

    def call(self, request: Callable[[], T]) -> T:
        """Return the result of a request, repeating it while its errors are tolerated."""
        while True:
            try:
                answer = request()
            except Exception as error:
                self.tolerate(error)
                time.sleep(PAUSE)
            else:
                self.reset()
                return answer
