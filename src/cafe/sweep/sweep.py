"""Running a sweep: choose points, run the cells that are missing, store each, rank all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cafe.errors import CafeError, InputError, check_path, check_type
from cafe.results import parquet_possible
from cafe.results.storage import lock_folder, make_folder
from cafe.sweep.cell_run import run_cell, scenario_of_cell
from cafe.sweep.cell_store import CellStore
from cafe.sweep.cell_table import cell_columns, write_csv, write_parquet
from cafe.sweep.ranking import RankedSetting, rank_settings
from cafe.sweep.samplers import grid_points, make_sampler, random_points
from cafe.sweep.sweep_cell import CellResult, SweepCell
from cafe.sweep.sweep_file import Sweep
from cafe.workers import Backend, LocalProcesses, LostCall
from cafe.workers.backends import RunCalls, check_backend, say_how_to_resume

_TRIED = 100  # points that are tried to find one that is valid


@dataclass(frozen=True, eq=False)
class SweepResult:
    """A sweep that has ended.

    Attributes:
        sweep: the sweep.
        cells: all cells, sorted by point, policy and seed.
        ranking: the settings, the best first.
        table: the file with all cells.
    """

    sweep: Sweep
    cells: Sequence[CellResult]
    ranking: Sequence[RankedSetting]
    table: Path

    @property
    def failed(self) -> list[CellResult]:
        """The cells that failed."""
        return [result for result in self.cells if result.reason]


def run_sweep(
    sweep: Sweep,
    folder: str | Path,
    *,
    backend: Backend | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> SweepResult:
    """Run all cells of a sweep, and write each to disk as soon as it has ended.

    The results do not depend on the backend or on the number of its workers.

    Args:
        sweep: the sweep, from :func:`load_sweep`.
        folder: the folder for the results.
        backend: where cells run; processes of this machine, one per core, if left out.
        resume: run only the cells that are missing in the folder.
        overwrite: start over, and delete the sweep in the folder.
        progress: called with the number of cells that have ended.

    Example:
        >>> from pathlib import Path
        >>> from cafe.sweep import load_sweep, run_sweep
        >>> from cafe.workers import LocalProcesses
        >>> text = '''
        ... federation = {clients = 20, rate = 1.0}
        ... policy = {name = "mcu", quorum = 3, deadline = 0.5}
        ... run = {rounds = 10}
        ... [sweep]
        ... minimise = "mean_age"
        ... seeds = 2
        ... values.policy.deadline = [0.5, 3.0]
        ... '''
        >>> _ = Path("sweep.toml").write_text(text)
        >>> result = run_sweep(load_sweep("sweep.toml"), "results", backend=LocalProcesses(jobs=1))
        >>> result.ranking[0].values
        {'policy.deadline': 0.5}
    """
    check_type("sweep", sweep, Sweep, "a sweep, such as cafe.sweep.load_sweep(path)")
    check_backend(backend)
    folder = check_path("folder", folder)
    store = CellStore(folder)
    store.check_free(resume=resume, overwrite=overwrite)
    check_some_cell(sweep)
    sampler, results = make_sampler(sweep), list[CellResult]()
    make_folder(folder)
    with lock_folder(folder), say_how_to_resume(), ExitStack() as stack:
        store.check_free(resume=resume, overwrite=overwrite)
        store.begin(sweep, resume=resume, overwrite=overwrite)
        run: RunCalls | None = None
        while points := sampler.ask():
            cells = [cell for point in points for cell in point.cells(sweep.seeds)]
            known = {cell.name: store.read(cell) for cell in cells}
            missing = [cell for cell in cells if known[cell.name] is None]
            if missing and run is None:
                run = stack.enter_context((backend or LocalProcesses(noun="cells")).open())
            if missing and run is not None:
                before = len(results) + len(cells) - len(missing)
                _run_missing(sweep, run, missing, store, partial(_tell, progress, before))
            batch = [result for cell in cells if (result := store.read(cell)) is not None]
            results += batch
            ranked = {one.point: one for one in rank_settings(batch, sweep.measure)}
            sampler.tell([_told(ranked[point.number]) for point in points])
        table = store.table_path(parquet=parquet_possible())
        write = write_parquet if parquet_possible() else write_csv
        write(table, cell_columns(sweep, results))
    return SweepResult(sweep, results, rank_settings(results, sweep.measure), table)


def check_some_cell(sweep: Sweep) -> None:
    """Raise the error of the first cell if no cell is valid: a key is probably misspelled."""
    points = grid_points(sweep) if sweep.sampler == "grid" else random_points(sweep, _TRIED)
    first: CafeError | None = None
    for point in points[:: max(len(points) // _TRIED, 1)]:
        for cell in point.cells(sweep.seeds[:1]):
            try:
                scenario_of_cell(sweep, cell)
            except CafeError as error:
                first = first or error
            else:
                return
    if first is not None:
        raise InputError(f"No cell of the sweep is valid. The first one: {first}")


def _run_missing(
    sweep: Sweep,
    run: RunCalls,
    missing: Sequence[SweepCell],
    store: CellStore,
    progress: Callable[[int], None],
) -> None:
    """Run cells, and write each result at once."""
    lost, done = list[str](), 0
    progress(done)
    for _, result in run(partial(run_cell, sweep.source), missing):
        if isinstance(result, LostCall):
            lost.append(result.reason)
            continue
        store.write(result)
        done += 1
        progress(done)
    if lost:
        raise InputError(
            f"{len(lost)} of {len(missing)} cells are not done. {lost[0]} Continue them "
            "(--resume), with fewer at a time if memory ran out."
        )


def _told(setting: RankedSetting) -> float:
    """The measure of a setting as a sampler is told it: NaN if a run failed."""
    return float("nan") if setting.failed else setting.estimate.mean


def _tell(progress: Callable[[int], None] | None, before: int, done: int) -> None:
    if progress is not None:
        progress(before + done)
