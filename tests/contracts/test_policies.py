"""What every policy must keep to, recipes and asynchronous schemes alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe import reference
from cafe.data.examples import Examples, Shards
from cafe.decisions import Everyone, Fraction, Mean, Sample
from cafe.engine import Run
from cafe.engine.state import restore, save
from cafe.errors import InputError
from cafe.learn.linear import Logistic
from cafe.learn.server import Adam, Momentum
from cafe.policies import agu, awu, fedavg, mcu, recipes
from cafe.rounds import (
    COMMIT,
    DROP,
    HOLD,
    LOCAL,
    RUN,
    Carried,
    Closed,
    History,
    Invitation,
    Jobs,
    Ledger,
    Merge,
    Policy,
    Reports,
    Verdict,
    Wait,
    Waiting,
    Work,
)
from cafe.theory import LearningRate

CLIENTS = 14


@dataclass(frozen=True)
class AtReports:
    """Commit at the n-th report."""

    reports: int

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        return COMMIT if waiting.reports >= self.reports else Wait(reports=self.reports)


def fedbuff(goal: int) -> Policy:
    """Refill, commit at the goal-th report, damp by staleness, let the others run."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(1 / np.sqrt(1.0 + ledger.version - reports.version) / goal)

    return Policy("fedbuff", Sample(9), AtReports(goal), merge, lambda *_: Carried(RUN))


def fedasync(share: float) -> Policy:
    """Mix every model in as it comes."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        alpha = share / np.sqrt(1.0 + ledger.version - reports.version)
        return Merge(alpha, keep=1.0 - float(alpha.sum()), of="model")

    return Policy("fedasync", Everyone(), AtReports(1), merge, lambda *_: Carried(RUN))


def memory(deadline: float) -> Policy:
    """Everybody's last update counts, fresh or not (as in anarchic learning)."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        over = ledger.now >= ledger.opened + deadline
        return COMMIT if over and waiting.reports else Wait(ledger.opened + deadline + 9 * over)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.full(len(reports), 1.0 / ledger.clients))

    return Policy("memory", Everyone(), close, merge, lambda *_: Carried(HOLD, kept=True))


def tolerant(deadline: float, lag: int) -> Policy:
    """Clients go on from their own models until these are too old (as SAFA does)."""

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        young = ledger.version - closed.jobs.version < lag
        codes = np.where(closed.reported, np.where(young, int(LOCAL), int(DROP)), int(RUN))
        return Carried(codes, kept=ledger.round % 3 > 0)

    close = mcu(quorum=3, deadline=deadline).close
    return Policy("tolerant", Everyone(), close, Mean(), carry)


def counting(goal: int) -> Policy:
    """Waits for more reports after every round; its state is how often it has succeeded."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        wanted = 1 + (ledger.state or 0) % goal
        return COMMIT if waiting.reports >= wanted else Wait(reports=wanted)

    return Policy(
        "counting",
        Everyone(),
        close,
        Mean(),
        lambda *_: Carried(DROP),
        observe=lambda ledger, outcome, closed: (ledger.state or 0) + int(outcome.succeeded),
    )


def strict(lag: int) -> Policy:
    """Asynchronous, and refuses what is too stale: some commits use nothing at all."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.where(ledger.version - reports.version > lag, 0.0, 0.5), keep=0.999)

    return Policy("strict", Everyone(), AtReports(1), merge, lambda *_: Carried(RUN))


