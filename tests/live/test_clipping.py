"""Updates that are much longer than usual are scaled down; all others stay bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cafe
from cafe.errors import InputError
from cafe.live.clipping import RECENT, UpdateClipper, norm_of, scaled
from cafe.live.live_run import LiveRun
from cafe.live.replay import replay
from cafe.live.run_log import read_jobs
from cafe.live.server import serve
from cafe.live.snapshot import restore, save
from cafe.live.status_file import NAME
from cafe.live.validation import ReportLimits
from cafe.live.wire import Order, Report
from cafe.policies import agu, awu, mcu
from cafe.rounds.policy import Policy
from tests.support.serving import config, stopped_after
from tests.support.serving import wire as small_wire
from tests.support.virtual_runs import VirtualWire, live, random_step, start

ZERO = np.zeros(4)


def times(factor: float) -> Any:
    """Client 0 sends a multiple of its update."""

    def tamper(report: Report, order: Order) -> Report:
        if order.number:
            return report
        return replace(report, update={n: a * np.float32(factor) for n, a in report.update.items()})

    return tamper


def five(tamper: Any = None, **given: Any) -> LiveRun:
    wire = VirtualWire(cafe.Federation(5, cafe.Constant(0.2)))
    if tamper is not None:
        wire.tamper = tamper
    return live(wire, given.pop("policy", mcu(quorum=3, deadline=0.5)), **given)


def play(run: LiveRun, rounds: int) -> list[Any]:
    return [record for _ in range(rounds) for record in run.step().records]


def one_job(clipper: UpdateClipper, norms: dict[int, float]) -> list[float]:
    return clipper.factors([*norms], [*norms.values()], ZERO)


@given(
    honest=st.lists(st.floats(0.5, 2.0), min_size=4, max_size=40),
    lies=st.lists(st.floats(1e-6, 1e30), max_size=39),
    order=st.randoms(use_true_random=False),
)
def test_a_minority_does_not_move_the_limit(
    honest: list[float], lies: list[float], order: Any
) -> None:
    norms = [*honest, *lies[: len(honest) - 1]]
    order.shuffle(norms)
    clipper = UpdateClipper(3.0)
    factors = one_job(clipper, dict(enumerate(norms)))
    assert 3.0 * min(honest) * 0.999 <= clipper.limit(ZERO) <= 3.0 * max(honest) * 1.001
    for norm, factor in zip(norms, factors, strict=True):
        assert norm * factor <= clipper.limit(ZERO) * (1 + 1e-12)
        assert factor == 1.0 or norm > clipper.limit(ZERO)


def test_a_client_counts_once_however_often_it_reports() -> None:
    clipper = UpdateClipper(2.0)
    one_job(clipper, {0: 1.0, 1: 1.0, 2: 1.0})
    for _ in range(100):
        (factor,) = one_job(clipper, {2: 50.0})
        assert factor == pytest.approx(2.0 / 50.0)
    assert clipper.limit(ZERO) == 2.0


def test_limit_follows_at_once_if_the_updates_of_a_round_grow_or_shrink() -> None:
    clipper = UpdateClipper(2.0)
    for size in (1.0, 1000.0, 1e-3):
        assert one_job(clipper, dict.fromkeys(range(5), size)) == [1.0] * 5
        assert clipper.limit(ZERO) == pytest.approx(2.0 * size)


def test_the_last_clients_count_and_all_of_a_large_round() -> None:
    clipper = UpdateClipper(2.0)
    for client in range(3 * RECENT):
        one_job(clipper, {client: 1.0})
    assert [*clipper.norms] == [*range(2 * RECENT, 3 * RECENT)]
    one_job(clipper, dict.fromkeys(range(1000), 1.0))
    assert len(clipper.norms) == 1000


def test_updates_of_zeros_do_not_count() -> None:
    clipper = UpdateClipper(2.0)
    assert one_job(clipper, dict.fromkeys(range(5), 0.0)) == [1.0] * 5
    assert not clipper.norms


def test_first_norms_are_limited_by_the_norm_of_the_model() -> None:
    clipper, model = UpdateClipper(2.0), np.array([3.0, 4.0])
    assert clipper.factors([0, 1], [24.0, 1.0], model) == [0.5, 1.0]
    assert clipper.factors([2], [24.0], model) == [1.0]  # two of three are that long
    assert clipper.factors([0], [1.0], model) == [1.0]
    assert clipper.factors([2], [24.0], model) == [2.0 / 24.0]


@pytest.mark.parametrize("factor", [-1e6, -90.0, 1e30])
def test_one_client_of_five_moves_the_model_by_a_bounded_amount(factor: float) -> None:
    """From the first round on: the change differs from the honest one by a few usual norms."""
    run, honest = five(times(factor)), five()
    for _ in range(6):
        before = run.model.copy()
        records = play(run, 1)
        assert [r.client for r in records if r.clipped is not None] == [0]
        usual = float(np.median([*run.clipper.norms.values()]))
        assert norm_of(run.model - before) <= (4 * 2.0 + 2.0) * usual / 5 * 1.001
        play(honest, 1)
    assert run.clients.clips == [6, 0, 0, 0, 0]
    assert honest.clients.clips == [0] * 5


@pytest.mark.parametrize(
    "policy", [mcu(quorum=3, deadline=0.5), awu(deadline=0.5), agu(quorum=3, deadline=0.5)], ids=str
)
def test_without_long_updates_the_model_is_the_same_to_the_bit(policy: Policy) -> None:
    on, off = five(policy=policy), five(policy=policy, report_limits=ReportLimits(clip=None))
    records = play(on, 10)
    play(off, 10)
    assert all(record.clipped is None for record in records)
    assert on.model.tobytes() == off.model.tobytes()


def test_clipping_can_be_turned_off() -> None:
    run = five(times(1e6), report_limits=ReportLimits(clip=None))
    assert all(record.clipped is None for record in play(run, 3))
    assert norm_of(run.model) > 1e5


def test_the_policy_sees_clipped_updates() -> None:
    seen = []
    policy = mcu(quorum=3, deadline=0.5)

    def merge(ledger: Any, reports: Any) -> Any:
        seen.append(np.linalg.norm(reports.updates, axis=1))
        return policy.merge(ledger, reports)

    curious = replace(policy, name="curious", merge=merge, needs=frozenset({"updates"}))
    run = five(times(1e6), policy=curious)
    play(run, 1)
    assert seen[0][0] == pytest.approx(run.clipper.limit(run.model), rel=1e-6)


POLICIES = [
    mcu(quorum=2, deadline=0.3, target=3, late="keep"),
    awu(deadline=0.4, weight="unbiased"),
    agu(quorum=4, deadline=0.4),
    agu(quorum=4, deadline=0.4, pool="union"),
]


def honest_or_not(model: Any, job: Any) -> Any:
    """The training of the clients, of which client 1 sends -90 times its update from round 2 on."""
    trained = random_step(model, job)
    if job.number != 1 or job.round < 2:
        return trained
    moved = {
        name: model[name] + (array - model[name]) * np.float32(-90.0)
        for name, array in trained.model.items()
    }
    return replace(trained, model=moved)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_replay_gives_the_same_model_and_a_resumed_run_clips_alike(
    tmp_path: Path, policy: Policy
) -> None:
    said: list[str] = []
    at = small_wire(seed=2, train=honest_or_not)
    given = config(policy, rounds=14, seed=2)
    stopped_after(5, tmp_path, at, given)
    history = serve(at, given, tmp_path, say=said.append)
    clipped = [job for job in read_jobs(tmp_path) if job.clipped is not None]
    assert any(job.client == 1 and job.coefficient for job in clipped)
    found = replay(tmp_path, start(), honest_or_not, lambda name: {}, seed=2)
    assert history.model is not None
    assert found.model.tobytes() == history.model.tobytes()
    assert not found.differing
    assert any(line.startswith("Clipped, because much longer than usual") for line in said)
    assert f'"clipped": {len(clipped)}' in (tmp_path / NAME).read_text()


def test_snapshot_keeps_the_norms() -> None:
    run = five(times(7.0))
    play(run, 3)
    again = five()
    restore(again, save(run))
    assert again.clipper.norms == run.clipper.norms
    assert [*again.clipper.norms] == [*run.clipper.norms]
    assert again.clients.clips == run.clients.clips == [3, 0, 0, 0, 0]


def test_secure_aggregation_excludes_clipping() -> None:
    run = five(times(1e6), secure_aggregation=True)
    assert all(record.clipped is None for record in play(run, 2))
    with pytest.raises(InputError, match="Clipping needs single updates"):
        five(secure_aggregation=True, report_limits=ReportLimits())


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_scaled_vectors_keep_their_type(kind: Any) -> None:
    vector = np.array([3.0, -4.0], kind)
    assert scaled(vector, 0.5).dtype == kind
    assert scaled(vector, 0.5).tolist() == [1.5, -2.0]
