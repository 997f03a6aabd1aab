"""Policies that need scores: when a server evaluates for them, and what happens without a score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine.policy_calls import score_is_due
from cafe.errors import InfeasibleError, InputError
from cafe.live.server import serve
from cafe.policies import mcu
from cafe.rounds import Ledger, Policy
from cafe.rounds.ledger import ModelScore
from tests.support.serving import config, stopped_after, wire


def watching(seen: list[Any], **given: Any) -> Policy:
    """A policy that notes the version and the score's version of each round."""
    base = mcu(quorum=1, deadline=5.0)

    def invite(ledger: Ledger, rng: np.random.Generator) -> Any:
        seen.append((ledger.version, ledger.score and ledger.score.version))
        return base.invite(ledger, rng)

    return replace(base, invite=invite, needs=frozenset({"scores"}), **given)


def test_a_score_is_due_if_it_is_missing_or_too_old() -> None:
    policy = replace(mcu(quorum=1, deadline=1.0), needs=frozenset({"scores"}), score_every=3)
    ledger = Ledger.new(np.ones(2, dtype=np.int64))
    assert score_is_due(policy, ledger)
    assert not score_is_due(mcu(quorum=1, deadline=1.0), ledger)
    ledger.score, ledger.version = ModelScore(1.0, None, 4), 6
    assert not score_is_due(policy, ledger)
    ledger.version = 7
    assert score_is_due(policy, ledger)


def test_first_round_has_a_score_and_later_ones_are_new_enough(tmp_path: Path) -> None:
    seen: list[Any] = []
    policy = watching(seen, score_every=2)
    given = config(policy, evaluate=lambda model: (1.0, None), evaluate_every=99, updates=5)
    history = serve(wire(), given, tmp_path)
    assert seen == [(0, 0), (1, 0), (2, 2), (3, 2), (4, 4)]
    assert history.curve is not None
    assert history.curve.updates.tolist() == [0, 2, 4, 5]  # the last model is always evaluated


def test_scores_of_clients(tmp_path: Path) -> None:
    seen: list[Any] = []
    at = wire(judge=lambda name, model: (2.0, 0.5, 10))
    serve(at, config(watching(seen), evaluate="clients", updates=2), tmp_path)
    assert seen == [(0, 0), (1, 1)]


def test_controller_may_change_to_a_policy_that_needs_scores(tmp_path: Path) -> None:
    seen: list[Any] = []
    scored, plain = watching(seen), mcu(quorum=1, deadline=5.0)

    def controller(ledger: Ledger, times: Any) -> Policy:
        return scored if ledger.version in (2, 3, 6) else plain

    given = config(controller, evaluate=lambda model: (1.0, None), evaluate_every=99, updates=7)
    serve(wire(), given, tmp_path)
    assert seen == [(2, 2), (3, 3), (6, 6)]


def test_run_without_its_first_score_stops_and_can_be_resumed(tmp_path: Path) -> None:
    seen: list[Any] = []
    said: list[str] = []
    broken = True

    def evaluate(model: Any) -> tuple[float, None]:
        if broken:
            raise ValueError("no data")
        return 1.0, None

    given = config(watching(seen, name="curious"), evaluate=evaluate, rounds=2)
    words = (
        r"curious needs scores, and version 0 was not evaluated: .*ValueError: no data\. Correct"
    )
    with pytest.raises(InfeasibleError, match=words):
        serve(wire(), given, tmp_path, say=said.append)
    assert not seen
    broken = False
    serve(wire(), given, tmp_path)
    assert seen == [(0, 0), (1, 1)]


def test_a_later_evaluation_may_fail(tmp_path: Path) -> None:
    """The policy then sees the last score, and the model is evaluated once per version."""
    seen: list[Any] = []
    calls: list[int] = []

    def evaluate(model: Any) -> tuple[float, None]:
        calls.append(len(seen))
        if len(seen) == 1:
            raise ValueError("no data")
        return 1.0, None

    serve(wire(), config(watching(seen), evaluate=evaluate, rounds=3), tmp_path)
    assert seen == [(0, 0), (1, 0), (2, 2)]
    assert calls == [0, 1, 2, 3]


def test_score_survives_a_stop(tmp_path: Path) -> None:
    policy = replace(mcu(quorum=1, deadline=5.0), needs=frozenset({"scores"}), score_every=5)
    at, calls = wire(), list[int]()

    def evaluate(model: Any) -> tuple[float, None]:
        calls.append(len(at.orders))
        return 1.0, None

    given = config(policy, evaluate=evaluate, evaluate_every=99, rounds=4)
    stopped_after(2, tmp_path, at, given)
    assert len(calls) == 1
    serve(at, given, tmp_path)
    assert len(calls) == 2  # only the last model


def test_server_that_does_not_evaluate_refuses(tmp_path: Path) -> None:
    at = wire()
    with pytest.raises(InputError, match=r"mcu needs scores, but the server does not evaluate"):
        serve(at, config(watching([])), tmp_path)
    assert not at.orders


def test_engine_sees_the_same_versions() -> None:
    seen: list[Any] = []
    task = cafe.testing.check.small_task(6)
    who = cafe.Federation(6, cafe.Exponential(2.0))
    cafe.simulate(who, watching(seen, score_every=2), task, updates=5)
    rounds = seen[-5:]
    assert rounds == [(0, 0), (1, 0), (2, 2), (3, 2), (4, 4)]
