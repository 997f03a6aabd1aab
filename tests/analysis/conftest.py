"""Runs that several tests read."""

from __future__ import annotations

import pytest

from tests.support.runs import Run, learned_runs, ledger_runs


@pytest.fixture(scope="session")
def learned() -> list[Run]:
    return learned_runs()


@pytest.fixture(scope="session")
def ledgers() -> list[Run]:
    return ledger_runs()
