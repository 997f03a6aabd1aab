"""Runs that several tests read."""

from __future__ import annotations

import pytest

from tests.support.runs import POLICIES, Run, played, small_task


@pytest.fixture(scope="session")
def learned() -> list[Run]:
    """Three policies, three seeds each, with something to learn."""
    task = small_task()
    return [played(policy, seed, task=task) for policy in POLICIES for seed in (0, 1, 2)]


@pytest.fixture(scope="session")
def ledgers() -> list[Run]:
    """One run of each policy, nothing to learn."""
    return [played(policy, rounds=200) for policy in POLICIES]
