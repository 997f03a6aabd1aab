"""Which policies unchanged ClientApps can serve, and why others are refused."""

from __future__ import annotations

from cafe.errors import InputError
from cafe.live.job_records import changed_fields
from cafe.live.wire import Order
from cafe.rounds.jobs import Work
from cafe.rounds.policy import NEEDS, Policy

# What the server knows without the client's help, or from Flower's usual replies.
KNOWN = frozenset({"forecasts", "sizes", "scores", "updates"})
INSTEAD = (
    "Use CAFe's client for it (cafe.flower.client and cafe.flower.server), or another policy, such "
    "as cafe.policies.mcu(quorum=3, deadline=8.0)."
)


def check_policy(policy: Policy) -> None:
    """Raise an error if a policy needs something that only CAFe's own client does.

    Example:
        >>> import cafe
        >>> from cafe.flower.stock_policy import check_policy
        >>> check_policy(cafe.policies.mcu(quorum=3, deadline=8.0))
    """
    missing = sorted(policy.needs - KNOWN)
    if missing:
        need = missing[0]
        raise InputError(
            f"The policy {policy.name} needs {need} ({NEEDS[need]}). An unchanged ClientApp of "
            f"Flower does not provide them. {INSTEAD}"
        )
    work = getattr(policy.invite, "work", None)
    if isinstance(work, Work):
        check_work(work)


def check_work(work: Work) -> None:
    """Raise an error if a client is asked for more than the training that its app does."""
    asked = changed_fields(work)
    if asked.get("epochs") == 1:
        del asked["epochs"]
    asked.pop("scaled", None)  # no ClientApp scales its objective
    if asked:
        shown = ", ".join(f"{name}={value}" for name, value in asked.items())
        raise InputError(
            f"The policy asks its clients for {shown}. An unchanged ClientApp of Flower decides by "
            "itself how it trains: leave this out of the policy, and set it in the app, for "
            f"example by train_config. {INSTEAD}"
        )


def check_order(order: Order) -> None:
    """Raise an error if an order asks for something that Flower's usual messages do not carry."""
    check_work(order.work)
    for name, given in (
        ("to continue from its local model", order.after is not None or order.carry),
        ("to add a vector to its gradients", order.offset is not None),
        ("to leave some parameters unchanged", order.frozen is not None),
    ):
        if given:
            raise InputError(
                f"The policy asks a client {name}. An unchanged ClientApp of Flower cannot do "
                f"this. {INSTEAD}"
            )
