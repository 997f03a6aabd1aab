"""The soak in short: every kind of fault once or twice, and all of it accounted for."""

from __future__ import annotations

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from tests.flower.soak import soak


def test_a_short_soak_accounts_for_everything() -> None:
    found = soak(nodes=5, rounds=8, seed=7, apart=(2.0, 4.0), seconds=420.0)
    assert found["rounds"] == 8
    assert found["updates"] >= 3
    assert found["servers_started"] >= 2  # it was killed, and went on
    assert found["faults_injected"] >= 8
    assert found["announced_and_lost"] == 0
    assert found["replay_equals_model"]
    assert found["replayed_reports"] == found["reports_used"] > 0