def greedy(deadline: float) -> Policy:
    """Keeps everything that can be kept, and weighs by staleness."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(1.0 / (2.0 + ledger.version - reports.version) / len(reports))

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        codes = np.where(closed.reported, int(HOLD | LOCAL), int(RUN))
        return Carried(codes, kept=closed.jobs.client.size % 2 == 0)

    return Policy("greedy", Everyone(), mcu(quorum=4, deadline=deadline).close, merge, carry)


def learning() -> Policy:
    """Remembers how long clients took, as schemes that choose by speed do."""

    def observe(ledger: Ledger, outcome: Any, closed: Closed) -> dict[str, float]:
        took = closed.arrived - closed.jobs.start
        known = dict(zip(closed.jobs.client.tolist(), took.tolist(), strict=True))
        return (ledger.state or {}) | {str(k): t for k, t in known.items() if t == t}

    def invite(ledger: Ledger, rng: np.random.Generator) -> Any:
        seen = ledger.state or {}
        slow = sorted(seen, key=lambda client: seen[client])[len(seen) // 2 :]
        idle = ledger.idle
        some = idle[~np.isin(idle, np.array(slow, dtype=int))]
        return Invitation(some if len(some) else idle)

    base = mcu(quorum=1, deadline=0.5)
    return Policy("learning", invite, base.close, base.merge, base.carry, observe)


def clipped(norm: float) -> Policy:
    """Looks at updates and shortens the long ones."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        lengths = np.linalg.norm(reports.updates.astype(float), axis=1)
        return Merge(np.minimum(1.0, norm / lengths) / len(reports))

    base = mcu(quorum=2, deadline=0.6)
    needs = frozenset({"updates"})
    return Policy("clipped", base.invite, base.close, merge, base.carry, needs=needs)


RECIPES: dict[str, list[Policy]] = {
    "mcu": [
        mcu(quorum=1, deadline=0.5),
        mcu(quorum=6, deadline=0.5),
        mcu(quorum=3, deadline=0.7, target=5),
        mcu(quorum=3, deadline=3.0, close_when_all=True, cohort=6),
        mcu(quorum=2, deadline=0.4, late="keep", steps=3),
        mcu(quorum=1, deadline=0.03, late="keep"),
    ],
    "awu": [
        awu(deadline=0.5),
        awu(deadline=0.4, weight="unbiased", late="keep"),
        awu(deadline=0.4, weight="linear", cohort=9),
        awu(deadline=0.6, weight="age", unit="rounds", quorum=5),
        awu(deadline=0.6, weight=np.sqrt, target=8, steps=2),
    ],
    "agu": [
        agu(quorum=6, deadline=0.4),
        agu(quorum=6, deadline=0.4, pool="union"),
        agu(quorum=5, deadline=0.4, pool="union", cohort=9, steps=2),
        agu(quorum=6, deadline=1.0, close_when_all=True, target=9),
    ],
    "fedavg": [
        fedavg(fraction=0.3, deadline=1.0),
        fedavg(fraction=0.5, epochs=2, deadline=0.8, divisor="all"),
        fedavg(fraction=0.4, steps=3, deadline=2.0, quorum=3),
    ],
}
OTHERS = [
    fedbuff(3), fedasync(0.5), memory(0.5), tolerant(0.5, 3), counting(4), strict(2), greedy(0.4),
    learning(),
]  # fmt: skip
EVERY = [policy for some in RECIPES.values() for policy in some] + OTHERS
NAMES = [f"{k}-{policy.name}" for k, policy in enumerate(EVERY)]
every_policy = pytest.mark.parametrize("policy", EVERY, ids=NAMES)


def federation(availability: float = 1.0) -> cafe.Federation:
    slow = cafe.Federation.exponential(np.linspace(0.5, 3.0, CLIENTS - 4), None)
    steady = cafe.Federation(4, cafe.Constant(0.4), availability=availability)
    return cafe.Federation.join(slow, steady)


def task(**changes: Any) -> cafe.Task:
    rng = np.random.default_rng(5)
    data = Examples(rng.normal(size=(90, 4)), rng.integers(3, size=90))
    shards = Shards.of([rng.choice(90, size=2 + k, replace=False) for k in range(CLIENTS)])
    given: dict[str, Any] = {"batch": 4, "rate": 0.3, "learner": Logistic(4, 3, l2=0.01)} | changes
    return cafe.Task(data, shards, **given)


