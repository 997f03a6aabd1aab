"""Runs that are saved and restored."""

from __future__ import annotations

import pytest

from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.policies import mcu
from cafe.rounds import (
    Policy,
)
from tests.support.policies import CLIENTS, federation, task
from tests.support.vectors import (
    every_policy,
    everybody,
    models,
)


@every_policy
@pytest.mark.parametrize("after", [0, 1, 2, 9])
def test_saved_and_restored_run_equals_an_uninterrupted_one(policy: Policy, after: int) -> None:
    def made() -> Run:
        return Run(federation(0.8), policy, task(), seed=6, crash=0.1)

    whole = made()
    for k in range(15):
        if k == after:
            put_down = save(whole)
        whole.step()
    taken_up = made()
    restore(taken_up, put_down)
    again = save(taken_up)
    assert {k: v.tobytes() for k, v in put_down.items()} == {
        k: v.tobytes() for k, v in again.items()
    }
    for _ in range(after, 15):
        taken_up.step()
    assert {k: v.tobytes() for k, v in save(whole).items()} == {
        k: v.tobytes() for k, v in save(taken_up).items()
    }


def test_checkpoint_stores_each_vector_once() -> None:
    """14 clients, 10 rounds: one vector per client and a common one, each stored once."""
    run = Run(federation(), everybody(CLIENTS), task(), seed=1)
    models(run, 10)
    assert run.training is not None
    assert len(run.training.vectors.own) == CLIENTS
    assert sum(name.startswith("vector.") for name in save(run)) == CLIENTS + 1
    none = Run(federation(), mcu(quorum=1, deadline=0.5), task(), seed=1)
    none.step()
    assert not any("vector" in name for name in save(none))
    assert b"vectors" not in bytes(save(none)["meta"])
