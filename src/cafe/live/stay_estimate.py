"""How likely each real client is to stay, estimated from who was present when the server looked."""

from __future__ import annotations

import numpy as np

from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.presence.parameters import check_until
from cafe.rounds.jobs import Mask, Whole


class StayEstimate:
    """The rate at which each client leaves, from looks at which clients are present.

    A client that is present at two looks in a row was present between them. One that is gone at
    the second look left halfway. A client with ``n`` departures in ``s`` seconds of presence has
    the rate (n + 1) / (s + m), where ``m`` is the mean time per departure of all clients. So a
    client that has not been seen for long has the rate of all clients. Until the first departure
    of any client, all rates are 0.

    An absence that begins and ends between two looks is not seen.

    Attributes:
        departures: how often each client was seen to have left.
        seconds: how long each client was present.

    Example:
        >>> import numpy as np
        >>> from cafe.live.stay_estimate import StayEstimate
        >>> estimate = StayEstimate()
        >>> estimate.look(0.0, np.array([True, True]))
        >>> estimate.look(20.0, np.array([True, False]))
        >>> estimate.rates(np.arange(2)).tolist()
        [0.02, 0.05]
    """

    def __init__(self) -> None:
        self.departures: Whole = np.zeros(0, dtype=np.int64)
        self.seconds: Floats = np.zeros(0)
        self._here: Mask = np.zeros(0, dtype=bool)
        self._looked = 0.0

    def look(self, now: float, here: Mask) -> None:
        """Record which clients are present now. New clients come last."""
        new = len(here) - len(self.seconds)
        if new:
            self.departures = np.concatenate([self.departures, np.zeros(new, dtype=np.int64)])
            self.seconds = np.concatenate([self.seconds, np.zeros(new)])
            self._here = np.concatenate([self._here, np.zeros(new, dtype=bool)])
        passed = now - self._looked
        if passed > 0:
            left = self._here & ~here
            self.departures += left
            self.seconds += passed * (self._here & here) + 0.5 * passed * left
        self._here, self._looked = here.copy(), now

    def rates(self, clients: Indices) -> Floats:
        """Expected departures per second of presence of each client."""
        departures = int(self.departures.sum())
        if not departures:
            return np.zeros(len(clients))
        mean = float(self.seconds.sum()) / departures
        return np.asarray((self.departures[clients] + 1) / (self.seconds[clients] + mean))

    def forecast(self, clients: Indices, now: float, until: float) -> Floats:
        """The probability exp(-rate (until - now)) that each client, if present, stays so long."""
        check_until(now, until)
        rates = self.rates(clients)
        if not rates.any():  # also if ``until`` is infinite
            return np.ones(len(clients))
        return np.asarray(np.exp(-rates * (until - now)))

    def restore(self, departures: Whole, seconds: Floats) -> None:
        """Continue with the counts of an earlier server.

        The time until the next look does not count: no server saw it.
        """
        self.departures, self.seconds = departures, seconds
        self._here = np.zeros(len(seconds), dtype=bool)