def assert_same_books(ours: History, theirs: History) -> None:
    for name, column in ours.by_round.items():
        np.testing.assert_array_equal(column, theirs.by_round[name], err_msg=name)
    for name in ("age_by_client", "merged_by_client", "weight_by_client"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    assert ours.open_jobs == theirs.open_jobs


def assert_same_bytes(ours: History, theirs: History) -> None:
    assert_same_books(ours, theirs)
    assert ours.model is not None
    assert theirs.model is not None
    assert ours.model.tobytes() == theirs.model.tobytes()


def test_every_recipe_is_examined() -> None:
    assert recipes().keys() == RECIPES.keys()
    assert all(p.name == name for name, some in RECIPES.items() for p in some)
    assert recipes() == {name: getattr(cafe.policies, name) for name in RECIPES}


@every_policy
@pytest.mark.parametrize(("crash", "availability"), [(0.0, 1.0), (0.25, 0.7)])
def test_engine_and_reference_keep_the_same_books(
    policy: Policy, crash: float, availability: float
) -> None:
    who = federation(availability)
    ours = cafe.simulate(who, policy, rounds=70, seed=3, crash=crash)
    theirs = reference.simulate(who, policy, rounds=70, seed=3, crash=crash)
    assert_same_books(ours, theirs)
    assert ours.updates > 0


@every_policy
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rate": LearningRate(3.0, 9.0), "per": "update", "server": Adam(rate=0.05, yogi=True)},
        {"batch": None, "rate": LearningRate(3.0, 9.0), "server": Momentum(0.5, 0.5)},
    ],
    ids=["plain", "yogi", "momentum"],
)
def test_engine_and_reference_learn_the_same(policy: Policy, changes: dict[str, Any]) -> None:
    who, what = federation(0.8), task(**changes)
    ours = cafe.simulate(who, policy, what, rounds=40, seed=11, crash=0.1)
    theirs = reference.simulate(who, policy, what, rounds=40, seed=11, crash=0.1)
    assert_same_books(ours, theirs)
    assert ours.model is not None
    assert theirs.model is not None
    start = Run(who, policy, what, seed=11).history().model
    assert start is not None
    moved = np.abs(theirs.model - start).max()
    assert moved > 0.01
    np.testing.assert_allclose(ours.model, theirs.model, rtol=1e-5, atol=1e-5 * moved)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)


@every_policy
def test_every_job_has_one_fate(policy: Policy) -> None:
    history = cafe.simulate(federation(0.8), policy, rounds=150, seed=2, crash=0.1)
    assert sum(history.fates.values()) + history.open_jobs == history.jobs
    assert history.fates["refused"] == 0
    assert history.fates["crashed"] > 0
    assert history.fates["absent"] > 0
    assert history.merged_by_client.sum() == history.reports_used


@every_policy
def test_time_is_accounted_for(policy: Policy) -> None:
    history = cafe.simulate(federation(), policy, rounds=100, seed=2)
    rounds = history.by_round
    np.testing.assert_array_equal(rounds["opened"][1:], rounds["closed"][:-1])
    assert np.all(rounds["processing_waste"] <= rounds["waste"] + 1e-9)
    assert history.processing_waste <= history.client_seconds + 1e-9
    assert np.all(history.age_by_client > 0)
    assert np.all(history.age_by_client <= history.virtual_time)


@every_policy
def test_dropout_applies_once(policy: Policy) -> None:
    """Each invited client is absent with its own probability, and crashes if it is not."""
    who = cafe.Federation(CLIENTS, cafe.Exponential(50.0), availability=0.7)
    history = cafe.simulate(who, policy, rounds=1500, seed=4, crash=0.2)
    jobs = history.jobs
    for fate, share in (("absent", 0.3), ("crashed", 0.7 * 0.2)):
        # A policy that closes at once counts some that would crash later as cancelled.
        error = 5 * np.sqrt(share * (1 - share) / jobs)
        measured = history.fates[fate] / jobs
        assert measured < share + error
        if history.fates["cancelled"] + history.fates["stale"] == 0 and not history.open_jobs:
            assert measured > share - error


