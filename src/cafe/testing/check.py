"""One call that holds a policy to the contract."""

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
    """Hold a policy to what every policy must keep to; nothing is returned if it does.

    It is run in the engine, in the slow reference, and live on a virtual wire; with clients that
    are absent, that crash, and that come and go; with response times that depend on the number of
    steps; saved and restored. All of that must give the same run.

    Args:
        policy: the policy, or a function without arguments that returns one. A function is asked
            anew for every run, so that nothing is left over from the one before.
        federation: who takes part; left out: clients whose response times suit the deadline.
        task: what is learned; left out: a small classification.
        rounds: how many each run has.
        seed: of all that is random.

    Raises:
        CheckFailed: if a check fails: which one, what differed first, and what it usually means.
        InfeasibleError: if the policy cannot go on, or no round succeeds in the first run.
        InputError: if an argument cannot be used.

    Example:
        >>> import cafe
        >>> cafe.testing.check_policy(cafe.policies.mcu(quorum=3, deadline=0.5), rounds=10)
    """
    make = _maker(policy)
    first = make()
    if federation is not None and not isinstance(federation, Federation):
        raise InputError(f"A federation is needed, such as cafe.Federation. Got {federation!r}.")
    federation = small_federation(first) if federation is None else federation
    task = small_task(federation.clients) if task is None else task
    check_whole("rounds", rounds)
    plain = CheckSetup(make, federation, task, rounds, check_seed(seed))
    contract.check_arguments(plain)  # first: an array that cannot be written ends other checks
    if not _succeeds(plain):
        raise InfeasibleError(
            f"No round of the policy {first.name} succeeded in {rounds} rounds: there was no "
            "update to compare. Give a federation whose clients are fast enough, or more rounds."
        )
    contract.check_same_seed(plain)
    contract.check_reference(plain)
    for name, hard in hardships(plain).items():
        _unless_endless(first, name, contract.check_reference, hard)
        _unless_endless(first, name, contract.check_fates, hard)
    contract.check_fates(plain)
    contract.check_time(plain)
    contract.check_evaluation(plain)
    contract.check_saving(plain)
    contract.check_future(plain)
    contract.check_live(replace(plain, rounds=min(rounds, 12)))


def _succeeds(setting: CheckSetup) -> bool:
    """Whether some round succeeds."""
    run = setting.run()
    return any(run.step().succeeded for _ in range(setting.rounds))


def small_federation(policy: Policy, clients: int | None = None) -> Federation:
    """Clients of several kinds, some of which miss a policy's deadline and some of which do not."""
    unit = 2.0 * (policy.deadline or 0.5)
    if clients is None:
        cohort = policy.cohort if isinstance(policy.cohort, int) else 0
        target = policy.target if isinstance(policy.target, int) else 0
        # So many that some rounds fail and some do not.
        clients = max(CLIENTS, (5 * policy.quorum + 2) // 3, cohort, target)
    slow = Federation.exponential(np.linspace(0.5, 3.0, clients - 4), None)
    steady = Federation(4, Constant(0.31))
    return Federation.join(slow, steady).scaled(unit)


def small_task(clients: int) -> Task:
    """A classification with three classes, in which clients hold different numbers of examples."""
    rng = Stream(5, "small task").at(0)
    data = Examples(rng.normal(size=(90, 4)), rng.integers(3, size=90))
    held = [rng.choice(90, size=2 + k % 20, replace=False) for k in range(clients)]
    return Task(data, Shards.of(held), Logistic(4, 3, l2=0.01), batch=4, rate=0.3)


def hardships(plain: CheckSetup) -> dict[str, CheckSetup]:
    """The same with clients that get lost, that take time for each step, that come and go."""
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
    """A check with lost clients, which a policy without a deadline may not survive."""
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
    if not callable(policy):
        raise InputError(
            f"check_policy takes a policy, or a function that returns one. Got {policy!r}."
        )
    try:
        signature(policy).bind()
    except TypeError:
        raise InputError(
            f"check_policy takes a policy, or a function without arguments that returns one. Got "
            f"{policy!r}, which needs arguments: call it, or wrap it, lambda: recipe(quorum=3)."
        ) from None
    except ValueError:  # it does not tell
        pass
    made = policy()
    if not isinstance(made, Policy):
        raise InputError(
            f"check_policy takes a policy, or a function that returns one. Got a function that "
            f"returns {made!r}."
        )
    return policy
