"""A SuperLink that answers with errors: any client can keep it busy for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LONGEST = 60.0  # seconds for which it may answer with nothing but errors
AGAIN = 1.0  # seconds between two tries

T = TypeVar("T")


class Busy:
    """Bears with errors of the SuperLink's, but not for ever.

    Args:
        say: told, once for each time that it begins.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._since: float | None = None

    def bear(self, error: Exception) -> None:
        """Take an error for "not yet"; raise it if it is of another kind, or has gone on too long.

        Flower itself tries again, for ever, where nobody answers or a proxy says so.
        """
        status = getattr(getattr(error, "response", None), "status_code", 0)
        if status < 500:  # of whatever library it is that Flower uses: an answer, but a refusal
            raise error
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self._say(f"The SuperLink answers with an error ({status}): it is asked again.")
        elif now - self._since > LONGEST:
            raise error

    def over(self) -> None:
        """There was an answer."""
        self._since = None

    def insist(self, ask: Callable[[], T]) -> T:
        """Ask until there is an answer."""
        while True:
            try:
                answer = ask()
            except Exception as error:
                self.bear(error)
                time.sleep(AGAIN)
            else:
                self.over()
                return answer