@every_policy
def test_same_seed_same_bytes_whatever_ran_before(policy: Policy) -> None:
    who, what = federation(), task()
    first = cafe.simulate(who, policy, what, rounds=25, seed=1)
    other = cafe.simulate(who, policy, what, rounds=25, seed=2)
    again = cafe.simulate(who, policy, what, rounds=25, seed=1)
    assert_same_bytes(first, again)
    assert not np.array_equal(first.by_round["closed"], other.by_round["closed"]) or (
        not np.array_equal(first.by_round["work"], other.by_round["work"])
    )


@every_policy
def test_evaluation_changes_nothing(policy: Policy) -> None:
    who, what = federation(), task()
    seldom = cafe.simulate(who, policy, what, rounds=30, seed=1, evaluate_every=30)
    often = cafe.simulate(who, policy, what, rounds=30, seed=1, evaluate_every=1)
    assert_same_bytes(seldom, often)
    assert seldom.curve is not None
    assert often.curve is not None
    assert (len(seldom.curve), len(often.curve)) == (1, 30)
    assert seldom.loss == often.loss


@every_policy
def test_a_task_does_not_change_the_books(policy: Policy) -> None:
    what = task()
    who = cafe.Federation.join(
        *(
            cafe.Federation(1, cafe.Exponential(1.0 + k / 9), 0.9, int(n))
            for k, n in enumerate(what.shards.counts)
        )
    )
    trained = cafe.simulate(who, policy, what, rounds=40, seed=1)
    assert_same_books(trained, cafe.simulate(who, policy, rounds=40, seed=1))


@every_policy
@pytest.mark.parametrize("after", [0, 1, 7, 18])
def test_a_run_put_down_and_taken_up_is_the_same_run(policy: Policy, after: int) -> None:
    who, what = federation(0.8), task(server=Adam())
    whole = Run(who, policy, what, seed=6, crash=0.1)
    for k in range(30):
        if k == after:
            put_down = save(whole)
        whole.step()
        whole.evaluate()
    taken_up = Run(who, policy, what, seed=6, crash=0.1)
    restore(taken_up, put_down)
    for _ in range(after, 30):
        taken_up.step()
        taken_up.evaluate()
    assert_same_bytes(whole.history(), taken_up.history())
    assert {k: v.tobytes() for k, v in save(whole).items()} == {
        k: v.tobytes() for k, v in save(taken_up).items()
    }


@every_policy
def test_decisions_leave_the_ledger_alone(policy: Policy) -> None:
    run = Run(federation(), policy, seed=1)

    def frozen(decision: Callable[..., Any]) -> Callable[..., Any]:
        def decide(ledger: Ledger, given: Any) -> Any:
            before = {k: v.copy() for k, v in vars(ledger).items() if isinstance(v, np.ndarray)}
            answer = decision(ledger, given)
            for name, column in before.items():
                np.testing.assert_array_equal(column, getattr(ledger, name))
            return answer

        return decide

    watched: Any = {n: frozen(getattr(policy, n)) for n in ("invite", "close", "merge", "carry")}
    run.policy = replace(policy, **watched)
    for _ in range(30):
        run.step()


@pytest.mark.parametrize("policy", [p for some in RECIPES.values() for p in some], ids=str)
def test_recipes_are_values_that_say_what_they_are(policy: Policy) -> None:
    recipe = recipes()[policy.name]
    again = recipe(**policy.parameters)
    assert again == policy or policy.name == "awu"
    assert str(again) == str(policy)
    assert policy.parameters.items() >= {"deadline": policy.parameters["deadline"]}.items()


