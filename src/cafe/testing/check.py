"""``check_policy``: all checks of the contract in one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import signature

import numpy as np

from cafe.data.examples import Examples, Shards
from cafe.errors import InfeasibleError, InputError, check_whole
from cafe.federation import Federation
from cafe.latency import Constant
from cafe.learn.linear import Logistic
from cafe.presence import OnOff
from cafe.randomness import Stream, check_seed
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.policy import Policy
from cafe.task import Task
from cafe.testing import contract
from cafe.testing.contract import CheckSetup, sees_training

CLIENTS = 14


def check_policy(
    policy: Policy | Callable[[], Policy],
    *,
    federation: Federation | None = None,
    task: Task | None = None,
    rounds: int = 40,
    seed: int = 0,
) -> None:
    """Check that a policy meets the contract of all policies; raise an error if it does not.

    The policy is run in the engine, in the slow reference, and live on a virtual wire. Clients are
    absent, crash, or come and go in some runs. Step times, saving and restoring are checked too.
    Runs with the same seed must be equal.

    Args:
        policy: the policy, or a function without arguments that returns one. A function is called
            for every run, so that no state is left over from an earlier run.
        federation: the clients; if left out, clients whose response times suit the deadline.
        task: what is learned; if left out, a small classification task.
        rounds: number of rounds of each run.
        seed: seed of the runs.

    Raises:
        CheckFailed: if a check fails. The message names the check, the first difference and its
            usual cause.
        InfeasibleError: if a run cannot continue, or no round succeeds in the first run.
        InputError: if an argument cannot be used.

    Example:
        >>> import cafe
        >>> cafe.testing.check_policy(cafe.policies.mcu(quorum=3, deadline=0.5), rounds=10)
    """
    make = _maker(policy)
    first = make()
    if federation is not None and not isinstance(federation, Federation):
        raise InputError(f"federation must be a cafe.Federation. Got {federation!r}.")
    federation = small_federation(first) if federation is None else federation
    task = small_task(federation.clients) if task is None else task
    check_whole("rounds", rounds)
    plain = CheckSetup(make, federation, task, rounds, check_seed(seed))
    contract.check_arguments(
        plain
    )  # first: writing to a read-only array would fail the other checks
    if not _succeeds(plain):
        raise InfeasibleError(
            f"No round of the policy {first.name} succeeded in {rounds} rounds, so there is no "
            "update to compare. Give a federation whose clients are fast enough, or more rounds."
        )
    contract.check_same_seed(plain)
    contract.check_reference(plain)
    for name, hard in hardships(plain).items():
        _unless_endless(first, name, contract.check_reference, hard)
    contract.check_time(plain)
    contract.check_evaluation(plain)
    contract.check_saving(plain)
    contract.check_future(plain)
    contract.check_live(replace(plain, rounds=min(rounds, 12)))


def _succeeds(setting: CheckSetup) -> bool:
    """Whether a round succeeds."""
    run = setting.run()
    return any(run.step().succeeded for _ in range(setting.rounds))


def small_federation(policy: Policy, clients: int | None = None) -> Federation:
    """A federation of several kinds, in which some clients miss the policy's deadline."""
    unit = 2.0 * (policy.deadline or 0.5)
    if clients is None:
        cohort = policy.cohort if isinstance(policy.cohort, int) else 0
        target = policy.target if isinstance(policy.target, int) else 0
        # With this number of clients some rounds fail and some succeed.
        clients = max(CLIENTS, (5 * policy.quorum + 2) // 3, cohort, target)
    slow = Federation.exponential(np.linspace(0.5, 3.0, clients - 4), None)
    steady = Federation(4, Constant(0.31))
    return Federation.join(slow, steady).scaled(unit)


def small_task(clients: int) -> Task:
    """A classification task with three classes; clients hold different numbers of examples."""
    rng = Stream(5, "small task").at(0)
    data = Examples(rng.normal(size=(90, 4)), rng.integers(3, size=90))
    held = [rng.choice(90, size=2 + k % 20, replace=False) for k in range(clients)]
    return Task(data, Shards.of(held), Logistic(4, 3, l2=0.01), batch=4, rate=0.3)


def hardships(plain: CheckSetup) -> dict[str, CheckSetup]:
    """Harder variants of a setup by name: lost clients, step times, presence, no task."""
    who, unit = plain.federation, 2.0 * (plain.make().deadline or 0.5)
    some_absent = np.broadcast_to(who.availability, who.kinds) * 0.8
    lossy = replace(who, availability=some_absent if who.kinds > 1 else float(some_absent[0]))
    found = {"crashes": replace(plain, federation=lossy, crash=0.2)}
    if not who.has_step_time:
        found["per_step"] = replace(plain, federation=replace(who, per_step=0.05 * unit))
    if who.presence is None:
        coming = replace(who, presence=OnOff(on=2.0 * unit, off=0.5 * unit))
        found["presence"] = replace(plain, federation=coming)
    if not sees_training(plain.make()):
        found["books alone"] = replace(plain, task=None, crash=0.1, federation=lossy)
    return found


def _unless_endless(
    policy: Policy, name: str, check: Callable[[CheckSetup], None], setting: CheckSetup
) -> None:
    """Run a check, except where a policy without a deadline would wait for lost clients."""
    if name != "per_step" and policy.deadline is None and policy.target == "all":
        return
    try:
        check(setting)
    except InfeasibleError:
        if policy.deadline is not None:
            raise


def _maker(policy: Policy | Callable[[], Policy]) -> Callable[[], Policy]:
    if isinstance(policy, Policy):
        return lambda: policy
    _check_one_level(policy)
    if not callable(policy):
        raise InputError(
            f"check_policy needs a policy, or a function that returns one. Got {policy!r}."
        )
    try:
        signature(policy).bind()
    except TypeError:
        raise InputError(
            f"check_policy needs a policy, or a function without arguments that returns one. Got "
            f"{policy!r}, which needs arguments. Call it, or wrap it: lambda: recipe(quorum=3)."
        ) from None
    except ValueError:  # the signature is unknown
        pass
    made = policy()
    _check_one_level(made)
    if not isinstance(made, Policy):
        raise InputError(
            "check_policy needs a policy, or a function that returns one. Got a function that "
            f"returns {made!r}."
        )
    return policy


def _check_one_level(given: object) -> None:
    if isinstance(given, Hierarchy):
        raise InputError(
            f"check_policy checks policies of one level. Got the hierarchy {given}, which has two "
            "levels: check the policies hierarchy.edge and hierarchy.cloud."
        )
