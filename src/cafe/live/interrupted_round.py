"""The round in which an earlier server was killed, booked as a failed round."""

from __future__ import annotations

import numpy as np

from cafe.engine.closing_round import ClosingRound
from cafe.engine.fates import UsedReports
from cafe.live.job_records import JobRecord, OpenRound, PlayedRound
from cafe.live.live_run import LiveRun
from cafe.live.order_log import UnsavedOrders
from cafe.rounds.answers import Carried
from cafe.rounds.jobs import Running, Status
from cafe.rounds.outcome import Fate, Outcome


def resume_after(run: LiveRun, unsaved: UnsavedOrders) -> PlayedRound | None:
    """Continue from the last known time, and book the jobs that an earlier server has started.

    All of them are lost, and so are the jobs of earlier rounds that were still running. What the
    policy keeps stays as it was. A controller keeps the state that it returned for the round.

    Args:
        run: the run, restored from its checkpoint, or new if there is none.
        unsaved: what the earlier server has done since then.

    Returns:
        The interrupted round; None if the server was killed before it sent orders.
    """
    ledger, outcome = run.ledger, Outcome(run.ledger.round, unsaved.opened, 0.0, False)
    for number, name, at in unsaved.joined:
        if number == len(run.clients.names):
            ledger.now = at
            run.clients.admit([name], run.books)
    ledger.now = now = max(run.now(), unsaved.now)
    run.set_clock(now)
    run.running.stop[:] = now
    if not unsaved.records:
        return None
    open_ = OpenRound(outcome, run.running, [*run.records])
    open_.add(_lost_jobs(unsaved.records, now), unsaved.records)
    outcome.closed, outcome.invited = now, len(unsaved.records)
    outcome.downloads, outcome.bytes_down = len(unsaved.records), unsaved.bytes_down
    ledger.opened = unsaved.opened
    ledger.invitations = 1 + max(record.invitation for record in unsaved.records)
    ledger.control = unsaved.control
    run.policy_changes += [] if unsaved.change is None else [unsaved.change]
    kept = Carried(kept=True)
    nothing = UsedReports.nothing()
    return run.book(
        open_,
        ClosingRound(outcome, open_.jobs, open_.reported, nothing, kept, Fate.LATE, repeats=True),
    )


def _lost_jobs(records: list[JobRecord], now: float) -> Running:
    """The engine's table of jobs that were lost now."""
    n = len(records)
    return Running(
        client=np.array([record.client for record in records], dtype=np.intp),
        start=np.array([record.start for record in records]),
        version=np.array([record.version for record in records], dtype=np.int64),
        round=np.array([record.round for record in records], dtype=np.int64),
        local=np.array([record.carried for record in records], dtype=bool),
        invitation=np.array([record.invitation for record in records], dtype=np.int64),
        steps=np.zeros(n, dtype=np.int64),
        note=np.zeros(n),
        arrival=np.full(n, np.inf),
        stop=np.full(n, now),
        status=np.full(n, Status.CRASHED, dtype=np.int8),
        trained=np.zeros(n),
    )
