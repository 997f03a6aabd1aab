"""Factors by hour of the day: recovery from a log, and the federation at an hour."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from cafe.fitting.time_of_day import find_time_of_day
from cafe.latency import LogNormal
from cafe.presence import ByHour
from tests.support.timed_logs import MONDAY, make_timed_log


def true_federation(_: cafe.Observations | None = None) -> cafe.Federation:
    """Clients with the spread of the log but equal medians, available in 90 % of the rounds."""
    return cafe.Federation(40, LogNormal(2.0, np.sqrt(0.5**2 + 0.4**2)), availability=0.9)


DAYTIME = np.arange(6, 18)
NIGHT = np.setdiff1d(np.arange(24), DAYTIME)


@pytest.mark.slow
@pytest.mark.parametrize(("slower", "away"), [(1.4, 0.0), (1.0, 0.2), (1.3, 0.2)])
def test_factors_are_recovered(slower: float, away: float) -> None:
    seen = make_timed_log(np.random.default_rng(11), days=21, cohort=20, slower=slower, away=away)
    found = find_time_of_day(seen, true_federation)
    assert found.has_pattern
    ratio = found.slower[DAYTIME].mean() / found.slower[NIGHT].mean()
    assert ratio == pytest.approx(slower, rel=0.12)
    share = found.present[DAYTIME].mean() / found.present[NIGHT].mean()
    assert share == pytest.approx((0.9 - away) / 0.9, rel=0.1)


def test_a_quiet_log_has_no_factors() -> None:
    def unused(_: cafe.Observations) -> cafe.Federation:
        raise AssertionError("the clients are only fitted if there is a pattern")

    found = find_time_of_day(make_timed_log(np.random.default_rng(12)), unused)
    assert not found.has_pattern
    assert found.findings == ()
    assert found.slower.tolist() == [1.0] * 24
    assert found.present.tolist() == [1.0] * 24
    json.dumps(found.to_dict())


def patterned() -> tuple[cafe.Federation, cafe.fitting.TimeOfDay]:
    seen = make_timed_log(np.random.default_rng(13), days=14, slower=1.5, away=0.3)
    federation = true_federation()
    return federation, find_time_of_day(seen, lambda _: federation)


def test_the_federation_at_an_hour() -> None:
    federation, found = patterned()
    noon, night = found.at(12), found.at(0)
    assert noon.latency.mean() > 1.2 * night.latency.mean()
    assert np.max(noon.availability) < np.min(night.availability) <= 1.0
    average = found.federation.latency.mean()
    assert noon.latency.mean() == pytest.approx(average * found.slower[12])
    assert np.exp(np.mean(np.log(found.slower))) == pytest.approx(1.0, rel=0.01)
    assert np.max(night.availability) <= 1 / np.max(federation.availability)
    for wrong in (24, -1, 1.5, "noon"):
        with pytest.raises(InputError, match="hour"):
            found.at(wrong)  # type: ignore[arg-type]


def test_clients_are_fitted_again_without_the_hours() -> None:
    seen = make_timed_log(np.random.default_rng(16), days=14, slower=2.0, spread=0.2)
    given: list[cafe.Observations] = []

    def federation(observations: cafe.Observations) -> cafe.Federation:
        given.append(observations)
        return true_federation()

    found = find_time_of_day(seen, federation)
    assert given[0] is seen
    assert len(given) == 2
    assert found.federation is found.federation
    assert seen.sent is not None
    hour = (seen.sent % 86400 // 3600).astype(int)
    both = seen.reported
    factor = (seen.seconds / given[1].seconds)[both]
    by_day = np.isin(hour[both], DAYTIME)
    assert factor[by_day].mean() / factor[~by_day].mean() == pytest.approx(2.0, rel=0.15)
    np.testing.assert_allclose((seen.deadline / given[1].deadline)[both], factor)


def test_the_presence_by_hour() -> None:
    _, found = patterned()
    made = found.by_hour()
    assert isinstance(made.presence, ByHour)
    share = np.array(made.presence.share)
    assert share.max() == 1.0
    # Availability times presence is the availability at each hour.
    at_hours = [np.max(found.at(hour).availability) for hour in range(24)]
    np.testing.assert_allclose(share * np.max(made.availability), at_hours, atol=2e-3)


def test_hours_without_rows_are_unknown() -> None:
    seen = make_timed_log(np.random.default_rng(14), days=10, slower=1.5)
    assert seen.sent is not None
    office = (seen.sent % 86400 >= 4 * 3600) & (seen.sent % 86400 < 20 * 3600)
    part = cafe.Observations(
        seen.seconds[office], seen.deadline[office], seen.client[office], seen.sent[office]
    )
    found = find_time_of_day(part, true_federation)
    assert np.isnan(found.slower[[0, 3, 20, 23]]).all()
    with pytest.raises(
        InputError, match=r"no requests in the hour 3 UTC.*Hours with requests: 4, 5"
    ):
        found.at(3)
    presence = found.by_hour().presence
    assert isinstance(presence, ByHour)
    assert all(0 < share <= 1 for share in presence.share)


def test_a_fit_without_times_has_no_time_of_day() -> None:
    with pytest.raises(InputError, match="Pass --sent"):
        cafe.fit([1.0, 2.0, 3.0]).time_of_day()


def test_a_fit_with_times_is_tested() -> None:
    rng = np.random.default_rng(15)
    sent = MONDAY + 3600.0 * np.arange(200)
    found = cafe.fit(cafe.Observations(rng.exponential(5.0, 200), sent=sent))
    assert len(found.time_of_day().tests) == 4
    assert found.time_of_day().days == pytest.approx(199 / 24)
