"""A quorum that rejects a round in which something went wrong, and hardly ever another one."""

from __future__ import annotations

from cafe.planner.deadline_search import DeadlineSearch, Optimum
from cafe.planner.limits import allowed_quorums

SAFE = 0.999  # rounds that must still succeed


def with_safe_quorum(search: DeadlineSearch, optimum: Optimum) -> Optimum:
    """The optimum with the largest quorum up to half the expected reports that hardly costs.

    At least 99.9 % of rounds succeed with it, unless fewer do with the optimum's own quorum. It
    keeps the search's limits. The model sees no use in such a quorum; it protects from rounds that
    the model does not know, such as a failure of the network.
    """
    deadline = optimum.deadline
    low, high = allowed_quorums(
        lambda m: search.expect(m, deadline), *search.quorums(), search.limits
    )
    first = search.expect(optimum.quorum, deadline)
    quorum = max(min(int(first.expected_reports / 2), high), low, optimum.quorum)
    while quorum > optimum.quorum and search.expect(quorum, deadline).success_probability < SAFE:
        quorum -= 1
    cost = search.goal.cost(search.expect(quorum, deadline))
    return Optimum(quorum, deadline, cost)
