from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Constant, Exponential
from cafe.theory import expect

if TYPE_CHECKING:
    from tests.support.theory_oracles import Game


def test_other_quantities_agree_with_simulation(game: Game) -> None:
    """Quantities that have no test file of their own."""
    played, found = game.played, game.expected
    came = played.came.sum(axis=1)
    game.agree(found.success_probability, played.success)
    game.agree(found.everybody_probability, came == game.invited)
    game.agree(found.expected_reports, came)
    game.agree(found.round_duration, played.length)
    game.agree(found.client_seconds, played.work, played.success)
    game.agree(found.participation_by_client, played.used)
    used = played.used.sum(axis=1)
    game.agree(found.share_by_client, played.used / np.maximum(used, 1)[:, None])
    game.agree(found.noise_factor, played.success / np.maximum(used, 1))
    if game.cohort is None:
        others = (came[:, None] - played.came) >= game.quorum - 1
        game.agree(found.merit, game.quorum * others.mean(axis=1))


def test_parts_add_up_to_wholes(game: Game) -> None:
    found = game.expected
    # With a cohort and a target, shares are integrals over time with a larger error.
    close = 1e-11 if game.cohort is None or game.target is None else 1e-6
    if game.target is not None:
        close = max(close, 1e-9)
    assert found.share_by_client.sum() == pytest.approx(found.success_probability, rel=close)
    assert found.mean_share == pytest.approx(found.share_by_client.mean(), rel=close)
    used = found.participation_by_client.sum()
    assert used == pytest.approx(found.reports_per_update * found.success_probability, rel=1e-11)
    assert found.broadcasts * found.success_probability == pytest.approx(1.0)
    assert found.messages == pytest.approx(game.invited * found.broadcasts)
    assert found.waste_per_round * found.broadcasts == pytest.approx(found.waste)
    assert found.waste_per_time * found.update_interval == pytest.approx(found.waste)
    assert found.waste_per_gradient * found.reports_per_update == pytest.approx(found.waste)
    even = found.success_probability / game.federation.clients
    distance = np.abs(found.share_by_client - even).sum() / (2 * found.success_probability)
    assert found.bias == pytest.approx(distance, abs=1e-14)


def test_bias() -> None:
    assert expect(Federation(9, Exponential(1.0)), quorum=3, deadline=0.5).bias < 1e-13
    # One client always reports, the others hardly ever.
    slow = Federation.join(Federation(1, Constant(0.1)), Federation(9, Exponential(1e-9)))
    assert expect(slow, quorum=1, deadline=1.0).bias == pytest.approx(0.9, abs=1e-6)


def test_expectation_as_a_dictionary(game: Game) -> None:
    scalars = game.expected.to_dict()
    for name, value in scalars.items():
        assert value == getattr(game.expected, name)
        assert value is None or type(value) in (int, float), name
    missing = {name for name, value in scalars.items() if value is None}
    wanted = set()
    if game.target is not None and game.target < game.invited:
        wanted = {"absent_waste", "agu_waste", "agu_waste_union"}
    elif game.cohort is not None:
        wanted = {"agu_waste", "agu_waste_union"}
    assert missing == wanted
    assert ("cohort" in scalars) == (game.cohort is not None)
    assert ("target" in scalars) == (game.target is not None)


def test_step_time_is_part_of_the_latency() -> None:
    """A memoryless client that first computes for 5 x 0.1: 1 - exp(-(1 - 0.5)) report by 1."""
    federation = Federation(10, Exponential(1.0), per_step=0.1)
    found = expect(federation, quorum=1, deadline=1.0, steps=5)
    assert found.expected_reports == pytest.approx(10 * (1 - np.exp(-0.5)), rel=1e-14)
    assert expect(federation, quorum=1, deadline=1.0).expected_reports == pytest.approx(
        10 * (1 - np.exp(-0.9)), rel=1e-14
    )
    assert expect(federation, quorum=1, deadline=1.0, steps=10).success_probability == 0.0


def test_steps_without_time_change_no_bit() -> None:
    federation = Federation.exponential([0.3, 1.0, 2.0], [0.5, 1.0, 0.9])
    one = expect(federation, quorum=2, deadline=1.0, target=3)
    assert expect(federation, quorum=2, deadline=1.0, target=3, steps=7).to_dict() == one.to_dict()


@pytest.mark.parametrize("steps", [0, -1, 1.0, True, "5", None, 2**60, 10**400])
def test_steps_are_a_whole_number(steps: Any) -> None:
    for per_step in (0.0, 0.1):
        federation = Federation(3, Exponential(1.0), per_step=per_step)
        with pytest.raises(InputError, match="steps must be a whole number"):
            expect(federation, quorum=1, deadline=1.0, steps=steps)


def test_a_federation_is_needed() -> None:
    wrong: Any = "fleet.toml"
    with pytest.raises(InputError, match=r"federation must be a cafe\.Federation"):
        expect(wrong, quorum=1, deadline=1.0)


def test_figures_are_calculated_once() -> None:
    found = expect(Federation(5, Exponential(1.0)), quorum=2, deadline=1.0)
    assert found.age_by_client is found.age_by_client
    assert found.setting.turnout is found.setting.turnout
