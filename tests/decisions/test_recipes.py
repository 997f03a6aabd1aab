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
from cafe.learn.quadratic import Quadratic
from cafe.policies import agu, awu, fedavg, mcu
from cafe.rounds import Policy

Recipe = Callable[..., Policy]


def taking(*times: float, **more: Any) -> cafe.Federation:
    return cafe.Federation(len(times), cafe.Constant(np.array(times)), **more)


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


@pytest.mark.parametrize(
    ("options", "closed", "succeeded"),
    [
        ({}, 4.0, True),
        ({"deadline": 9.0}, 4.0, True),
        ({"deadline": 3.5}, 3.5, True),
        ({"deadline": 3.5, "quorum": 4}, 3.5, False),
    ],
)
def test_when_a_round_of_fedavg_closes(
    options: dict[str, Any], closed: float, succeeded: bool
) -> None:
    policy = fedavg(fraction=1.0, **options)
    history = cafe.simulate(taking(1.0, 2.0, 3.0, 4.0), policy, rounds=1)
    assert (history.virtual_time, history.updates) == (closed, succeeded)


@pytest.mark.parametrize("recipe", [mcu, awu])
@pytest.mark.parametrize(
    ("options", "closed", "reports"),
    [
        ({"late": "drop"}, [2.0, 4.0], [1, 1]),
        ({"late": "keep"}, [2.0, 4.0], [1, 2]),
        ({"late": "keep", "close_when_all": True}, [2.0, 3.5], [1, 2]),
    ],
)
def test_who_is_late(
    recipe: Recipe, options: dict[str, Any], closed: list[float], reports: list[int]
) -> None:
    """Client 1 misses the first deadline. Kept, it reports at 3.5, after the other does at 3."""
    history = cafe.simulate(taking(1.0, 3.5), recipe(quorum=1, deadline=2.0, **options), rounds=2)
    assert history.by_round["closed"].tolist() == closed
    assert history.by_round["reports"].tolist() == reports


@pytest.mark.parametrize("recipe", [mcu, awu, agu])
def test_a_cohort_is_drawn_anew_each_round(recipe: Recipe) -> None:
    policy = recipe(quorum=1, deadline=5.0, cohort=2)
    history = cafe.simulate(taking(1.0, 2.0, 3.0, 4.0), policy, rounds=40)
    assert set(history.by_round["invited"]) == {2}
    assert np.all(history.merged_by_client > 0)


@pytest.mark.parametrize(
    ("fraction", "invited"), [(0.01, 1), (0.24, 2), (0.26, 3), (0.94, 9), (1.0, 10)]
)
def test_a_fraction_is_rounded_to_the_nearest(fraction: float, invited: int) -> None:
    history = cafe.simulate(taking(*[1.0] * 10), fedavg(fraction=fraction), rounds=1)
    assert history.jobs == invited


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
def test_a_report_takes_so_many_steps(policy: Policy, steps: int) -> None:
    """Each goes half of the way that is left from 0 to the only example, at 1."""
    point = Examples(np.ones((1, 1)), np.zeros(1))
    what = cafe.Task(point, Shards.of([np.array([0])]), Quadratic(1), rate=0.5)
    history = cafe.simulate(taking(1.0), policy, what, rounds=1)
    assert history.model == pytest.approx([1 - 0.5**steps])


@pytest.mark.parametrize(
    ("options", "before", "last"),
    [
        ({}, 1.0, (64 / 164, 100 / 164)),  # the paper's Q: min(age, 10)^2
        ({"unit": "rounds"}, 1.0, (4 / 20, 16 / 20)),
        ({"weight": "age"}, 1.0, (8 / 20, 12 / 20)),
        ({"weight": "age", "unit": "rounds"}, 1.0, (2 / 6, 4 / 6)),
        ({"weight": np.square}, 1.0, (64 / 208, 144 / 208)),
        ({"weight": np.square, "unit": "rounds"}, 1.0, (4 / 20, 16 / 20)),
        ({"weight": "linear"}, 1.0, (1 / 4, 3 / 4)),
        ({"weight": "unbiased"}, 1 / 2, (1 / 2, 3 / 2)),
    ],
)
def test_ages_weigh(options: dict[str, Any], before: float, last: tuple[float, float]) -> None:
    """Client 0 is alone in two rounds; client 1, begun at 0, is with it in the third.

    That closes at 12. Client 0 was last merged in the round before, from a job begun at 4: its age
    is 8, or 2 rounds. Client 1 was never merged: 12, or 4 rounds, with one more for its first.
    """
    policy = awu(deadline=4.0, late="keep", **options)
    first, second, third = (
        cafe.simulate(taking(2.0, 10.0), policy, rounds=rounds).weight_by_client
        for rounds in (1, 2, 3)
    )
    np.testing.assert_allclose(first, [before, 0])
    np.testing.assert_allclose(second - first, [before, 0])
    np.testing.assert_allclose(third - second, last)


@pytest.mark.parametrize(
    ("divisor", "weights"), [("reported", [1 / 3, 2 / 3, 0, 0]), ("all", [0.1, 0.2, 0, 0])]
)
def test_sizes_weigh(divisor: Any, weights: list[float]) -> None:
    """Of clients with 1, 2, 3 and 4 examples, the first two report."""
    who = taking(1.0, 2.0, 3.0, 4.0, examples=np.array([1, 2, 3, 4]))
    history = cafe.simulate(who, fedavg(fraction=1.0, deadline=2.5, divisor=divisor), rounds=1)
    np.testing.assert_allclose(history.weight_by_client, weights)
