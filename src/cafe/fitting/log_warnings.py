"""Sentences about a log that is probably not complete."""

from __future__ import annotations

import numpy as np

from cafe.fitting.observations import Observations

_FEW = 5  # with fewer entries it is no surprise that none is a missed deadline


def warn_without_misses(seen: Observations) -> list[str]:
    """A warning if no entry is a missed deadline: misses may have been left out of the log.

    Example:
        >>> import cafe
        >>> from cafe.fitting.log_warnings import warn_without_misses
        >>> seen = cafe.Observations([1.0, 5.0, 2.0, 5.0, 3.0], deadline=5.0)
        >>> print(warn_without_misses(seen)[0])  # doctest: +NORMALIZE_WHITESPACE
        No row is a missed deadline, and 2 rows took as long as their deadline. If these clients
        did not report, leave their response time empty: otherwise every client looks faster than
        it is.
    """
    if len(seen) < _FEW or not seen.reported.all():
        return []
    at_deadline = int(np.sum(seen.seconds >= 0.999 * seen.deadline))
    if at_deadline > 1:
        return [
            f"No row is a missed deadline, and {at_deadline:,} rows took as long as their "
            "deadline. If these clients did not report, leave their response time empty: otherwise "
            "every client looks faster than it is."
        ]
    return [
        "No row is a missed deadline. Does the log leave them out? Then every client looks faster "
        "than it is. Add a row with an empty response time and the deadline for each client that "
        "did not report."
    ]
