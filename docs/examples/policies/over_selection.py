"""Over-selection: invite more clients than needed, and close when enough have reported."""

from cafe.decisions import BySize, DropAll, Sample, closing
from cafe.rounds import Policy, Work


def over_selection(*, goal: int, deadline: float, extra: float = 1.3) -> Policy:
    """Invite more clients than the goal; close at the goal, or at the deadline with 80 % of it.

    Args:
        goal: reports that close a round.
        deadline: how long a round lasts at most.
        extra: how many clients are invited, as a multiple of the goal.
    """
    cohort = round(extra * goal)
    return Policy(
        "over_selection",
        Sample(cohort, Work(epochs=1, scaled=False)),
        merge=BySize(),
        carry=DropAll(),
        needs=frozenset({"sizes"}),
        cohort=cohort,
        **closing(quorum=max(round(0.8 * goal), 1), deadline=deadline, target=goal),
    )
