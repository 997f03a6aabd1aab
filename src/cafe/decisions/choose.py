"""Choose clients by a score or by a weight, and learn how long they take."""

from __future__ import annotations

import numpy as np

from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger


def highest(clients: Indices, score: Floats, count: int, rng: np.random.Generator) -> Indices:
    """The clients with the highest scores, in rising order; ties are broken at random.

    The time grows in proportion to the number of clients: nothing is sorted but the answer.

    Args:
        clients: numbers of clients.
        score: the score of each of them; it may be infinite, but not NaN.
        count: how many clients to choose; all of them if there are fewer.
        rng: the generator of the random numbers.

    Example:
        >>> import numpy as np
        >>> from cafe.decisions.choose import highest
        >>> highest(np.array([2, 5, 7]), np.array([0.1, 0.9, 0.4]), 2, np.random.default_rng(0))
        array([5, 7])
    """
    if count >= len(clients):
        return np.sort(clients)
    if count <= 0:
        return clients[:0]
    cut = np.partition(score, len(score) - count)[len(score) - count]
    above, ties = np.flatnonzero(score > cut), np.flatnonzero(score == cut)
    missing = count - len(above)
    if missing < len(ties):
        ties = rng.choice(ties, missing, replace=False, shuffle=False)
    return np.sort(clients[np.concatenate([above, ties])])


def oldest(ledger: Ledger, clients: Indices, count: int, rng: np.random.Generator) -> Indices:
    """The clients that were merged longest ago, counted in rounds; ties are broken at random.

    Args:
        ledger: what the server knows.
        clients: numbers of clients.
        count: how many clients to choose; all of them if there are fewer.
        rng: the generator of the random numbers.
    """
    return highest(clients, ledger.rounds_since(clients).astype(float), count, rng)


def weighted_draw(
    clients: Indices, weight: Floats, count: int, rng: np.random.Generator
) -> Indices:
    """Clients drawn without replacement, each draw in proportion to the weights that are left.

    Clients of weight 0 are drawn only if the others are too few.

    Args:
        clients: numbers of clients.
        weight: the weight of each of them, 0 or more.
        count: how many clients to draw; all of them if there are fewer.
        rng: the generator of the random numbers.

    Example:
        >>> import numpy as np
        >>> from cafe.decisions.choose import weighted_draw
        >>> weighted_draw(np.array([2, 5, 7]), np.array([1.0, 0, 3]), 2, np.random.default_rng(0))
        array([2, 7])
    """
    # The clients whose exponential clocks, with the weights as rates, ring first.
    clock = rng.exponential(size=len(clients))
    ringing = np.full(len(clients), np.inf)
    np.divide(clock, weight, out=ringing, where=weight > 0)
    return highest(clients, -ringing, count, rng)


def response_times(reports: Reports) -> Floats:
    """How long each report took since its broadcast, to six digits."""
    return to_digits(reports.arrived - reports.start, 6)


def to_digits(values: Floats, digits: int) -> Floats:
    """Values rounded to a number of significant digits.

    Times of real clients, and losses, differ in their last digits from those of a simulation.
    Rounded values that should be equal are equal, so that decisions that compare them agree.
    """
    size = np.abs(values)
    places = digits - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    rounded: Floats = np.round(values * up / down) * down / up
    return rounded
