"""Looks at what has come that take long, as with a SuperLink that is busy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import cafe
from cafe.fitting.observations import read_observations
from cafe.live.run_log import RESPONSES, read_jobs
from cafe.live.server import serve
from cafe.policies import mcu
from tests.support.serving import assert_sound, brief
from tests.support.virtual_runs import VirtualWire


def held_up() -> VirtualWire:
    """Whose first look takes 20 s, in which all report."""
    at = VirtualWire(cafe.Federation(3, cafe.Constant(5.0)))
    original, first = at.receive, [True]

    def receive(tickets: Any) -> Any:
        if first:
            first.clear()
            at.t += 20.0
        return [replace(reply, at=at.clock()) for reply in original(tickets)]

    at.receive = receive  # type: ignore[method-assign]
    return at


def test_a_look_that_is_held_up_does_not_bring_what_came_too_late(tmp_path: Path) -> None:
    """Nor are quick answers made of it: the response times would be wrong."""
    serve(held_up(), brief(mcu(quorum=1, deadline=1.0), rounds=1), tmp_path)
    assert {job.fate for job in read_jobs(tmp_path)} == {"late"}
    assert_sound(tmp_path)
    seen = read_observations(tmp_path / RESPONSES)
    assert not seen.reported.any()
    np.testing.assert_allclose(seen.deadline, 1.0)


def test_a_look_that_is_held_up_brings_what_may_come_later(tmp_path: Path) -> None:
    given = brief(mcu(quorum=1, deadline=1.0, late="keep"), rounds=2)
    history = serve(held_up(), given, tmp_path)
    assert_sound(tmp_path)
    assert history.by_round["used"].tolist() == [0, 3]
