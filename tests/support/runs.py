"""Runs for tests: a few policies and seeds on a small task, and made-up ones of any size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cafe.data import Examples, Shards
from cafe.engine import simulate
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.learn.linear import Logistic
from cafe.policies import agu, awu, mcu
from cafe.rounds import Curve, Fate, History
from cafe.task import Task


@dataclass(frozen=True, eq=False)
class Run:
    """A result as reports see it."""

    history: History
    provenance: Mapping[str, Any] = field(default_factory=dict)
    federation: Federation | None = None
    finished: bool = True


def federation(clients: int = 20) -> Federation:
    rates = np.linspace(0.5, 2.0, clients)
    return Federation(clients, Exponential(rates), kind=np.arange(clients))


def played(policy: Any, seed: int = 0, rounds: int = 60, *, task: Task | None = None) -> Run:
    who = federation()
    history = simulate(who, policy, task, rounds=rounds, seed=seed, evaluate_every=3)
    told = {"version": "1.2.3", "policy": str(policy), "seed": seed, "text": "[run]\nrounds = 9\n"}
    return Run(history, told, who)


def small_task(clients: int = 20) -> Task:
    rng = np.random.default_rng(0)
    y = np.arange(clients * 6) % 3
    x = np.eye(3, dtype=np.float32)[y] + rng.normal(0, 0.8, (len(y), 3)).astype(np.float32)
    shards = Shards(np.arange(len(y)), np.arange(0, len(y) + 1, 6))
    return Task(Examples(x, y), shards, Logistic(3, 3, 1e-3), batch=None, rate=0.2)


POLICIES = (
    mcu(quorum=11, deadline=0.7),
    awu(quorum=11, deadline=0.7, weight="unbiased"),
    agu(quorum=11, deadline=0.7),
)


def made_up(policy: str, seed: int, rounds: int, clients: int, *, curve: bool = True) -> History:
    """A history of any size, made without a run; its numbers have no meaning."""
    rng = np.random.default_rng(seed)
    closed = np.cumsum(rng.uniform(0.5, 1.5, rounds))
    columns: dict[str, Any] = {
        "round": np.arange(rounds),
        "opened": np.concatenate([[0.0], closed])[:-1],
        "closed": closed,
        "succeeded": rng.random(rounds) < 0.7,
        "fates": rng.integers(0, 9, (rounds, len(Fate))),
        "age": rng.uniform(1, 5, rounds),
    }
    for name in ("invited", "reports", "used", "reused", "downloads", "bytes_down", "bytes_up"):
        columns[name] = rng.integers(1, clients, rounds)
    for name in ("waste", "processing_waste", "absent_waste", "work"):
        columns[name] = rng.uniform(0, clients, rounds)
    columns["work_by_fate"] = np.outer(columns["work"], np.full(len(Fate), 1 / len(Fate)))
    after = np.arange(1, rounds + 1)
    way = after / rounds
    learned = Curve(after, closed, after, np.cumsum(columns["work"]), 2 - way, 0.9 * way)
    return History(
        policy,
        seed,
        columns,
        age_by_client=rng.uniform(1, 50, clients),
        merged_by_client=rng.integers(0, 9, clients),
        weight_by_client=rng.random(clients),
        open_jobs=3,
        curve=learned if curve else None,
    )


def never_succeeding(rounds: int = 40) -> Run:
    who = federation()
    history = simulate(who, mcu(quorum=20, deadline=0.01), rounds=rounds)
    return Run(history, {}, who)


MCU, AWU = "mcu(quorum=1, deadline=2)", "awu(quorum=1, deadline=2)"


@dataclass(frozen=True, eq=False)
class Kept(Run):
    """A run in a folder."""

    folder: Path = Path()


def kept(
    where: str = "a", policy: str = MCU, seed: int = 0, *, rounds: int = 9, **settings: Any
) -> Kept:
    label = policy[:3]
    told = {"federation": {"clients": 4}, "files": {}, "policy": policy, "run": {}} | settings
    text = '[policy]\nname = "mcu"\n[policies.awu]\n[policies.agu]\n'
    begun = {"label": label, "settings": told, "text": text}
    folder = Path("results") / where / f"{label}-seed-{seed}"
    return Kept(made_up(policy, seed, rounds, 4), begun, federation(4), folder=folder)


def learned_runs() -> list[Run]:
    """Three policies, three seeds each, with a task."""
    task = small_task()
    return [played(policy, seed, task=task) for policy in POLICIES for seed in (0, 1, 2)]


def ledger_runs() -> list[Run]:
    """One run of each policy, without a task."""
    return [played(policy, rounds=200) for policy in POLICIES]
