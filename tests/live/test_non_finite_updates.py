"""Updates that would make the model contain NaN or infinity."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.errors import InfeasibleError
from cafe.learn.server_optimisers import Momentum
from cafe.live.client_work import Trained
from cafe.live.model_layout import Arrays
from cafe.live.run_log import read_jobs, read_rounds
from cafe.live.server import serve
from cafe.live.validation import ReportLimits
from cafe.policies import agu, awu, fedavg, mcu
from cafe.rounds.policy import Policy
from tests.support.serving import assert_sound, config, read_status, wire


def training(bad: float | None = None) -> Any:
    """Training that adds 0.001 everywhere; in round 1 it adds ``bad`` instead, if given."""

    def train(model: Arrays, job: Any) -> Trained:
        size = np.float32(bad if bad is not None and job.round == 1 else 1e-3)
        return Trained({name: array + size for name, array in model.items()}, examples=1)

    return train


def test_non_finite_update_is_discarded(tmp_path: Path) -> None:
    """The round fails, the run continues, and the server optimiser is not affected."""
    policy, said = fedavg(fraction=1.0, deadline=9.0), list[str]()
    given = config(
        policy, report_limits=ReportLimits(clip=None), rounds=4, optimiser=Momentum(rate=9.0)
    )
    spoilt = serve(wire(train=training(3e38)), given, tmp_path / "4", say=said.append)
    assert_sound(tmp_path / "4")
    assert spoilt.by_round["succeeded"].tolist() == [True, False, True, True]
    assert {job.fate for job in read_jobs(tmp_path / "4") if job.round == 1} == {"failed"}
    assert sum("The update of round 1 was discarded" in sentence for sentence in said) == 1
    # Three good rounds give the model that they give without the bad one between them.
    good = serve(wire(train=training()), replace(given, rounds=3), tmp_path / "3")
    assert spoilt.model is not None
    assert good.model is not None
    np.testing.assert_array_equal(spoilt.model, good.model)


@pytest.mark.parametrize(
    "policy",
    [
        awu(deadline=9.0),
        agu(quorum=6, deadline=9.0),
        agu(quorum=6, deadline=9.0, pool="union"),
        mcu(quorum=1, deadline=9.0, late="keep"),
    ],
    ids=str,
)
def test_nothing_is_kept_of_a_non_finite_update(tmp_path: Path, policy: Policy) -> None:
    """Reports and local models kept from the failed round would make the model overflow again."""
    given = config(
        policy, report_limits=ReportLimits(clip=None), rounds=8, optimiser=Momentum(rate=9.0)
    )
    serve(wire(train=training(3e38)), given, tmp_path)
    assert_sound(tmp_path)
    assert [outcome.succeeded for outcome in read_rounds(tmp_path)] == [True, False] + [True] * 6


def test_only_non_finite_updates_end_the_run(tmp_path: Path) -> None:
    """The server sums in float32; the model must also be finite in its own dtype."""
    given = replace(
        config(report_limits=ReportLimits(clip=None)), model={"w": np.zeros(2, np.float16)}
    )
    at = wire(train=lambda model, job: {"w": model["w"] + np.float16(4e4)})
    with pytest.raises(InfeasibleError, match=r"3 rounds in a row.*NaN or infinity"):
        serve(at, replace(given, optimiser=Momentum(rate=2.0), patience=3), tmp_path)
    assert read_status(tmp_path)["state"] == "stopped"
