"""SAFA: the server's cache, the quota and the clients' lag, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.learn.quadratic import Quadratic
from cafe.live.validation import ReportLimits
from cafe.policies import safa
from cafe.presence import Trace
from cafe.testing import engine_trainer
from tests.support.federations import taking
from tests.support.small_tasks import drawn
from tests.support.virtual_runs import VirtualWire, live


def pulled(*at: float, examples: tuple[int, ...]) -> cafe.Task:
    """A model of one parameter that starts at 0; each client goes half of the way to its point."""
    points = Examples(np.repeat(at, examples)[:, None], np.zeros(sum(examples)))
    own = np.split(np.arange(sum(examples)), np.cumsum(examples)[:-1])
    return cafe.Task(points, Shards.of(own), Quadratic(1), rate=0.5, batch=None)


THREE = pulled(8.0, 16.0, 32.0, examples=(1, 1, 2))  # shares of 1/4, 1/4 and 1/2


def play(run: Run, rounds: int) -> list[tuple[float, float, list[float]]]:
    """For each round its close, the model, and the cache after it."""
    found = []
    for _ in range(rounds):
        outcome = run.step()
        model, cache = run.history().model, run.ledger.memory
        assert model is not None
        assert cache is not None
        found.append((outcome.closed, float(model[0]), cache[:, 0].tolist()))
    return found


def test_five_rounds_by_hand() -> None:
    """A quota of one client; the clients take 1, 2.25 and 3. The weights are 1/4, 1/4 and 1/2.

    0: client 0 is first, at 1. Its model is 4: 4/4 = 1.
    1: client 0 starts at 1 from 1 and reports 4.5 at 2, but it was picked last. Client 1 reports 8
       at 2.25, from the model 0, and is picked: 4/4 + 8/4 = 3. Only now 4.5 is cached.
    2: client 2 reports 16 at 3: 4.5/4 + 8/4 + 16/2 = 11.125. The report of client 0 is used.
    3: client 0 started at 2.25 from 3, and reports 5.5 at 3.25: 5.5/4 + 2 + 8 = 11.375.
    4: client 0 started at 3.25 from 11.375, and reports 9.6875 at 4.25, but it was picked last.
       Client 1 started at 2.25 from 3, and reports 9.5 at 4.5: 5.5/4 + 9.5/4 + 8 = 11.75.
    """
    who = taking(1.0, 2.25, 3.0)
    run = Run(who, safa(deadline=10.0, fraction=1 / 3, tolerance=2), THREE)
    assert play(run, 5) == [
        (1.0, 1.0, [4.0, 0.0, 0.0]),
        (2.25, 3.0, [4.5, 8.0, 0.0]),
        (3.0, 11.125, [4.5, 8.0, 16.0]),
        (3.25, 11.375, [5.5, 8.0, 16.0]),
        (4.5, 11.75, [9.6875, 9.5, 16.0]),
    ]
    history = run.history()
    assert history.by_round["used"].tolist() == [1, 1, 2, 1, 1]
    np.testing.assert_allclose(history.weight_by_client, [0.75, 0.5, 0.5])
    # Reports from the model of their own round: that of client 0 in round 0. All others are stale.
    assert (history.fates["fresh"], history.fates["stale"]) == (1, 5)


def test_report_that_was_not_picked_is_used_once() -> None:
    """Four clients of the same size; the fourth, at 64, takes 3.1. The first rounds are as above.

    1: client 0 reports 4.5 and is not picked: (4 + 8) / 4 = 3. 2: (4.5 + 8 + 16) / 4 = 7.125.
    3: client 3 reports 32 at 3.1, before client 0 at 3.25: 15.125. The report of client 0 that was
       used in round 2 stays in the cache, but does not count as used again.
    """
    what = pulled(8.0, 16.0, 32.0, 64.0, examples=(1, 1, 1, 1))
    run = Run(taking(1.0, 2.25, 3.0, 3.1), safa(deadline=10.0, fraction=0.25), what)
    models = [(closed, model) for closed, model, _ in play(run, 4)]
    assert models == [(1.0, 1.0), (2.25, 3.0), (3.0, 7.125), (3.1, 15.125)]
    assert run.history().by_round["used"].tolist() == [1, 1, 2, 1]
    assert run.history().reports_reused == 0


def test_deprecated_clients_by_hand() -> None:
    """Client 2 takes 3.5 instead of 3, and would be three updates late: it starts again.

    0 and 1: as above. 2: client 0 started at 2.25 from 3, and reports 5.5 at 3.25, before client 2.
       Its older report, 4.5, is replaced unused: 5.5/4 + 8/4 = 3.375. The job of client 2 is
       cancelled, because it began three updates ago.
    3: client 1 started at 2.25 from 3, and reports 9.5 at 4.5. Client 2 is deprecated: its entry is
       the present model: 5.5/4 + 9.5/4 + 3.375/2 = 5.4375. Client 0 reported at 4.25, from 3.375,
       5.6875, but it was picked last.
    4: client 0 starts at 4.5 from 5.4375, and reports 6.71875 at 5.5. Client 2 is still deprecated:
       6.71875/4 + 9.5/4 + 5.4375/2 = 6.7734375.
    """
    run = Run(taking(1.0, 2.25, 3.5), safa(deadline=10.0, fraction=1 / 3, tolerance=2), THREE)
    assert play(run, 5) == [
        (1.0, 1.0, [4.0, 0.0, 0.0]),
        (2.25, 3.0, [4.5, 8.0, 0.0]),
        (3.25, 3.375, [5.5, 8.0, 0.0]),
        (4.5, 5.4375, [5.6875, 9.5, 3.375]),
        (5.5, 6.7734375, [6.71875, 9.5, 5.4375]),
    ]
    assert run.history().by_round["used"].tolist() == [1, 1, 1, 1, 1]
    # Client 2 starts again in round 3, at 3.25.
    again = run.running.client == 2
    assert run.running.start[again].tolist() == [3.25]
    assert run.running.version[again].tolist() == [3]


def test_tolerable_client_continues_from_its_local_model() -> None:
    """Two clients of the same size, at 8 and 16, that take 1 and 1.5. The quota is both of them.

    0: both are picked at 1.5. Their models are 4 and 8, the next model is 6.
    1: client 1 leaves at 2.5, and the round ends at its deadline, 1.5 + 4. Client 0 reports 7, and
       fills the quota although it was picked last: (7 + 8) / 2 = 7.5.
    2: client 1 is back. It is one update late, and goes on from its own 8 to 12, not from 7.5.
       Client 0 goes from 7.5 to 7.75: 9.875.
    """
    who = taking(1.0, 1.5, presence=Trace([[0, 0, 99], [1, 0, 2.5], [1, 5, 99]]))
    what = pulled(8.0, 16.0, examples=(1, 1))
    run = Run(who, safa(deadline=4.0, fraction=1.0, tolerance=1), what)
    assert play(run, 3) == [
        (1.5, 6.0, [4.0, 8.0]),
        (5.5, 7.5, [7.0, 8.0]),
        (7.0, 9.875, [7.75, 12.0]),
    ]


def test_deprecated_client_starts_from_the_present_model() -> None:
    """As above, but no lag is tolerated: client 1 starts from 7.5 in round 2, and reports 11.75.

    Its entry in the cache is the model 6 in round 1: it is not deprecated before round 2.
    """
    who = taking(1.0, 1.5, presence=Trace([[0, 0, 99], [1, 0, 2.5], [1, 5, 99]]))
    what = pulled(8.0, 16.0, examples=(1, 1))
    run = Run(who, safa(deadline=4.0, fraction=1.0, tolerance=0), what)
    assert play(run, 3) == [
        (1.5, 6.0, [4.0, 8.0]),
        (5.5, 7.5, [7.0, 8.0]),
        (7.0, 9.75, [7.75, 11.75]),
    ]


@pytest.mark.parametrize(
    ("fraction", "quota"), [(0.01, 1), (0.3, 3), (0.31, 4), (0.7, 7), (1.0, 10)]
)
def test_quota_is_rounded_up(fraction: float, quota: int) -> None:
    who = taking(*(1.0 + k / 10 for k in range(10)))
    what = pulled(*range(10), examples=(1,) * 10)
    run = cafe.simulate(who, safa(deadline=9.0, fraction=fraction), what, rounds=1)
    assert run.by_round["used"][0] == quota
    assert run.virtual_time == pytest.approx(0.9 + quota / 10)


@pytest.mark.parametrize(
    ("options", "steps"), [({}, 1), ({"epochs": 3}, 3), ({"steps": 2}, 2)], ids=str
)
def test_local_work(options: dict[str, int], steps: int) -> None:
    """Each step halves the distance to the only example, at 1."""
    run = cafe.simulate(taking(1.0), safa(deadline=2.0, **options), drawn(1.0), rounds=1)
    assert run.model == pytest.approx([1 - 0.5**steps])


def test_round_ends_at_its_deadline() -> None:
    """Clients 0 and 1 were picked last and report first; no other client reports by 2 + 3."""
    who, what = taking(1.0, 2.0, 60.0, 60.0), pulled(1, 2, 3, 4, examples=(1,) * 4)
    run = cafe.simulate(who, safa(deadline=3.0, fraction=0.5), what, rounds=3)
    assert run.by_round["closed"].tolist() == [2.0, 5.0, 8.0]
    assert run.by_round["used"].tolist() == [2, 2, 2]


def test_quota_that_the_other_clients_cannot_fill() -> None:
    """The quota is 3 of 4. In round 1 only client 3 was not picked before: it reports at 4.5.

    Clients 0 and 1, which report at 4 and 5, fill the quota. Client 2 would report at 6.
    """
    who, what = taking(1.0, 2.0, 3.0, 4.5), pulled(1, 2, 3, 4, examples=(1,) * 4)
    run = cafe.simulate(who, safa(deadline=9.0, fraction=0.75), what, rounds=2)
    assert run.by_round["closed"].tolist() == [3.0, 5.0]
    assert run.merged_by_client.tolist() == [2, 2, 1, 1]


def test_round_without_reports_fails_and_changes_nothing() -> None:
    who, what = taking(4.0, 5.0), pulled(8.0, 16.0, examples=(1, 1))
    run = Run(who, safa(deadline=3.0, fraction=0.5), what)
    assert not run.step().succeeded
    assert run.ledger.memory is None
    assert run.step().succeeded
    assert run.ledger.now == 4.0


def test_contract_with_presence_and_lost_clients() -> None:
    cafe.testing.check_policy(safa(deadline=1.0, tolerance=2), rounds=25)


def test_sizes_are_learned_from_reports_on_real_clients() -> None:
    """The five rounds again, on a server that does not know the sizes 1, 1 and 2.

    0: client 0 reports 4 and the size 1. The others count as 1, too: 4/3.
    1: client 1 reports 8, and client 0, which is not picked, 4/3 + (8 - 4/3)/2 = 14/3: (4 + 8)/3.
    2: client 2 reports 16 and the size 2: 14/3/4 + 8/4 + 16/2 = 67/6.
    """
    wire = VirtualWire(taking(1.0, 2.25, 3.0), train=engine_trainer(THREE, 0), task=THREE)
    policy = safa(deadline=10.0, fraction=1 / 3, steps=1)
    limits = ReportLimits(clip=None)
    run = live(wire, policy, model={"w": np.zeros(1, np.float32)}, report_limits=limits)
    models = []
    for _ in range(3):
        assert run.step().outcome.succeeded
        models.append(float(run.model[0]))
    assert models == pytest.approx([4 / 3, 4.0, 67 / 6])
    assert run.ledger.examples.tolist() == [1, 1, 2]