@pytest.mark.parametrize("recipe", recipes().values(), ids=list(recipes()))
def test_misspelt_parameters_are_refused(recipe: Callable[..., Policy]) -> None:
    with pytest.raises(TypeError, match="dedline"):
        recipe(dedline=1.0)


def test_what_a_policy_needs_must_be_there() -> None:
    with pytest.raises(InputError, match="needs to see updates"):
        cafe.simulate(federation(), clipped(0.1), rounds=3)
    with pytest.raises(InputError, match="may need"):
        replace(mcu(quorum=1, deadline=1.0), needs=frozenset({"horoscope"}))


def test_a_policy_that_needs_updates_sees_them() -> None:
    who, what = federation(), task()
    ours = cafe.simulate(who, clipped(0.05), what, rounds=30, seed=1)
    theirs = reference.simulate(who, clipped(0.05), what, rounds=30, seed=1)
    assert ours.model is not None
    assert theirs.model is not None
    np.testing.assert_allclose(ours.model, theirs.model, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.weight_by_client, theirs.weight_by_client, rtol=1e-4)
    loose = cafe.simulate(who, clipped(1e9), what, rounds=30, seed=1)
    plain = cafe.simulate(who, mcu(quorum=2, deadline=0.6), what, rounds=30, seed=1)
    assert loose.model is not None
    assert plain.model is not None
    np.testing.assert_allclose(loose.model, plain.model, rtol=1e-4, atol=1e-5)
    assert np.abs(ours.model - plain.model).max() > 1e-3


