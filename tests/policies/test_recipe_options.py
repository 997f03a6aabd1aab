"""What each option of a recipe does, in numbers worked out by hand.

Response times are constant here: client k of ``taking(1.0, 2.0)`` always takes k + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.errors import InputError
from cafe.learn.quadratic import Quadratic
from cafe.policies import age_of_update, agu, awu, fedavg, fedbuff, mcu, oort, refl
from cafe.rounds import Policy
from tests.support.federations import taking

Recipe = Callable[..., Policy]


@pytest.mark.parametrize("recipe", [mcu, awu, agu])
@pytest.mark.parametrize(
    ("options", "closed", "reports", "succeeded"),
    [
        ({"quorum": 3, "deadline": 3.5}, 3.5, 3, True),
        ({"quorum": 4, "deadline": 3.5}, 3.5, 3, False),
        ({"quorum": 1, "deadline": 9.0}, 9.0, 4, True),
        ({"quorum": 1, "deadline": 9.0, "close_when_all": True}, 4.0, 4, True),
        ({"quorum": 1, "deadline": 9.0, "target": 2}, 2.0, 2, True),
        ({"quorum": 1, "deadline": 9.0, "target": 2, "close_when_all": True}, 2.0, 2, True),
        ({"quorum": 1, "deadline": 1.5, "target": 2}, 1.5, 1, True),
    ],
)
def test_when_a_round_closes(
    recipe: Recipe, options: dict[str, Any], closed: float, reports: int, succeeded: bool
) -> None:
    history = cafe.simulate(taking(1.0, 2.0, 3.0, 4.0), recipe(**options), rounds=1)
    found = (history.by_round[name][0] for name in ("closed", "reports", "succeeded"))
    assert tuple(found) == (closed, reports, succeeded)


@pytest.mark.parametrize("recipe", [mcu, awu])
@pytest.mark.parametrize(
    ("options", "closed", "reports"),
    [
        ({"late": "drop"}, [2.0, 4.0], [1, 1]),
        ({"late": "keep"}, [2.0, 4.0], [1, 2]),
        ({"late": "keep", "close_when_all": True}, [2.0, 3.5], [1, 2]),
    ],
)
def test_late_clients_are_dropped_or_kept(
    recipe: Recipe, options: dict[str, Any], closed: list[float], reports: list[int]
) -> None:
    """Client 1 misses the first deadline. If it is kept, it reports at 3.5, after client 0 at 3."""
    history = cafe.simulate(taking(1.0, 3.5), recipe(quorum=1, deadline=2.0, **options), rounds=2)
    assert history.by_round["closed"].tolist() == closed
    assert history.by_round["reports"].tolist() == reports


@pytest.mark.parametrize("steps", [1, 4])
def test_steps_and_epochs_exclude_each_other(steps: int) -> None:
    with pytest.raises(InputError, match=f"steps or epochs, not both. Got steps={steps} and"):
        fedavg(steps=steps, epochs=2)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (mcu(quorum=1, deadline=1.0, cohort=9), r"A cohort must be at most .* \(4\)\. Got 9"),
        (fedbuff(concurrency=9), r"concurrency must be .* Got 9\. Lower concurrency"),
        (age_of_update(channels=9), r"channels must be .* Got 9\. Lower channels"),
        (oort(goal=7, preferred=1.0), r"oort invites 9 clients, .* has 4\. Lower goal\."),
        (oort(goal=4, preferred=1.0, extra=2.0), r"invites 8 .* has 4\. Lower goal or extra\."),
        (refl(), r"refl invites 13 clients, but the federation has 4\. Lower its goal\."),
    ],
    ids=str,
)
def test_message_names_the_argument_that_is_too_large(policy: Policy, words: str) -> None:
    with pytest.raises(InputError, match=words):
        policy.invites(4)


@pytest.mark.parametrize("recipe", [mcu, awu, agu])
def test_new_cohort_is_drawn_in_each_round(recipe: Recipe) -> None:
    policy = recipe(quorum=1, deadline=5.0, cohort=2)
    history = cafe.simulate(taking(1.0, 2.0, 3.0, 4.0), policy, rounds=40)
    assert set(history.by_round["invited"]) == {2}
    assert np.all(history.merged_by_client > 0)


@pytest.mark.parametrize(
    ("policy", "steps"),
    [
        (mcu(quorum=1, deadline=2.0), 1),
        (mcu(quorum=1, deadline=2.0, steps=3), 3),
        (mcu(quorum=1, deadline=2.0, steps=3, cohort=1), 3),
        (awu(deadline=2.0), 1),
        (awu(deadline=2.0, steps=3), 3),
        (agu(quorum=1, deadline=2.0), 1),
        (agu(quorum=1, deadline=2.0, steps=3), 3),
        (fedavg(fraction=1.0), 1),
        (fedavg(fraction=1.0, epochs=3), 3),
        (fedavg(fraction=1.0, steps=3), 3),
    ],
    ids=str,
)
def test_report_has_the_given_number_of_steps(policy: Policy, steps: int) -> None:
    """Each step goes half of the remaining way from 0 to the only example, at 1."""
    point = Examples(np.ones((1, 1)), np.zeros(1))
    what = cafe.Task(point, Shards.of([np.array([0])]), Quadratic(1), rate=0.5)
    history = cafe.simulate(taking(1.0), policy, what, rounds=1)
    assert history.model == pytest.approx([1 - 0.5**steps])
