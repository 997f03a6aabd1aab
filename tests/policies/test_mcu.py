"""M-client update: two rounds worked out by hand."""

from __future__ import annotations

import pytest

import cafe
from cafe.policies import mcu
from cafe.rounds import Fate
from tests.support.federations import taking


def test_reports_at_the_deadline_are_averaged_if_they_reach_the_quorum() -> None:
    """Clients take 1, 2 and 3; the deadline is 2.5. The third is late in every round."""
    run = cafe.simulate(taking(1.0, 2.0, 3.0), mcu(quorum=2, deadline=2.5), rounds=2)
    assert run.by_round["closed"].tolist() == [2.5, 5.0]
    assert run.weight_by_client.tolist() == [1.0, 1.0, 0.0]
    assert {name: n for name, n in run.fates.items() if n} == {"fresh": 4, "late": 2}
    # Only the third client's work is wasted: until the deadline, in both rounds.
    assert run.by_round["waste"].tolist() == [2.5, 2.5]
    # Merged clients have the age of a round; the third was never merged.
    assert run.by_round["age"] == pytest.approx([(2.5 + 2.5 + 2.5) / 3, (2.5 + 2.5 + 5.0) / 3])


def test_a_round_below_the_quorum_wastes_all_work() -> None:
    run = cafe.simulate(taking(1.0, 2.0, 3.0), mcu(quorum=3, deadline=2.5), rounds=2)
    assert run.updates == 0
    assert run.by_round["fates"][:, [Fate.FAILED, Fate.LATE]].tolist() == [[2, 1], [2, 1]]
    # Charged to the close of the round, and to the report.
    assert run.by_round["waste"].tolist() == [7.5, 7.5]
    assert run.by_round["processing_waste"].tolist() == [1.0 + 2.0 + 2.5] * 2