def test_a_policy_that_needs_losses_sees_them() -> None:
    seen: list[Any] = []

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(reports.losses)
        return Mean()(ledger, reports)

    base = mcu(quorum=1, deadline=0.5)
    what = task(batch=None)
    policy = Policy("nosy", base.invite, base.close, merge, base.carry, needs=frozenset({"losses"}))
    cafe.simulate(federation(), policy, what, rounds=1, seed=1)
    # From the start, where all outputs are 0, each of three classes has probability 1/3.
    np.testing.assert_allclose(seen[0], np.log(3), rtol=1e-5)
    seen.clear()
    cafe.simulate(federation(), policy, what, rounds=9, seed=1)
    ours, seen = seen, []
    reference.simulate(federation(), policy, what, rounds=9, seed=1)
    for mine, theirs in zip(ours, seen, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@every_policy
def test_decisions_cannot_see_the_future(policy: Policy) -> None:
    """They are given what is declared, and no arrival that has not come yet."""
    now = 0.0

    def look(given: Any, kind: Any) -> None:
        assert type(given) is kind
        if kind is Closed:
            assert type(given.jobs) is Jobs
            times = given.arrived[given.reported]
            assert np.isnan(given.arrived[~given.reported]).all()
        else:
            times = given.arrived
        assert np.all(times <= now)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        nonlocal now
        now = ledger.now
        look(reports, Reports)
        return policy.merge(ledger, reports)

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        nonlocal now
        now = ledger.now
        look(closed, Closed)
        return policy.carry(ledger, closed)

    watched = replace(policy, merge=merge, carry=carry)
    cafe.simulate(federation(0.9), watched, rounds=40, seed=2, crash=0.1)


@pytest.mark.parametrize("answer", [Wait(until=-1.0), Wait(float("nan")), Wait(reports=1)])
def test_time_does_not_run_backwards(answer: Wait) -> None:
    asked = 0

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        nonlocal asked
        asked += 1
        return Wait(reports=4) if asked == 1 else answer

    policy = replace(mcu(quorum=1, deadline=0.5), close=close)
    with pytest.raises(InputError, match="waits for"):
        cafe.simulate(federation(), policy, rounds=2)
    asked = 0
    with pytest.raises(InputError, match="waits for"):
        reference.simulate(federation(), policy, rounds=2)


@pytest.mark.parametrize("clients", [[-1, 0], [0, 99], [0, 0], [1, 0], [0.5, 1.7]])
def test_invitations_are_checked(clients: list[Any]) -> None:
    policy = replace(mcu(quorum=1, deadline=0.5), invite=lambda *_: Invitation(np.array(clients)))
    with pytest.raises(InputError, match="An invitation names clients from 0 to 13"):
        cafe.simulate(federation(), policy, rounds=1)


def test_a_state_must_survive_being_saved() -> None:
    policy = replace(mcu(quorum=1, deadline=0.5), observe=lambda *_: {0: 1.0})
    run = Run(federation(), policy)
    run.step()
    with pytest.raises(InputError, match="JSON does not give back"):
        save(run)


def test_a_run_is_taken_up_by_its_like_only() -> None:
    kept = save(Run(federation(), mcu(quorum=1, deadline=0.5), seed=1))
    for other in (
        Run(federation(), mcu(quorum=1, deadline=0.5), seed=2),
        Run(federation(), mcu(quorum=2, deadline=0.5), seed=1),
        Run(federation(), mcu(quorum=1, deadline=0.5), seed=1, crash=0.1),
        Run(cafe.Federation(3, cafe.Exponential(1.0)), mcu(quorum=1, deadline=0.5), seed=1),
        Run(federation(), mcu(quorum=1, deadline=0.5), task(), seed=1),
    ):
        with pytest.raises(InputError, match="saved run"):
            restore(other, kept)


def test_work_may_differ_from_round_to_round() -> None:
    def invite(ledger: Ledger, rng: np.random.Generator) -> Any:
        work = Work(1 + ledger.round % 3) if ledger.round % 4 else Work(epochs=1, scaled=False)
        return Fraction(0.5, work)(ledger, rng)

    base = mcu(quorum=1, deadline=0.4, late="keep")
    policy = Policy("moody", invite, base.close, base.merge, base.carry)
    who, what = federation(), task()
    ours = cafe.simulate(who, policy, what, rounds=50, seed=1)
    theirs = reference.simulate(who, policy, what, rounds=50, seed=1)
    assert_same_books(ours, theirs)
    assert ours.fates["stale"] > 0
    assert ours.model is not None
    assert theirs.model is not None
    np.testing.assert_allclose(ours.model, theirs.model, rtol=1e-4, atol=1e-5)


def test_work_may_differ_within_a_local_model() -> None:
    def invite(ledger: Ledger, rng: np.random.Generator) -> Any:
        return Everyone(Work(epochs=1) if ledger.round % 2 else Work(2))(ledger, rng)

    base = agu(quorum=9, deadline=0.4, pool="union")
    policy = Policy("moodier", invite, base.close, base.merge, base.carry)
    who, what = federation(), task()
    ours = cafe.simulate(who, policy, what, rounds=50, seed=1)
    theirs = reference.simulate(who, policy, what, rounds=50, seed=1)
    assert_same_books(ours, theirs)
    assert ours.updates < 25
    np.testing.assert_allclose(ours.model, theirs.model, rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]


def test_updates_of_nobody_are_none() -> None:
    """A policy that looks at updates may commit a round to which nobody has reported."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        until = ledger.opened + 0.1
        return COMMIT if ledger.now >= until else Wait(until)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        seen.append(reports.updates.shape)
        return Merge(np.zeros(len(reports)))

    base, needs = clipped(1.0), frozenset({"updates"})
    policy = Policy("patient", base.invite, close, merge, base.carry, needs=needs)
    who, what = cafe.Federation(CLIENTS, cafe.Constant(1.0)), task()
    size = len(what.learner.save(what.learner.start(np.random.default_rng(0))))
    for engine in (cafe.simulate, reference.simulate):
        seen: list[tuple[int, ...]] = []
        assert engine(who, policy, what, rounds=3, seed=1).updates == 3
        assert seen == [(0, size)] * 3
