"""A controller chooses the policy of each round, and hears the same after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from cafe.fitting.observations import Observations, read_observations
from cafe.live.journal import RESPONSES, read_rounds
from cafe.live.serving import serve
from cafe.policies import fedavg, mcu
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy
from tests.live.serve import MCU, brief, stopped_after, wire
from tests.live.wires import VirtualWire


class Doubling:
    """A controller: the deadline doubles until somebody is late no more."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Any]] = []

    def __str__(self) -> str:
        return "doubling"

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        count = 0 if seen is None else len(seen)
        missed = 0 if seen is None else int((~seen.reported).sum())
        times = None if seen is None else (seen.seconds.tobytes(), seen.deadline.tobytes())
        self.asked.append((ledger.round, (count, missed, times)))
        return mcu(quorum=1, deadline=0.1 * 2 ** min(ledger.round, 5))


def test_a_controller_chooses_every_deadline(tmp_path: Path) -> None:
    choose = Doubling()
    history = serve(wire(), brief(choose, rounds=6, patience=50), tmp_path)
    lasted = history.by_round["closed"] - history.by_round["opened"]
    np.testing.assert_allclose(lasted, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    asked = choose.asked[1:]  # the first time is to see whether it has a policy at all
    assert [round_ for round_, _ in asked] == list(range(6))
    assert [seen[0] for _, seen in asked] == [6 * k for k in range(6)]
    late = np.cumsum([0, *history.by_round["fates"][:, 3]])[:-1]
    assert [seen[1] for _, seen in asked] == late.tolist()
    assert late[-1] > 0
    seen = read_observations(tmp_path / RESPONSES)
    # Who missed a deadline is known to have taken longer than that.
    np.testing.assert_allclose(np.unique(seen.deadline), lasted, atol=1e-6)


def test_a_controller_is_asked_the_same_after_a_stop(tmp_path: Path) -> None:
    whole = Doubling()
    serve(wire(), brief(whole, rounds=6, patience=50), tmp_path / "whole")
    at, parts = wire(), Doubling()
    stopped_after(3, tmp_path / "parts", at, brief(parts, rounds=6, patience=50))
    parts.asked.clear()
    at.t += 77.0
    serve(at, brief(parts, rounds=6, patience=50), tmp_path / "parts")
    first, after = dict(whole.asked[1:]), dict(parts.asked[1:])
    assert after.keys() == {3, 4, 5}
    assert after[3] == first[3]
    assert {k: v[:2] for k, v in after.items()} == {k: first[k][:2] for k in after}


def test_a_policy_of_a_controller_must_end_its_rounds(tmp_path: Path) -> None:
    class Endless(Doubling):
        def __call__(self, ledger: Ledger, seen: Any) -> Policy:
            return MCU if ledger.round < 2 else fedavg(fraction=1.0)

    with pytest.raises(InputError, match="Give the policy a deadline"):
        serve(wire(), brief(Endless()), tmp_path)
    assert len(read_rounds(tmp_path)) == 2


def test_a_controller_may_ask_for_fewer_when_clients_have_gone(tmp_path: Path) -> None:
    """The round waits for the quorum that will hold, not for that of the round before."""

    class Everybody(Doubling):
        def __call__(self, ledger: Ledger, seen: Any) -> Policy:
            here = int((~ledger.away).sum())
            return mcu(quorum=max(here, 1), deadline=99.0)

    at = wire()
    everyone = list(at.names)

    def leave(at: VirtualWire) -> None:
        at.names = everyone[: 6 - min(at.looks // 2, 3)]

    at.on_look = leave
    history = serve(at, brief(Everybody(), rounds=5, wait=5.0), tmp_path)
    assert history.updates == 5
    assert history.by_round["used"].tolist() == [6, 5, 5, 4, 4]


def test_a_controller_is_shown_the_last_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a run lasts, asking takes no longer."""
    monkeypatch.setattr("cafe.live.run.RECALL", 10)
    whole = Doubling()
    serve(wire(), brief(whole, rounds=6, patience=50), tmp_path)
    assert [seen[0] for _, seen in whole.asked[1:]] == [0, 6, 10, 10, 10, 10]


def test_no_response_is_too_quick_to_be_written_down(tmp_path: Path) -> None:
    """Microseconds are written: what rounds to 0 would be no response time, and end the run."""
    at = VirtualWire(cafe.Federation(4, cafe.Constant(1e-8)))
    policy = mcu(quorum=1, deadline=0.5, target=2)
    history = serve(at, brief(policy), tmp_path)
    assert history.updates == history.rounds == 5
    assert read_observations(tmp_path / RESPONSES).event_times.min() == 1e-6
