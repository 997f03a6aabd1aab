"""A controller chooses the policy of each round, and gets the same inputs after a restart."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from cafe.fitting import Observations, read_observations
from cafe.live.run_log import RESPONSES, read_rounds
from cafe.live.server import serve
from cafe.policies import fedavg, mcu
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy
from tests.support.serving import MCU, config, stopped_after, wire
from tests.support.virtual_runs import VirtualWire

LOG = logging.getLogger("tests.controller")  # a logger is not part of a run's identity


@dataclass(frozen=True)
class Doubling:
    """A controller: the deadline doubles in each of the first rounds."""

    first: float = 0.1

    def __call__(self, ledger: Ledger, seen: Observations | None) -> Policy:
        count = 0 if seen is None else len(seen)
        missed = 0 if seen is None else int((~seen.reported).sum())
        times = None if seen is None else (seen.seconds.tobytes(), seen.deadline.tobytes())
        LOG.info("round %s: %s", ledger.round, (count, missed, times))
        return mcu(quorum=1, deadline=self.first * 2 ** min(ledger.round, 5))


@pytest.fixture
def asked(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[int, Any]]]:
    """The calls of controllers since the last check: rounds, and what was seen before them."""
    caplog.set_level(logging.INFO, LOG.name)

    def look() -> list[tuple[int, Any]]:
        found = [record.args for record in caplog.records if record.name == LOG.name]
        caplog.clear()
        return found  # type: ignore[return-value]

    return look


Asked = Callable[[], list[tuple[int, Any]]]


def test_a_controller_chooses_every_deadline(tmp_path: Path, asked: Asked) -> None:
    history = serve(wire(), config(Doubling(), rounds=6, patience=50), tmp_path)
    lasted = history.by_round["closed"] - history.by_round["opened"]
    np.testing.assert_allclose(lasted, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    first = asked()[1:]  # the first call only checks that it returns a policy
    assert [round_ for round_, _ in first] == list(range(6))
    assert [seen[0] for _, seen in first] == [6 * k for k in range(6)]
    late = np.cumsum([0, *history.by_round["fates"][:, 3]])[:-1]
    assert [seen[1] for _, seen in first] == late.tolist()
    assert late[-1] > 0
    seen = read_observations(tmp_path / RESPONSES)
    # A client that missed a deadline is known to have taken longer.
    np.testing.assert_allclose(np.unique(seen.deadline), lasted, atol=1e-6)


def test_controller_gets_the_same_arguments_after_a_stop(tmp_path: Path, asked: Asked) -> None:
    given = config(Doubling(), rounds=6, patience=50)
    serve(wire(), given, tmp_path / "whole")
    first = dict(asked()[1:])
    at = wire()
    stopped_after(3, tmp_path / "parts", at, given)
    asked()
    at.t += 77.0
    serve(at, given, tmp_path / "parts")
    after = dict(asked()[1:])
    assert after.keys() == {3, 4, 5}
    assert after[3] == first[3]
    assert {k: v[:2] for k, v in after.items()} == {k: first[k][:2] for k in after}


def test_run_is_resumed_only_with_its_controller(tmp_path: Path) -> None:
    stopped_after(2, tmp_path, wire(), config(Doubling()))
    with pytest.raises(InputError, match="Doubling"):
        serve(wire(), config(Doubling(first=0.2)), tmp_path)


def test_a_controller_that_cannot_be_identified_is_refused(tmp_path: Path) -> None:
    class Counting:
        def __call__(self, ledger: Ledger, seen: Any) -> Policy:
            return MCU

    with pytest.raises(InputError, match=r"The controller is a .*Counting, which cannot be ident"):
        serve(wire(), config(Counting()), tmp_path)


@pytest.mark.parametrize(
    "wrong", [mcu, Doubling, "mcu", None], ids=["function", "class", "text", "nothing"]
)
def test_invalid_controllers_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"Expected a policy, .* or a controller"):
        config(wrong)


def test_controller_must_return_a_policy(tmp_path: Path) -> None:
    def none(ledger: Ledger, seen: Any) -> Any:
        return None

    with pytest.raises(InputError, match="must return a Policy"):
        serve(wire(), config(none), tmp_path)


def test_a_policy_of_a_controller_must_end_its_rounds(tmp_path: Path) -> None:
    def endless(ledger: Ledger, seen: Any) -> Policy:
        return MCU if ledger.round < 2 else fedavg(fraction=1.0)

    with pytest.raises(InputError, match="Give the policy a deadline"):
        serve(wire(), config(endless), tmp_path)
    assert len(read_rounds(tmp_path)) == 2


def test_controller_may_lower_the_quorum_when_clients_have_left(tmp_path: Path) -> None:
    """The round waits for the quorum of its own policy, not of the policy of the round before."""

    def everybody(ledger: Ledger, seen: Any) -> Policy:
        here = int((~ledger.away).sum())
        return mcu(quorum=max(here, 1), deadline=99.0)

    at = wire()
    everyone = list(at.names)

    def leave(at: VirtualWire) -> None:
        at.names = everyone[: 6 - min(at.polls // 2, 3)]

    at.on_poll = leave
    history = serve(at, config(everybody, rounds=5, wait=5.0), tmp_path)
    assert history.updates == 5
    assert history.by_round["used"].tolist() == [6, 5, 5, 4, 4]


def test_controller_sees_the_last_response_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Asked
) -> None:
    """In a long run, a call takes no longer than in a short one."""
    monkeypatch.setattr("cafe.live.live_run.MAX_RESPONSES", 10)
    serve(wire(), config(Doubling(), rounds=6, patience=50), tmp_path)
    assert [seen[0] for _, seen in asked()[1:]] == [0, 6, 10, 10, 10, 10]


def test_very_short_response_times_are_recorded(tmp_path: Path) -> None:
    """Times are written in microseconds; one that rounds to 0 would be invalid and end the run."""
    at = VirtualWire(cafe.Federation(4, cafe.Constant(1e-8)))
    policy = mcu(quorum=1, deadline=0.5, target=2)
    history = serve(at, config(policy), tmp_path)
    assert history.updates == history.rounds == 5
    assert read_observations(tmp_path / RESPONSES).event_times.min() == 1e-6
