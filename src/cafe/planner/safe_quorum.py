"""A quorum that rejects a round in which something went wrong, and hardly ever another one."""

from __future__ import annotations

from dataclasses import replace

from cafe.planner.deadline_search import DeadlineSearch, Optimum
from cafe.planner.limits import allowed_quorums

SAFE = 0.999  # rounds that must still succeed ...
SAFE_IF_SLOW = 0.99  # ... and that must succeed if all clients are half as fast


def with_safe_quorum(search: DeadlineSearch, optimum: Optimum) -> Optimum:
    """The optimum with the largest quorum up to half the expected reports that hardly costs.

    With it, 99.9 % of rounds succeed, and 99 % would if all clients were half as fast. If fewer
    rounds do with the optimum's own quorum, that one is kept. The quorum keeps the search's limits.
    The model sees no use in it; it protects from what the model does not know, such as a failure
    of the network.
    """
    deadline, low = optimum.deadline, optimum.quorum
    slow = replace(search, federation=search.federation.scaled(2.0))

    def safe(quorum: int) -> bool:
        usual, slower = search.expect(quorum, deadline), slow.expect(quorum, deadline)
        return usual.success_probability >= SAFE and slower.success_probability >= SAFE_IF_SLOW

    _, allowed = allowed_quorums(
        lambda m: search.expect(m, deadline), *search.quorums(), search.limits
    )
    high = min(int(search.expect(low, deadline).expected_reports / 2), allowed)
    step = 1
    while low < high:  # the probabilities fall as the quorum grows; often, the largest is safe
        middle = max(high - step + 1, (low + high + 1) // 2)
        low, high = (middle, high) if safe(middle) else (low, middle - 1)
        step *= 4
    cost = search.goal.cost(search.expect(low, deadline))
    return Optimum(low, deadline, cost)
