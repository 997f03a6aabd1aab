"""The log determines the model: a replay gives the same model to the bit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.live.aggregation import Combine, Median, Sum, Trimmed
from cafe.live.client_work import Job, Trained
from cafe.live.model_layout import Arrays
from cafe.live.replay import Replayed, replay
from cafe.live.run_log import JOBS
from cafe.live.server import serve
from cafe.policies import agu, awu, mcu
from cafe.rounds import HOLD, Carried, Closed, Ledger
from cafe.rounds.policy import Policy
from tests.support.chaos import Chaos
from tests.support.policies import unequal
from tests.support.serving import config, stopped_after, wire
from tests.support.virtual_runs import random_step, start

POLICIES = [
    mcu(quorum=2, deadline=0.5),
    mcu(quorum=2, deadline=0.3, target=3, late="keep"),
    awu(deadline=0.4, weight="unbiased"),
    agu(quorum=5, deadline=0.4),
    agu(quorum=5, deadline=0.4, pool="union"),
]


def again(folder: Path, **given: Any) -> Replayed:
    return replay(folder, start(), random_step, lambda name: {}, seed=2, **given)


@pytest.mark.parametrize(
    ("policy", "combine"),
    [*((policy, Sum()) for policy in POLICIES), (POLICIES[0], Median()), (POLICIES[4], Trimmed())],
    ids=str,
)
def test_replayed_log_gives_the_same_model(
    tmp_path: Path, policy: Policy, combine: Combine
) -> None:
    """With misbehaving clients, lost local models, and a server that was stopped twice."""
    chaos = Chaos(2, 0.3)
    at = wire(seed=2, behave=chaos, on_poll=chaos.look)
    given = config(policy, rounds=14, seed=2, combine=combine)
    stopped_after(3, tmp_path, at, given)
    stopped_after(9, tmp_path, at, given)
    history = serve(at, given, tmp_path)
    found = again(tmp_path, combine=combine)
    assert history.model is not None
    assert history.updates > 1
    assert found.model.tobytes() == history.model.tobytes()
    assert not found.differing
    assert (found.updates, found.reports) == (history.updates, history.reports_used)


def test_changed_log_is_detected(tmp_path: Path) -> None:
    history = serve(wire(seed=2), config(rounds=4, seed=2), tmp_path)
    path = tmp_path / JOBS
    lines = path.read_text().splitlines()
    merged = [n for n, line in enumerate(lines) if json.loads(line)["merged"] == 2]
    assert history.model is not None
    path.write_text("\n".join(lines[: merged[0]] + lines[merged[0] + 1 :]) + "\n")
    with pytest.raises(InputError, match="reports of version 2"):
        again(tmp_path)
    for name, value in (("coefficient", 0.123), ("digest", "0" * 16), ("invitation", 77)):
        changed = json.loads(lines[merged[0]]) | {name: value}
        others = [*lines[: merged[0]], json.dumps(changed), *lines[merged[0] + 1 :]]
        path.write_text("\n".join(others) + "\n")
        found = again(tmp_path)
        assert found.differing or found.model.tobytes() != history.model.tobytes()


def test_log_contains_the_work_of_each_client(tmp_path: Path) -> None:
    """Clients take 1 to 4 steps, and held reports are used again: the log contains both."""

    def train(model: Arrays, job: Job) -> Trained:
        step = np.float32(job.work.steps + job.number / 8)
        return Trained({n: a + step for n, a in model.items()}, examples=1, steps=job.work.steps)

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        return Carried(HOLD, kept=True)

    policy = replace(unequal(), carry=carry)
    history = serve(wire(seed=2, train=train), config(policy, rounds=6, seed=2), tmp_path)
    found = replay(tmp_path, start(), train, lambda name: {}, seed=2)
    assert history.model is not None
    assert history.reports_reused > 0
    assert found.model.tobytes() == history.model.tobytes()
    assert not found.differing
