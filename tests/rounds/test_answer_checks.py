"""Wrong answers: the message names the policy, the decision, the answer and what is allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.errors import InputError
from cafe.policies import mcu
from cafe.reference import Reference
from cafe.rounds import COMMIT, RUN, Carried, Invitation, Ledger, Merge, Policy, Wait

ENGINES = pytest.mark.parametrize("engine", [Run, Reference])
FLOATS: Any = np.ones(3)
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
WHO = cafe.Federation(3, cafe.Constant(0.2))


def answering(decision: str, answer: Any) -> Policy:
    changed: Any = {decision: lambda *_: answer, "name": "mine"}
    return replace(mcu(quorum=1, deadline=0.5), **changed)


def refusal(engine: Any, policy: Policy) -> str:
    run = engine(WHO, policy)
    with pytest.raises(InputError) as caught:
        run.step()
    return str(caught.value)


WRONG = [
    ("close", True, "Wait(...), COMMIT, FAIL or an Invitation"),
    ("close", "commit", "Wait(...), COMMIT, FAIL or an Invitation"),
    ("close", None, "Wait(...), COMMIT, FAIL or an Invitation"),
    ("close", Wait(reports=1.5), "a Wait with a whole number of reports"),  # type: ignore[arg-type]
    ("close", Wait("soon"), "a Wait whose until is a time"),  # type: ignore[arg-type]
    ("invite", None, "an Invitation"),
    ("invite", np.array([0, 1]), "Invitation(clients)"),
    ("invite", [0, 1], "Invitation(clients)"),
    ("merge", None, "a Merge"),
    ("merge", np.ones(3), "Merge(coefficient)"),
    ("merge", 0.5, "a Merge"),
    ("carry", None, "a Carried"),
    ("carry", RUN, "Carried(RUN)"),
    ("carry", [0, 0, 0], "Carried(codes)"),
]


@ENGINES
@pytest.mark.parametrize(("decision", "answer", "allowed"), WRONG)
def test_wrong_types_are_refused(engine: Any, decision: str, answer: Any, allowed: str) -> None:
    text = refusal(engine, answering(decision, answer))
    assert text.startswith("The policy mine must return ")
    assert f" in {decision}. Got {answer!r}" in text
    assert allowed in text


@ENGINES
@pytest.mark.parametrize(
    ("decision", "answer", "told"),
    [
        ("merge", Merge(np.ones(2)), "a coefficient for each of the 3 reports"),
        ("carry", Carried(np.array([0, 0])), "a code for each of the 3 jobs"),
        ("carry", Carried(np.array([0, 0, 8])), "a code for each of the 3 jobs"),
        (
            "carry",
            Carried(kept=np.ones(2, bool)),
            "kept is True or False, or one for each of the 3 clients",
        ),
        ("carry", Carried(RUN), "late='keep'"),
        ("invite", Invitation(np.arange(3), amount=np.ones(2, int)), "3 invited clients as amount"),
        ("invite", Invitation(np.arange(3), amount=np.zeros(3, int)), "whole numbers from 1 to"),
        ("invite", Invitation(np.arange(3), amount=np.full(3, 2**62)), "from 1 to 1000000000"),
        ("invite", Invitation(np.arange(3), note=np.full(3, np.nan)), "note has finite numbers"),
        ("invite", Invitation(np.arange(3), local=FLOATS), "3 invited clients as local"),
        ("close", Invitation(np.arange(0)), "an Invitation of at least one client"),
        ("close", Invitation(np.arange(3)), "client 0, whose last job still runs"),
    ],
)
def test_wrong_values_are_refused(engine: Any, decision: str, answer: Any, told: str) -> None:
    text = refusal(engine, answering(decision, answer))
    assert "mine" in text
    assert told in text


@ENGINES
@pytest.mark.parametrize(
    ("state", "got"),
    [
        ({"a": float("nan")}, "nan"),
        ((1, 2), "(1, 2) (a tuple)"),
        ({0: 1.0}, "the key 0"),
        ({"a": [1, {"b": np.float64(1)}]}, "float64"),
        (np.int64(3), "int64"),
        (ENDLESS, "contains itself"),
    ],
)
def test_a_state_must_survive_being_saved(engine: Any, state: Any, got: str) -> None:
    text = refusal(engine, answering("observe", state))
    assert text.startswith("The policy mine must return a state in observe")
    assert got in text


@ENGINES
def test_mean_without_reports_is_explained(engine: Any) -> None:
    text = refusal(engine, answering("close", COMMIT))
    assert text.startswith("The policy mine could not return a Merge in merge. ")
    assert "Mean needs at least one report" in text
    assert "Return FAIL in close" in text


@ENGINES
@pytest.mark.parametrize(
    "column", ["examples", "last_start", "last_round", "merged", "busy", "away", "local"]
)
def test_the_ledger_cannot_be_written(engine: Any, column: str) -> None:
    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        with pytest.raises(ValueError, match="read-only"):
            getattr(ledger, column)[0] = 1
        with pytest.raises(ValueError, match="read-only"):
            ledger.idle[0] = 1
        return Invitation(ledger.idle)

    engine(WHO, replace(mcu(quorum=1, deadline=0.5), invite=invite)).step()


@ENGINES
def test_invalid_merge_names_its_policy(engine: Any) -> None:
    policy = replace(answering("merge", None), merge=lambda *_: Merge(np.full(3, np.nan)))
    text = refusal(engine, policy)
    assert text.startswith("The policy mine could not return a Merge in merge. ")
    assert "finite coefficients" in text
