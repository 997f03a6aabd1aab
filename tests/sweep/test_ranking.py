"""Means and standard errors over seeds; the best settings first."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.sweep.measures import SweepMeasure
from cafe.sweep.ranking import rank_settings
from tests.support.finished_sweeps import RESULTS


def test_settings_are_ranked_by_their_mean() -> None:
    less = rank_settings(RESULTS, SweepMeasure("mean_age", "minimise"))
    assert [one.point for one in less] == [1, 0, 3, 2], "failed ones are last"
    assert less[0].estimate.mean == 2.5
    assert less[0].estimate.error == pytest.approx(np.std([1.0, 4.0], ddof=1) / np.sqrt(2))
    assert (less[3].failed, less[3].reason, less[3].estimate.count) == (1, "too much", 1)
    more = rank_settings(RESULTS[:4], SweepMeasure("mean_age", "maximise"))
    assert [one.point for one in more] == [0, 1]
