from __future__ import annotations

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import Constant, Exponential, Uniform
from cafe.theory import Setting, expect

FEDERATION = Federation(5, Exponential(1.0))


@pytest.mark.parametrize("quorum", [0, -3, 6, 2.0, 2.5, "2", True, None])
def test_a_bad_quorum_is_named(quorum: object) -> None:
    with pytest.raises(InputError, match=r"(?i)quorum.*" + str(quorum)):
        Setting(FEDERATION, quorum, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "deadline", [0, -1.5, 1e-200, float("nan"), float("inf"), "soon", None, 1j]
)
def test_a_bad_deadline_is_named(deadline: object) -> None:
    with pytest.raises(InputError, match=r"(?i)deadline.*" + str(deadline)):
        Setting(FEDERATION, 2, deadline)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"(?i)deadline.*" + str(deadline)):
        expect(FEDERATION, quorum=2, deadline=deadline)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("quorum", "target"), [(3, 0), (3, 2), (3, 6), (3, -1), (3, 4.0), (3, "4"), (1, True)]
)
def test_a_bad_target_is_named(quorum: int, target: object) -> None:
    with pytest.raises(InputError, match=r"(?i)target.*Got " + str(target)):
        Setting(FEDERATION, quorum, 1.0, target)  # type: ignore[arg-type]


def test_step_time_must_be_in_the_latency() -> None:
    federation = Federation(5, Exponential(1.0), per_step=0.1)
    with pytest.raises(InputError, match=r"per_step is above 0: pass federation.at_steps"):
        Setting(federation, 2, 1.0)
    assert Setting(federation.at_steps(2), 2, 1.0).turnout.mean > 0


def test_numpy_numbers_are_accepted() -> None:
    quorum, target = np.int64(2), np.int32(4)
    found = expect(FEDERATION, quorum=quorum, deadline=np.float64(1), target=target)  # type: ignore[arg-type]
    plain = expect(FEDERATION, quorum=2, deadline=1.0, target=4)
    assert found.to_dict() == plain.to_dict()
    assert type(found.quorum) is int
    assert type(found.deadline) is float


def test_a_round_lasts_until_the_deadline_unless_there_is_a_target() -> None:
    duration = Setting(FEDERATION, 2, 0.7).duration
    assert duration.mean == 0.7
    assert duration.second == pytest.approx(0.49)
    assert Setting(FEDERATION, 2, 0.7, 5).duration.mean < 0.7


def test_target_of_all_clients_changes_no_count() -> None:
    """All reports are used with and without the target; only time is saved."""
    wait, close = Setting(FEDERATION, 2, 0.7), Setting(FEDERATION, 2, 0.7, 5)
    assert close.target_turnout is None
    np.testing.assert_array_equal(wait.participation, close.participation)
    assert wait.work == pytest.approx(close.work, rel=1e-10)


def test_lower_target_uses_fewer_reports() -> None:
    used = [Setting(FEDERATION, 2, 1.5, target).used for target in (2, 3, 4, 5)]
    assert np.all(np.diff(used) > 0)
    length = [Setting(FEDERATION, 2, 1.5, target).duration.mean for target in (2, 3, 4, 5)]
    assert np.all(np.diff(length) > 0)


def test_a_target_at_the_quorum_uses_the_quorum() -> None:
    setting = Setting(Federation.exponential([0.5, 1.0, 2.0, 4.0]), 3, 0.9, 3)
    assert setting.used == pytest.approx(3 * setting.turnout.success, rel=1e-9)


@pytest.mark.parametrize("cohort", [2, 0, -1, 6, 4.0, "4", True])
def test_a_bad_cohort_is_named(cohort: object) -> None:
    with pytest.raises(InputError, match=r"The cohort must be .*the quorum \(3\).*Got"):
        Setting(FEDERATION, 3, 1.0, None, cohort)  # type: ignore[arg-type]


def test_a_target_above_the_cohort_is_named() -> None:
    with pytest.raises(InputError, match=r"number of invited clients \(4\). Got 5"):
        Setting(FEDERATION, 3, 1.0, 5, 4)


@pytest.mark.parametrize("target", [None, 5, 4])
def test_a_cohort_of_all_clients_changes_no_bit(target: int | None) -> None:
    for who in (FEDERATION, Federation.exponential([0.3, 0.6, 1.0, 2.0, 4.0], 0.9)):
        plain = expect(who, quorum=3, deadline=0.8, target=target)
        every = expect(who, quorum=3, deadline=0.8, target=target, cohort=5)
        assert every.setting.cohort is None
        assert every.to_dict() == plain.to_dict()
        np.testing.assert_array_equal(every.age_by_client, plain.age_by_client)


def test_a_cohort_worked_out_by_hand() -> None:
    """Three clients report by 1 with certainty, never, and with probability 1/2; two are invited.

    Pairs: {always, never}: 1 report. {always, half}: 1 or 2. {never, half}: 0 or 1. So n is 0, 1, 2
    with probabilities 1/6, 4/6, 1/6.
    """
    who = Federation.join(
        Federation(1, Constant(0.5)), Federation(1, Constant(9.0)), Federation(1, Uniform(0.5, 1.5))
    )
    found = expect(who, quorum=1, deadline=1.0, cohort=2)
    assert found.success_probability == pytest.approx(5 / 6)
    assert found.expected_reports == pytest.approx(1.0)
    assert found.everybody_probability == pytest.approx(1 / 6)
    assert found.messages == pytest.approx(12 / 5)
    assert found.waste_per_round == pytest.approx(1.0)
    assert found.participation_by_client == pytest.approx([2 / 3, 0, 1 / 3])
    assert found.share_by_client == pytest.approx([(1 + 0.75) / 3, 0, (0.25 + 0.5) / 3])
    assert found.noise_factor == pytest.approx(4 / 6 + 1 / 12)
    assert found.age_by_client == pytest.approx([0.5 + 1.5, np.inf, 0.5 + 3])
    both = expect(who, quorum=2, deadline=1.0, cohort=2)
    assert both.success_probability == pytest.approx(1 / 6)
    assert both.participation_by_client == pytest.approx([1 / 6, 0, 1 / 6])
