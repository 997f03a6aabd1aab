"""The studies' pages follow from their stored data."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cafe.live.run_log import read_jobs, read_rounds
from cafe.rounds.outcome import Fate

STUDIES = Path(__file__).resolve().parents[1] / "studies"


def result(name: str) -> dict[str, Any]:
    return dict(json.loads((STUDIES / name / "result.json").read_text()))


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare", STUDIES / "reality" / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reality_page_follows_from_its_figures(compare: ModuleType) -> None:
    assert compare.page(result("reality")) == (STUDIES / "reality" / "README.md").read_text()


@pytest.mark.parametrize("pair", range(3))
@pytest.mark.slow
def test_comparison_is_reproducible(
    compare: ModuleType, pair: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer simulated runs: the real figures exactly, the simulated ones nearly."""
    monkeypatch.setattr(compare, "REPLICATES", 200)
    kept = result("reality")["pairs"][pair]
    again = compare.compared(kept["fitted_to"], kept["run"])
    assert again["family"] == kept["family"]
    for name, row in again["figures"].items():
        was = kept["figures"][name]
        assert row["real"] == pytest.approx(was["real"], rel=1e-12)
        width = was["high"] - was["low"]
        # The median of 200 and of 1000 differ by some tenths of a standard deviation at most.
        assert abs(row["simulated"] - was["simulated"]) < 0.15 * width, name


def test_soak_page_follows_from_its_figures() -> None:
    pytest.importorskip("flwr", reason="the soak's program needs Flower")
    from tests.support.flower import accounts

    found = result("soak")
    assert accounts.page(found) == (STUDIES / "soak" / "README.md").read_text()
    assert accounts.refusals(read_jobs(STUDIES / "soak")) == found["refusals"]


def test_soak_lost_no_jobs_and_its_books_agree() -> None:
    folder, found = STUDIES / "soak", result("soak")
    rounds, jobs = read_rounds(folder), read_jobs(folder)
    assert found["nodes"] >= 8
    assert found["rounds"] == len(rounds) >= 60
    assert found["updates"] == sum(outcome.succeeded for outcome in rounds)
    assert found["jobs"] == len(jobs) == len({(job.client, job.round) for job in jobs})
    assert found["announced_and_lost"] == found["jobs_without_a_fate"] == 0
    assert found["replay_equals_model"]
    fates = {fate.name.lower(): 0 for fate in Fate}
    for job in jobs:
        fates[job.fate] += 1
    assert found["fates"] == fates
    booked = [sum(counts) for counts in zip(*(o.fates.tolist() for o in rounds), strict=True)]
    assert booked == [*fates.values()]
    used = [job for job in jobs if job.coefficient is not None]
    assert found["reports_used"] == len(used) == found["replayed_reports"]
    for version in {job.merged for job in used}:
        weights = [job.coefficient or 0.0 for job in used if job.merged == version]
        assert math.isclose(sum(weights), 1.0)
    assert math.isfinite(found["accuracy"])
