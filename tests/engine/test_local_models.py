"""Chains of jobs that lead from a global model to a report."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cafe.engine.job_chains import Link
from cafe.engine.local_models import ChainStore
from cafe.rounds.jobs import Running, Work

NOBODY = np.empty(0, dtype=np.intp)


def jobs(invitation: int, version: int, local: list[bool]) -> Running:
    n = len(local)
    columns = {name: np.resize(column, n) for name, column in vars(Running.empty()).items()}
    mine = {
        "client": np.arange(n),
        "invitation": np.full(n, invitation),
        "version": np.full(n, version),
        "steps": np.full(n, 2),
        "local": np.array(local),
    }
    return replace(Running.empty(), **columns | mine)


def test_a_job_that_continues_from_a_local_model_has_a_longer_chain() -> None:
    store = ChainStore()
    first = jobs(0, 0, [False, False])
    store.start(0, 0, Work(2), first)
    store.keep(first)
    second = jobs(1, 1, [True, False])
    store.start(1, 1, Work(2), second)
    chains = store.of_reports(second, np.arange(2), NOBODY)
    assert chains.chain(0) == (Link(0, 0, 2), Link(1, 1, 2))
    assert chains.chain(1) == (Link(1, 1, 2),)
    assert not chains.one_job


def test_chains_that_no_merge_can_use_are_removed() -> None:
    store = ChainStore()
    first, second = jobs(0, 0, [False, False]), jobs(1, 3, [False, False])
    store.start(0, 0, Work(), first)
    store.keep(first)
    store.start(1, 1, Work(), second)
    running = second.take(np.array([1]))
    assert store.forget_unused(running, np.array([True, False])) == {0, 3}
    assert store.kept.keys() == {0}
    assert store.invitations.keys() == {0, 1}
    assert store.forget_unused(Running.empty(), np.zeros(2, dtype=bool)) == set()
    assert not store.kept
    assert not store.invitations
