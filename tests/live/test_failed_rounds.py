"""A run in which no round succeeds ends with an error that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

import cafe
from cafe.errors import InfeasibleError
from cafe.live.run_log import read_rounds
from cafe.live.server import serve
from cafe.policies import mcu
from cafe.results.loading import is_finished
from tests.support.serving import assert_sound, config, read_status, wire
from tests.support.virtual_runs import VirtualWire


@pytest.mark.parametrize(
    ("behaviour", "fate", "reason"),
    [
        ("lost", "30 crashed", "it crashed."),
        ("malformed", "30 were refused", "it is no report at all."),
        ("silent", "30 were late", "Lengthen the deadline"),
    ],
)
def test_run_without_success_says_why(
    tmp_path: Path, behaviour: str, fate: str, reason: str
) -> None:
    said: list[str] = []
    at = VirtualWire(cafe.Federation(6, cafe.Constant(0.2)), behave=lambda order: behaviour)
    with pytest.raises(InfeasibleError) as error:
        serve(at, config(rounds=5), tmp_path, say=said.append)
    message = f"{error.value}"
    assert message.startswith("No round has succeeded: 5 of 5 rounds failed under mcu")
    assert f"Of 30 jobs, {fate}. No client reported." in message
    assert reason in message
    status = read_status(tmp_path)
    assert (status["state"], status["why"]) == ("failed", message)
    assert said[-1] == f"Failed: {message}"
    assert not is_finished(tmp_path)
    assert_sound(tmp_path)


def test_rounds_that_never_reach_the_quorum(tmp_path: Path) -> None:
    at = VirtualWire(cafe.Federation(3, cafe.Constant(0.2)))
    at.behave = lambda order: "report" if order.number == 0 else "silent"
    with pytest.raises(InfeasibleError, match="4 were late and 2 reported in a round that failed"):
        serve(at, config(mcu(quorum=2, deadline=0.5), rounds=2), tmp_path)


def test_failed_run_stays_failed_until_it_may_go_on(tmp_path: Path) -> None:
    at = wire(behave=lambda order: "lost")
    reasons = []
    for _ in range(2):
        with pytest.raises(InfeasibleError) as error:
            serve(at, config(rounds=2), tmp_path)
        reasons.append(f"{error.value}")
    assert reasons[0] == reasons[1]
    assert len(read_rounds(tmp_path)) == 2
    at.behave = lambda order: "report"
    assert serve(at, config(rounds=4), tmp_path).updates > 0
    assert read_status(tmp_path)["state"] == "finished"


def test_other_errors_stop_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    at = wire(behave=lambda order: "lost")
    with pytest.raises(InfeasibleError, match="2 rounds in a row have failed"):
        serve(at, config(rounds=5, patience=2), tmp_path)
    assert read_status(tmp_path)["state"] == "stopped"
