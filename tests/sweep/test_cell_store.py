"""The folder of a sweep: atomic cells, and nothing is overwritten by mistake."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from cafe.errors import FileError, InputError
from cafe.sweep.cell_store import CellStore
from cafe.sweep.sweep_cell import CellResult, SweepCell
from tests.sweep.conftest import SCENARIO, SWEEP, SweepFolder

CELL = SweepCell(3, {"policy.quorum": 5, "task.partition": {"name": "iid"}}, "mcu", 7)


@pytest.fixture
def store(workspace: SweepFolder) -> CellStore:
    store = CellStore(workspace.folder / "out")
    (workspace.folder / "out").mkdir()
    store.begin(workspace.sweep(), resume=False, overwrite=False)
    return store


def test_a_cell_is_read_as_it_was_written(store: CellStore) -> None:
    figures = {"waste": 0.1 + 0.2, "loss": math.inf, "rounds": 5.0}
    assert store.read(CELL) is None
    store.write(CellResult(CELL, figures))
    assert store.read(CELL) == CellResult(CELL, figures)
    store.write(CellResult(CELL, {}, "no round succeeded"))
    assert store.read(CELL) == CellResult(CELL, {}, "no round succeeded")
    store.write(CellResult(CELL, {"accuracy": math.nan}))
    found = store.read(CELL)
    assert found is not None
    assert math.isnan(found.figures["accuracy"])


def test_files_are_strict_json(store: CellStore) -> None:
    store.write(CellResult(CELL, {"loss": math.inf, "accuracy": math.nan}))
    text = Path("out/cells/000003-mcu-seed-7.json").read_text()
    found = json.loads(text, parse_constant=lambda _: pytest.fail("not JSON"))
    assert found["figures"] == {"loss": "inf", "accuracy": None}
    assert found["values"] == CELL.values


def test_damaged_cells_are_named(store: CellStore) -> None:
    path = Path("out/cells/000003-mcu-seed-7.json")
    path.write_text("{")
    with pytest.raises(FileError, match=r"seed-7.json: .* damaged. Remove it and resume"):
        store.read(CELL)
    other = SweepCell(3, {"policy.quorum": 6}, "mcu", 7)
    store.write(CellResult(other, {}))
    with pytest.raises(FileError, match=r'Got \{"policy.quorum": 6\}: .*another version of Optuna'):
        store.read(CELL)


def test_an_existing_sweep_needs_an_option(store: CellStore) -> None:
    with pytest.raises(FileError, match=r"already has a sweep. Run only what is missing \(--resum"):
        store.check_free(resume=False, overwrite=False)
    with pytest.raises(InputError, match="not both"):
        store.check_free(resume=True, overwrite=True)
    store.check_free(resume=True, overwrite=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[0, 7]", "[0]"), r"sweep.seeds was \[0, 7\] and is \[0\]"),
        (("[3, 5]", "[3, 6]"), r"sweep.values.policy.quorum was \[3, 5\] and is \[3, 6\]"),
        (("minimise", "maximise"), 'sweep.minimise was "mean_age" and is not given'),
        (("scenario =", "sampler = 'random'\nsamples = 3\nscenario ="), "sampler was .grid. and"),
    ],
)
def test_a_changed_file_is_refused(
    workspace: SweepFolder, store: CellStore, change: tuple[str, str], message: str
) -> None:
    store.begin(workspace.sweep(("seeds", "\n# a comment\nseeds")), resume=True, overwrite=False)
    with pytest.raises(FileError, match=rf"other settings: .*{message}.*Undo the change and res"):
        store.begin(workspace.sweep(change), resume=True, overwrite=False)


def test_a_changed_scenario_is_refused(workspace: SweepFolder, store: CellStore) -> None:
    (workspace.folder / "small.toml").write_text(SCENARIO.replace("rounds = 20", "rounds = 30"))
    with pytest.raises(FileError, match=r"run.rounds was 20 and is 30"):
        store.begin(workspace.sweep(), resume=True, overwrite=False)


def test_starting_over_deletes_cells_and_nothing_else(
    workspace: SweepFolder, store: CellStore
) -> None:
    store.write(CellResult(CELL, {}))
    (workspace.folder / "out" / "mine.txt").write_text("mine")
    store.begin(workspace.sweep(text=SWEEP), resume=False, overwrite=True)
    assert store.read(CELL) is None
    assert (workspace.folder / "out" / "mine.txt").read_text() == "mine"


def test_files_of_others_are_not_overwritten(workspace: SweepFolder) -> None:
    (workspace.folder / "results.csv").write_text("mine")
    with pytest.raises(FileError, match=r"results.csv: the sweep would overwrite this"):
        CellStore(workspace.folder).begin(workspace.sweep(), resume=False, overwrite=True)


def test_a_damaged_description_is_named(workspace: SweepFolder, store: CellStore) -> None:
    (workspace.folder / "out" / "sweep.json").write_text("[]")
    with pytest.raises(FileError, match=r"sweep.json: the file must describe a sweep"):
        store.begin(workspace.sweep(), resume=True, overwrite=False)
