"""A self-tuning federation on real nodes recovers from deadlines that are far too short or long.

Nothing here depends on how long anything takes: the short deadline is over before any reply can
arrive, and the long one would outlast the test if the controller kept it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.lab import Lab
from cafe.live.run_log import read_rounds
from cafe.results import load
from cafe.rounds import PolicyChange
from tests.support.flower.trial import NODES, Trial, read_live

pytestmark = pytest.mark.federation

SHORT = 0.01  # seconds; a server looks for replies less often
LONG = 36_000.0
Start = Callable[..., Trial]


@pytest.fixture
def start(lab: Lab) -> Iterator[Start]:
    """Prepares a run of a self-tuning controller; in the end no client holds its report."""
    made: list[Trial] = []

    def prepare(name: str, updates: int, **arguments: Any) -> Trial:
        trial = Trial(lab, name, clients=NODES, updates=updates, evaluate="none")
        (trial.script / "policy.json").write_text(json.dumps(["self-tuning", arguments]))
        made.append(trial)
        return trial

    yield prepare
    for trial in made:
        for k in range(NODES):
            trial.tell(f"node-{k + 1}", "-")


def changes_of(trial: Trial) -> tuple[PolicyChange, ...]:
    """The policy changes in the files of a run."""
    return load(trial.out).history.policy_changes


def test_recovers_from_a_deadline_that_is_far_too_short(start: Start) -> None:
    trial = start("too-short", 2, first_stop=SHORT)
    trial.submit()
    trial.finish()
    trial.conserved()
    rounds, changes = read_rounds(trial.out), changes_of(trial)
    assert (changes[0].round, changes[0].deadline) == (0, SHORT)
    assert not rounds[0].succeeded
    assert rounds[-1].succeeded
    limits = [change.deadline for change in changes]
    assert all(limit is not None and limit > SHORT for limit in limits[1:])
    reasons = [change for change in changes if change.reason]
    assert reasons[0].round == 1
    trial.wait_for_log(f"Round {reasons[0].round}: {reasons[0]}")
    shown = read_live(trial.out)
    assert shown["policy_changes"] == len(changes)
    assert shown["last_reason"] == {"round": reasons[-1].round, "reason": reasons[-1].reason}


def test_recovers_from_a_deadline_that_is_far_too_long(start: Start) -> None:
    """A client never reports, so the first round would last for its whole deadline."""
    trial = start("too-long", 2, first_stop=LONG)
    trial.tell("node-4", "hold")
    trial.submit()
    trial.finish()
    trial.conserved()
    rounds, changes = read_rounds(trial.out), changes_of(trial)
    assert (changes[0].round, changes[0].deadline) == (0, LONG)
    assert changes[-1].deadline is not None
    assert changes[-1].deadline < LONG / 10
    assert [outcome.used <= NODES - 1 for outcome in rounds] == [True] * len(rounds)
    assert sum(outcome.succeeded for outcome in rounds) == 2
