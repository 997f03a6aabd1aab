"""The benchmarks run without errors. Their measurements are not tested."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cafe
from benchmarks import fused, million, policies, report, simulate, sweeps
from benchmarks.million_cases import CASES, trained_name
from benchmarks.peers import Peer
from benchmarks.race import DropsOutError, race
from benchmarks.replanned import Replanned
from benchmarks.workloads import WORKLOADS, Workload
from cafe.data import Examples
from cafe.fitting import Observations
from cafe.learn import LocalSteps
from cafe.learn.mlp import MLP
from cafe.rounds import Ledger, Policy

ONE = Workload("one step", 8, batch=4, widths=(6, 5, 3), examples=240)
SOME = Workload("some steps", 8, steps=3, batch=4, widths=(6, 5, 3), examples=240)


@pytest.mark.slow
def test_all_benchmarks_are_measured_and_written(tmp_path: Path) -> None:
    sizes = simulate.Sizes((ONE, SOME), 2, 0.001, (100, 2), (1000, 2), (5, 10))
    nobody = Peer("nobody", "nobody")
    said: list[str] = []
    measured = simulate.measure(sizes, [nobody], tmp_path, said.append)
    sheets = report.sheets(measured)
    report.write("simulate", measured, sheets, tmp_path)

    found = json.loads((tmp_path / "simulate.json").read_text())
    names = {"matrix-product peak", "hand-fused NumPy", "cafe", "cafe, compiled"}
    for workload in (ONE, SOME):
        rates = found["rounds_per_second"][workload.name]
        assert set(rates) == names
        assert all(len(of) == 2 and min(of) > 0 for of in rates.values())
        assert set(found["cafe_over"][workload.name]) == names - {"cafe"}
    assert "nobody" in found["dropped_out"]["nobody"]  # and the run went on
    assert 0 < found["ledger"]["large"]["peak_gib"] < 4
    assert len(found["ledger"]["report"]["growth"]) == 2
    assert len(found["failing_rounds"]["share_of_time"]) == 2
    text = (tmp_path / "simulate.md").read_text()
    assert "| cafe |" in text
    assert str(Path.cwd()) not in text + json.dumps(found)


class Fake:
    """A contestant with a fake clock: two seconds to start, then one second per round."""

    networks: frozenset[str] | None = frozenset({"perceptron"})

    def __init__(self, name: str, breaks: int = 10**9) -> None:
        self.name, self.left, self.started = name, breaks, False
        self.asked: list[int] = []

    def seconds(self, workload: Workload, rounds: int) -> float:
        self.left -= 1
        if self.left < 0:
            raise DropsOutError("lost /some/where/file.py")
        self.asked.append(rounds)
        self.started, before = True, self.started
        return rounds + 2.0 * (not before)


def test_race_fills_slots_and_continues_without_failed_peers() -> None:
    steady, weak = Fake("steady"), Fake("weak", breaks=3)
    finish = race([weak, steady], [ONE], repetitions=3, slot=20.0, say=lambda what: None)
    assert steady.asked == [1, 1, 20, 20, 20]
    assert finish.rates["one step"] == {"steady": [1.0] * 3, "weak": [1.0]}
    assert finish.dropped == {"weak": "lost ..."}
    assert finish.ratios("one step", "steady", "weak") == [1.0]


def test_operations_are_counted_from_the_matrix_products() -> None:
    paper = Workload("paper", 100)
    assert paper.reports == pytest.approx(39.35, abs=0.005)
    assert paper.flops == pytest.approx(2 * 39.35 * 32 * (2 * 182_300 + 25_500), rel=1e-3)
    assert Workload("five", 100, steps=5).flops == pytest.approx(5 * paper.flops)


def test_reference_computes_the_right_gradient() -> None:
    rng = np.random.default_rng(0)
    params = [
        (rng.normal(size=shape).astype(np.float32), rng.normal(size=shape[1]).astype(np.float32))
        for shape in ((6, 5), (5, 3))
    ]
    x, y = ONE.data()
    rows = np.arange(8).reshape(2, 1, 4)

    def loss(shift: float) -> float:
        weight, bias = (array.astype(float) for array in params[0])
        weight[2, 1] += shift
        out = np.maximum(x[:8] @ weight + bias, 0) @ params[1][0] + params[1][1]
        return float((np.log(np.exp(out).sum(axis=1)) - out[np.arange(8), y[:8]]).mean())

    share = 0.5  # of each of two clients: together the mean over all eight rows
    move = fused.one_step(params, x, y, share, rows)
    assert -move[0][0][2, 1] == pytest.approx((loss(1e-4) - loss(-1e-4)) / 2e-4, rel=1e-3)
    walked = fused.several_steps(params, x, y, share, rows)
    for one, other in zip(move, walked, strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=1e-4)


@pytest.mark.slow
def test_policies_are_measured_and_written(tmp_path: Path) -> None:
    measured = policies.measure(
        lambda what: None,
        peers=[Peer("nobody", "nobody")],
        folder=tmp_path,
        workload=ONE,
        repetitions=2,
        slot=0.02,
    )
    (sheet,) = policies.sheets(measured)
    report.write("policies", measured, [sheet], tmp_path)
    found = json.loads((tmp_path / "policies.json").read_text())
    assert set(found["dropped_out"]) == {"nobody"}
    assert set(found["policies"]) == cafe.policies.recipes().keys()
    for name, of in found["policies"].items():
        needs = cafe.policies.recipes()[name](**policies.setting_of(name, ONE)).needs
        # Policies that do not see single updates or losses keep the fused path.
        assert ("single updates" in of["content"]) == bool(needs & {"updates", "models"})
        assert ("losses" in of["content"]) == bool(needs & {"losses", "rms losses"})
        for what in ("rounds_per_second", "gradients_per_second"):
            assert len(of[what]) == 2
            assert min(of[what]) > 0
    assert {len(row) for row in sheet.rows} == {len(sheet.head)}
    over = {row[0]: row[6] for row in sheet.rows}
    assert sheet.head[6] == "over mcu"
    assert over["mcu"] == "1.00 (1.00 to 1.00)"


@pytest.mark.parametrize("name", sorted(cafe.policies.recipes()))
def test_each_recipe_has_a_row_in_the_benchmark(name: str) -> None:
    for workload in (ONE, WORKLOADS[0]):
        cafe.policies.recipes()[name](**policies.setting_of(name, workload))


def test_a_recipe_without_a_setting_is_named() -> None:
    assert policies.settings(ONE).keys() == cafe.policies.recipes().keys()
    with pytest.raises(LookupError, match="no setting for the recipe newest"):
        policies.setting_of("newest", ONE)


def test_gradients_are_counted() -> None:
    """Two steps of 4 and 3 examples; client 1 does not take the second, or is not used."""
    learner = MLP(6, 3, (5,))
    counting, model = policies.Counting(learner, 2), learner.start(np.random.default_rng(0))
    data = Examples(*ONE.data())
    rows = np.arange(16).reshape(2, 2, 4)
    weight = np.full(rows.shape, 0.25, np.float32)
    weight[:, 1, 3] = 0.0
    local = LocalSteps(rows, weight, np.array([[0.1, 0.1], [0.1, 0.0]], np.float32))
    both = np.ones(2, np.float32)
    np.testing.assert_array_equal(
        counting.update(model, data, local, both), learner.update(model, data, local, both)
    )
    assert counting.gradients == (4 + 3 + 4) / 2
    counting.update(model, data, local, np.array([1.0, 0.0], np.float32))
    assert counting.gradients == (11 + 7) / 2
    counting.gradient(model, data, rows[0, 0], np.ones(4, np.float32))
    assert counting.gradients == (18 + 4) / 2
    assert counting.content == "fused"
    counting.losses(model, data, rows[0, 0])
    assert counting.content == "fused, losses"
    counting.updates(model, data, local)
    assert counting.gradients == (22 + 11) / 2
    assert counting.content == "single updates, losses"


@pytest.mark.slow
def test_sweeps_are_measured_and_written(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    measured = sweeps.measure(lambda what: None, workload=ONE, cells=2, rounds=5, repetitions=2)
    (sheet,) = sweeps.sheets(measured)
    report.write("sweeps", measured, [sheet], tmp_path)
    rates = json.loads((tmp_path / "sweeps.json").read_text())["rounds_per_second"]
    assert {name: len(of) for name, of in rates.items()} == dict.fromkeys(
        [sweeps.PEAK, sweeps.ALONE, sweeps.ONE, sweeps.TWO, sweeps.COMPILED, sweeps.DASK], 2
    )
    over_peak, over_one = zip(*(row[2:] for row in sheet.rows), strict=True)
    assert over_peak[0] == over_one[0] == "", "the peak is compared with nothing"
    one, two = (np.array(rates[name]) for name in (sweeps.ONE, sweeps.TWO))
    assert over_one[3] == report.cell(list(two / one))


@pytest.mark.slow
def test_large_federations_are_measured_and_written(tmp_path: Path) -> None:
    """One case of each kind, with few clients; a cohort that is too large is left out."""
    names = (
        "books, cohort of 1,000",
        "refilled, on-off",
        "`cafe plan` of a CSV file",
        trained_name(100, 1),
    )
    cases = [case for case in CASES if case.name in names]
    assert len(cases) == len(names)
    measured = million.measure(lambda what: None, cases=cases, sizes=(300, 1200), repetitions=1)
    times, memory = million.sheets(measured)
    report.write("million", measured, [times, memory], tmp_path)
    found = json.loads((tmp_path / "million.json").read_text())["measured"]
    assert set(found) == set(names)
    for name, by_size in found.items():
        assert set(by_size) == ({"1200"} if "1,000" in name else {"300", "1200"})
        for of in by_size.values():
            assert len(of) == 1
            assert all(0 < one["peak_gib"] < 4 and one["seconds"] > 0 for one in of)
    by_name = {row[0]: row for row in times.rows}
    assert by_name["books, cohort of 1,000"][2] == by_name["books, cohort of 1,000"][4] == ""
    assert by_name["refilled, on-off"][4].startswith("N^")
    assert memory.rows[0][0] == "100"
    assert str(Path.cwd()) not in (tmp_path / "million.md").read_text()


def test_cases_of_large_federations_have_different_names() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_controller_plans_again_every_few_rounds() -> None:
    policies: list[Policy] = []
    base = Replanned(every=3)

    def watching(ledger: Ledger, seen: Observations | None) -> Policy:
        policies.append(base(ledger, seen))
        return policies[-1]

    cafe.simulate(cafe.Federation(300, cafe.Exponential(1.0)), watching, rounds=9)
    deadlines = [policy.deadline for policy in policies[1:]]  # the first call is before the run
    assert deadlines[0] == base.first
    assert deadlines[1] == deadlines[2] != deadlines[3] == deadlines[4] == deadlines[5]
    assert deadlines[6] != deadlines[5]
