"""The goal from a caller's arguments: words, prices, nothing, and mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import Prices, ToAccuracy, ToGap, plan
from cafe.planner.goal_choice import choose_goal

WHO = Federation(50, Exponential(1.0))


def test_words_are_goals() -> None:
    for word in ("time", "client-seconds"):
        goal, notes = choose_goal(WHO, word, None, None)
        assert isinstance(goal, ToAccuracy)
        assert goal.spend == word
        assert goal.noise_ratio == 1.0
        assert len(notes) == 1
    goal, notes = choose_goal(WHO, "j", 2.0, 3.0)
    assert (goal, notes) == (Prices(2.0, 3.0), ())


def test_one_price_is_enough() -> None:
    goal, notes = choose_goal(WHO, None, None, 3.0)
    assert goal == Prices(0.0, 3.0)
    assert "waste costs nothing" in notes[0]
    goal, notes = choose_goal(WHO, None, 2.0, None)
    assert goal == Prices(2.0, 0.0)
    assert "broadcasts cost nothing" in notes[0]


def test_what_is_given_is_not_called_assumed() -> None:
    full, (note,) = choose_goal(WHO, ToAccuracy("time", 0.5, 0.1), None, None)
    assert full == ToAccuracy("time", 0.5, 0.1)
    assert "assumed" not in note
    assert "noise ratio" not in choose_goal(WHO, ToAccuracy(noise_ratio=2.0), None, None)[1][0]
    gap = ToGap.from_ratio(1.0, overhead=1.0)
    assert choose_goal(WHO, gap, None, None) == (gap, ())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"goal": "tim"}, "Did you mean 'time'"),
        ({"goal": "cost"}, "'time', 'client-seconds', 'j'"),
        ({"goal": "j"}, "needs a waste price"),
        ({"goal": 3}, "Got 3"),
        ({"goal": ToAccuracy}, "must be one of"),
        ({"goal": "time", "waste_price": 1.0}, "not both"),
        ({"goal": ToAccuracy(), "waste_price": 1.0}, "not both"),
        ({"waste_price": -1.0}, "waste price"),
        ({"waste_price": "1"}, "waste price"),
        ({"at_most": "waste"}, "must look like waste=30"),
        ({"at_most": ["waste=3"]}, "must map the names"),
        ({"at_least": 3}, "must map the names"),
        ({"at_most": {"waste": "3"}}, "finite number"),
    ],
)
def test_wrong_calls_are_sentences(arguments: dict[str, Any], words: str) -> None:
    if arguments.get("goal") is ToAccuracy:
        arguments = {"goal": object()}
    with pytest.raises(InputError, match=words):
        plan(WHO, **arguments)


def test_limits_may_be_text() -> None:
    made = plan(WHO, at_most="deadline=1, waste=100", at_least="success-probability=0.5")
    same = plan(WHO, at_most={"deadline": 1, "waste": 100}, at_least={"success_probability": 0.5})
    assert made.local_optima == same.local_optima
