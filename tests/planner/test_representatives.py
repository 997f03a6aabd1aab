from __future__ import annotations

import numpy as np
import pytest

from cafe.federation import Federation
from cafe.latency import Exponential, LogNormal
from cafe.planner.representatives import representatives


def test_few_kinds_stay_as_they_are() -> None:
    federation = Federation.exponential([0.5, 1.0, 2.0])
    assert representatives(federation, 3) is federation


def test_the_share_of_reports_is_kept() -> None:
    rng = np.random.default_rng(0)
    many = Federation(3000, LogNormal(rng.normal(1.0, 0.7, 3000), 0.4), availability=0.8)
    few = representatives(many, 64)
    assert (few.clients, few.kinds) == (3000, 64)
    assert few.number.sum() == 3000
    for t in (1.0, 3.0, 10.0):
        wanted = float(many.number @ many.report(t))
        assert float(few.number @ few.report(t)) == pytest.approx(wanted, rel=0.02)


def test_only_the_availability_may_differ() -> None:
    share = np.linspace(0.2, 1.0, 500)
    few = representatives(Federation(500, Exponential(1.0), availability=share), 10)
    assert few.kinds == 10
    assert np.asarray(few.availability).mean() == pytest.approx(0.6, rel=0.01)
    assert np.all(np.diff(np.asarray(few.availability)) > 0)
