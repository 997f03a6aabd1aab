"""Running one cell of a sweep, in whichever process."""

from __future__ import annotations

import os

from cafe._version import __version__
from cafe.engine import simulate
from cafe.errors import CafeError, InputError, memory_error_message
from cafe.learn.threads import one_blas_thread
from cafe.scenario import Scenario
from cafe.sweep.measures import measure_run
from cafe.sweep.sweep_cell import CellResult, SweepCell
from cafe.sweep.sweep_file import Sweep, SweepText, sweep_from_source
from cafe.workers import LostCall


def scenario_of_cell(sweep: Sweep, cell: SweepCell) -> Scenario:
    """The scenario with the cell's values; an error if they do not fit its policy."""
    scenario = sweep.scenario.with_values(cell.values)
    scenario.policy_or_controller(cell.label)
    return scenario


def run_cell(source: SweepText, cell: SweepCell) -> CellResult | LostCall:
    """Run a cell on one core.

    An error of CAFe is the result of a cell. An error of the sweep itself, such as a missing file,
    is raised. Too little memory depends on the machine: then the cell is lost.
    """
    if source.version != __version__:
        raise InputError(
            f"Every worker must have CAFe {source.version}, so that all cells are comparable. Got "
            f"a worker with {__version__}: install the same version there."
        )
    sweep = sweep_from_source(source)
    if sweep.scenario.learning is not None:
        _ = sweep.scenario.learning.data  # raises here if it is missing: no fault of the cell
    try:
        with one_blas_thread():
            scenario = scenario_of_cell(sweep, cell)
            policy = scenario.policy_or_controller(cell.label)
            task = scenario.task(cell.seed, threads=1)
            history = simulate(scenario.federation, policy, task, seed=cell.seed, **scenario.run)
    except CafeError as error:
        # Without the folder, the reason is the same on every machine.
        return CellResult(cell, {}, f"{error}".replace(f"{source.path.parent}{os.sep}", ""))
    except MemoryError as error:
        return LostCall(memory_error_message(error))
    return CellResult(cell, measure_run(history, sweep.measure.accuracy))
