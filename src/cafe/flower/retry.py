"""Which errors of the SuperLink are temporary, and how long they are tolerated.

Any client can keep a SuperLink busy for a while, and networks fail for moments. So a server error
(HTTP 5xx) or a failed connection does not end a run at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from cafe.errors import CafeError

# Seconds without a success after which a run is stopped. The SuperLink ends a run 60 s after its
# last heartbeat; CAFe sends one every 5 s (cafe.flower.retry_interceptor). So a shorter outage does
# not end a run, whenever it begins.
MAX_OUTAGE = 50.0
PAUSE = 1.0  # seconds between two attempts
_TLS = ("certificate", "ssl", "tls")  # words in errors that another attempt does not remove

T = TypeVar("T")


class SuperLinkError(CafeError):
    """The SuperLink could not be used for so long that the run was stopped."""


class Retry:
    """Tolerates temporary errors of the SuperLink for at most ``MAX_OUTAGE`` seconds in a row.

    Args:
        say: called with a sentence when an outage begins.

    Attributes:
        errors: how many errors were tolerated so far.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.errors = 0
        self._since: float | None = None  # when the current outage began

    def tolerate(self, error: Exception) -> None:
        """Return if a request may be repeated after this error.

        Raises:
            SuperLinkError: if the outage has lasted too long.
            Exception: the error itself, if it is not temporary.
        """
        why = temporary(error)
        if not why:
            raise error
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self._say(f"The SuperLink {why}. Retrying.")
        elif now - self._since > MAX_OUTAGE:
            raise SuperLinkError(explain_outage(now - self._since, why)) from error
        self.errors += 1

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


def temporary(error: Exception) -> str:
    """What the SuperLink did, if another attempt may succeed; empty if none would.

    Example:
        >>> from cafe.flower.retry import temporary
        >>> temporary(ValueError("not an error of a connection"))
        ''
    """
    # Read from the error, not its type: it does not matter which HTTP library Flower uses.
    status = getattr(getattr(error, "response", None), "status_code", 0)
    if status >= 500:
        return f"answered with an error ({status})"
    transport = any(each.__name__ == "TransportError" for each in type(error).__mro__)
    if transport and not any(word in f"{error}".lower() for word in _TLS):
        return f"cannot be reached ({type(error).__name__})"
    return ""


def explain_outage(seconds: float, why: str) -> str:
    """A sentence for the end of a run after an outage: the reason, and what to do.

    Example:
        >>> from cafe.flower.retry import explain_outage
        >>> print(explain_outage(51.0, "answered with an error (500)"))
        No request to the SuperLink succeeded for 51 s: it answered with an error (500). Check the
        SuperLink's log and its disk. Then submit the app again with the same folder: the run is
        resumed.
    """
    return (
        f"No request to the SuperLink succeeded for {seconds:.0f} s: it {why}. Check the "
        "SuperLink's log and its disk. Then submit the app again with the same folder: the run is "
        "resumed."
    )
