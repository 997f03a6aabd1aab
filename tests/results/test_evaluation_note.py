"""The sentence about the default evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cafe
from cafe.results import Result
from cafe.results.evaluation_note import evaluation_note
from cafe.rounds.history import Curve
from tests.support.small_tasks import drawn, taking


def result(rounds: int, evaluations: int, examples: int | None) -> Result:
    policy = cafe.policies.mcu(quorum=1, deadline=2.0)
    history = cafe.simulate(taking(1.0), policy, drawn(2.0), rounds=rounds, evaluate_every=rounds)
    assert history.curve is not None
    scores = [(rounds, (1.0, None))] * evaluations
    history = replace(history, curve=Curve.of(scores, history.by_round))
    return Result(history, {}, Path(), evaluated_on=examples)


def test_how_often_and_on_how_many() -> None:
    note = evaluation_note([result(20, 4, 1_000), result(20, 2, 2_000)])
    assert note is not None
    assert "about every 5 to 10 rounds on 1,000 to 2,000 test examples" in note
    assert "evaluate_every in [run]" in note


def test_only_at_the_end() -> None:
    note = evaluation_note([result(20, 1, 1_000)])
    assert note is not None
    assert "once, at the end, on 1,000 test examples" in note


def test_nothing_is_said_if_it_was_not_limited() -> None:
    assert evaluation_note([result(20, 4, None)]) is None
