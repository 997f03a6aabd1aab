"""The sampling schemes of Li et al.: weights by hand, and unbiased weights over many draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.learn.schedules import LearningRate
from cafe.live.wire import Order, Report
from cafe.policies import li_sampling
from cafe.presence import OnOff
from cafe.reference import Reference
from cafe.rounds import Ledger, Merge, Reports
from cafe.rounds.ledger import LedgerColumns
from tests.support.federations import taking
from tests.support.jobs import reported
from tests.support.vectors import models, points
from tests.support.virtual_runs import VirtualWire, exponential, live

SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 3])


def weights(policy: Any, ledger: Ledger, rounds: int) -> Any:
    """The weight of each client in each of many rounds in which all invited clients report."""
    rng, found = np.random.default_rng(7), np.zeros((rounds, ledger.clients))
    one = reported([0])
    for row in found:
        invited = policy.invite(ledger, rng)
        note = np.zeros(len(invited.clients)) if invited.note is None else invited.note
        row[invited.clients] = policy.merge(
            ledger, replace(one, client=invited.clients, note=note, steps=invited.clients)
        ).coefficient
    return found


@pytest.mark.parametrize("scheme", ["I", "II"])
@pytest.mark.parametrize("divisor", ["reported", "all"])
def test_weights_are_unbiased(scheme: Any, divisor: Any) -> None:
    """100,000 draws: the mean weight of each client is its share of the examples."""
    cohort = 5
    policy = li_sampling(scheme=scheme, cohort=cohort, divisor=divisor)
    found = weights(policy, Ledger.new(SIZES), 100_000 // cohort)
    share = SIZES / 130
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - share) < 4.5 * error)
    assert np.all(error < 0.06 * share + 1e-4)  # so biased weights would be noticed
    if scheme == "I":
        # m of K draws with probability p: the variance of m / K is p (1 - p) / K.
        np.testing.assert_allclose(found.var(axis=0), share * (1 - share) / cohort, rtol=0.2)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        np.testing.assert_allclose(found * cohort, np.round(found * cohort), atol=1e-9)
    else:
        # Each client is in 5 of 8 cohorts, with the weight p * 8 / 5.
        np.testing.assert_allclose((found > 0).mean(axis=0), 5 / 8, atol=0.02)
        np.testing.assert_allclose(found.max(axis=0), share * 8 / 5)
        assert found.sum(axis=1).min() < 0.5
        assert found.sum(axis=1).max() > 1.5


def test_a_client_that_is_drawn_often_trains_once() -> None:
    """Client 1 holds all examples, so it is drawn in each of the 4 draws."""
    policy = li_sampling(cohort=4)
    invited = policy.invite(Ledger.new(np.array([0, 9, 0, 0])), np.random.default_rng(1))
    assert invited.clients.tolist() == [1]
    assert invited.note is not None
    assert invited.note.tolist() == [4.0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Drawn 3, 1 and 2 times in 6 draws. The second report is missing.
        ({"scheme": "I"}, [3 / 5, 2 / 5]),
        ({"scheme": "I", "divisor": "all"}, [3 / 6, 2 / 6]),
        # Shares 0.1 and 0.6 of 4 clients; 2 of 6 reported.
        ({"scheme": "II"}, [0.1 * 4 / 2, 0.6 * 4 / 2]),
        ({"scheme": "II", "divisor": "all"}, [0.1 * 4 / 6, 0.6 * 4 / 6]),
    ],
)
def test_weights_by_hand(options: dict[str, Any], expected: list[float]) -> None:
    ledger = Ledger.new(np.array([10, 20, 60, 10]))
    found = li_sampling(cohort=6, **options).merge(ledger, reported([0, 2], note=[3.0, 2.0]))
    np.testing.assert_allclose(found.coefficient, expected)
    assert (found.of, found.keep) == ("update", 1.0)


@pytest.mark.parametrize("kind", [Run, Reference])
def test_a_decaying_rate_by_hand(kind: Any) -> None:
    """Scheme II with both clients, at 4 and 8 with 1 and 3 examples; rates 1/2 and 1/3.

    The weights are 1/4 * 2 / 2 and 3/4. Two steps of rate 1/2 go 3/4 of the way, to 3 and 6: the
    model is 5.25. Two steps of rate 1/3 go 5/9 of the way: 5.25 + 5/9 * (7 - 5.25).
    """
    policy = li_sampling(scheme="II", cohort=2, steps=2)
    what = replace(points(4.0, 8.0, copies=[1, 3]), rate=LearningRate(1.0, 1.0))
    found = models(kind(taking(1.0, 1.0), policy, what), 2)
    np.testing.assert_allclose(found, [[5.25], [5.25 + 5 / 9 * 1.75]], rtol=1e-6)


def test_rate_of_the_docstring() -> None:
    """eta_t = 2 / (mu (gamma + t)) at the first step of each round of E steps."""
    mu, gamma, steps = 0.5, 40.0, 5
    rate = LearningRate(beta=2 / (mu * steps), gamma=gamma / steps - 1)
    what = replace(points(0.0), rate=rate)
    for round_ in range(4):
        assert what.rate_at(round_, 0) == pytest.approx(2 / (mu * (gamma + round_ * steps)))


@pytest.mark.parametrize("kind", [Run, Reference])
def test_multiplicities_count_in_a_run(kind: Any) -> None:
    """Two draws of two clients at 4 and 8; a step goes half the way."""
    policy, seen = li_sampling(cohort=2, steps=1), []

    def watched(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(dict(zip(reports.client.tolist(), reports.note.tolist(), strict=True)))
        return policy.merge(ledger, reports)

    who = taking(1.0, 1.0)
    found = models(kind(who, replace(policy, merge=watched), points(4.0, 8.0), seed=4), 8)
    model = 0.0
    for drawn, after in zip(seen, found, strict=True):
        assert sum(drawn.values()) == 2.0
        model += sum(m / 2 * (4.0 + 4.0 * k - model) / 2 for k, m in drawn.items())
        assert after == [pytest.approx(model)]
    assert {len(drawn) for drawn in seen} == {1, 2}


def test_unknown_sizes_count_as_the_mean() -> None:
    """Sizes 10, 30 and two unknown: as 10, 30, 20, 20."""
    ledger = Ledger.new(np.array([10, 30, -1, -1]))
    second = li_sampling(scheme="II", cohort=2).merge(ledger, reported([1, 2]))
    np.testing.assert_allclose(second.coefficient, [30 / 80 * 2, 20 / 80 * 2])
    found = weights(li_sampling(cohort=4), ledger, 4000).mean(axis=0)
    np.testing.assert_allclose(found, [1 / 8, 3 / 8, 2 / 8, 2 / 8], atol=0.02)
    nobody = Ledger.new(np.full(4, -1))
    found = weights(li_sampling(cohort=4), nobody, 4000).mean(axis=0)
    np.testing.assert_allclose(found, 1 / 4, atol=0.02)


@pytest.mark.parametrize("scheme", ["I", "II"])
def test_real_clients_tell_their_sizes(scheme: Any) -> None:
    """No size is known at first; a round later those of the clients that have reported are."""

    def tamper(report: Report, order: Order) -> Report:
        return replace(report, examples=10 + order.number)

    wire = VirtualWire(exponential(8), tamper=tamper)
    run = live(wire, li_sampling(scheme=scheme, cohort=4, deadline=30.0))
    assert set(run.ledger.examples.tolist()) == {-1}
    first = run.step().outcome
    known = np.flatnonzero(run.ledger.examples >= 0)
    assert len(known) == first.used > 0
    assert run.ledger.examples[known].tolist() == (10 + known).tolist()
    assert all(run.step().outcome.succeeded for _ in range(30))
    assert run.ledger.examples.tolist() == list(range(10, 18))


def test_absent_clients_are_not_drawn() -> None:
    columns = LedgerColumns.new(np.array([10, 30, 60, 80]))
    columns.away[:] = [False, False, False, True]
    ledger = Ledger(columns)
    found = weights(li_sampling(cohort=4), ledger, 4000).mean(axis=0)
    np.testing.assert_allclose(found, [0.1, 0.3, 0.6, 0.0], atol=0.02)
    columns.away[:] = True
    ledger = Ledger(columns)
    assert not len(li_sampling(cohort=4).invite(ledger, np.random.default_rng(1)).clients)


def test_a_round_without_deadline_waits_for_all_that_were_drawn() -> None:
    history = cafe.simulate(taking(*range(1, 9)), li_sampling(cohort=8), rounds=200, seed=3)
    assert history.updates == 200
    assert history.fates["fresh"] == history.jobs < 8 * 200
    coming = replace(taking(*range(1, 9)), presence=OnOff(on=30.0, off=5.0))
    history = cafe.simulate(coming, li_sampling(cohort=8, deadline=9.0), rounds=200, seed=3)
    assert history.updates > 150
