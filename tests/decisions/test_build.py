"""From the arguments of recipes to decisions."""

from __future__ import annotations

from typing import Any

import pytest

from cafe.decisions import DeadlineQuorum, DropAll, Everyone, KeepRunning, Sample, closing
from cafe.decisions.build import carry_rule, invite_rule, non_defaults
from cafe.errors import InputError
from cafe.rounds import Work


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"deadline": 2.0}, None),
        ({"deadline": 2.0, "target": 5}, 5),
        ({"deadline": 2.0, "all_in": True}, "all"),
        ({"deadline": 2.0, "all_in": True, "target": 5}, 5),
        ({"deadline": None}, "all"),
    ],
)
def test_closing_declares_quorum_deadline_and_target(options: dict[str, Any], target: Any) -> None:
    given = closing(3, **options)
    assert given.pop("close") == DeadlineQuorum(3, **options)
    assert given == {"quorum": 3, "deadline": options["deadline"], "target": target}


def test_invite_rule_of_a_cohort_or_of_all() -> None:
    assert invite_rule(None, 2) == Everyone(Work(2))
    assert invite_rule(4, 2) == Sample(4, Work(2))


def test_rule_for_late_jobs() -> None:
    assert (carry_rule("drop"), carry_rule("keep")) == (DropAll(), KeepRunning())
    with pytest.raises(InputError, match=r"late must be 'drop' or 'keep'\. Got 'kep'.*'keep'"):
        carry_rule("kep")


def test_arguments_that_differ_from_the_defaults() -> None:
    def recipe(quorum: int, deadline: float = 1.0, late: str = "drop") -> None: ...

    given = {"quorum": 3, "deadline": 1.0, "late": "keep"}
    assert non_defaults(recipe, given) == {"quorum": 3, "late": "keep"}
