"""Runs that several tests read."""

from __future__ import annotations

import pytest

from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import Plan, plan
from tests.support.runs import Run, learned_runs, ledger_runs


@pytest.fixture(scope="session")
def learned() -> list[Run]:
    return learned_runs()


@pytest.fixture(scope="session")
def ledgers() -> list[Run]:
    return ledger_runs()


@pytest.fixture(scope="session")
def made() -> Plan:
    """A plan for fifty equal clients."""
    return plan(Federation(50, Exponential(1.0)), waste_price=20, broadcast_price=100)
