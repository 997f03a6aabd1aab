"""The next changes of presence of all clients at once, so that a server need not ask one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cafe.latency.base import Floats


class Changes(NamedTuple):
    """Changes of presence, complete up to the last of these times.

    Attributes:
        times: different times, in rising order.
        more: by how much the number of present clients grows at each of them; negative if more
            clients leave than come.
    """

    times: Floats
    more: NDArray[np.int64]


@runtime_checkable
class ChangesAhead(Protocol):
    """The state of a presence that knows its next changes. It is optional, and saves time.

    Without it a server asks for one change after the other, and each costs a pass over all clients.
    """

    def changes(self, now: float) -> Changes:
        """The next changes after ``now``, as many as are found in a few passes over all clients."""


def collect_changes(
    now: float, until: float, comes: Sequence[Floats], leaves: Sequence[Floats]
) -> Changes:
    """The changes after ``now`` and before ``until``.

    Args:
        now: changes at this time or earlier are left out.
        until: changes at this time or later are left out.
        comes: arrays of times at each of which a client comes.
        leaves: arrays of times at each of which a client leaves.
    """
    each = [*comes, *leaves]
    times = np.concatenate(each) if each else np.empty(0)
    came = sum(len(some) for some in comes)
    signs = np.where(np.arange(len(times)) < came, 1.0, -1.0)
    inside = (times > now) & (times < until)
    distinct, place = np.unique(times[inside], return_inverse=True)
    more = np.bincount(place, signs[inside], len(distinct))
    return Changes(distinct, more.astype(np.int64))
