"""Experiments that reproduce every figure and table of the paper, and some beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cafe.errors import InputError, check_callable, check_flag, check_path, did_you_mean, shorten
from cafe.reproduce.claims import Claim, ClaimVerdict
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.trials import Effort, TrialProgress, fetch_data
from cafe.workers.backends import check_backend

if TYPE_CHECKING:
    from cafe.data.store import Fetching
    from cafe.workers import Backend

__all__ = [
    "Claim",
    "ClaimVerdict",
    "Experiment",
    "Finding",
    "conclude_again",
    "experiment",
    "names",
    "reproduce",
]

# The module in cafe.reproduce that defines each experiment as ``EXPERIMENT``, in the paper's order.
_MODULES = {
    "fig-age-cycle": "experiments.age_cycle",
    "fig-objective": "experiments.objective",
    "fig-noniid-quorum": "experiments.noniid_quorum",
    "fig-iid-rounds": "experiments.iid_rounds",
    "fig-iid-rate": "experiments.iid_rate",
    "fig-iid-quorum": "experiments.iid_quorum",
    "fig-deadline": "experiments.deadline",
    "table-awu": "experiments.table_awu",
    "table-agu": "experiments.table_agu",
    "awu-phase": "experiments.awu_phase",
    "theory": "experiments.closed_forms",
    "corrections": "experiments.corrections",
    "bound": "experiments.convergence_bound",
    "search": "parameter_search",
    "search-awu": "table_awu_search",
}
# These run only when named: they take longer than all the others together.
_ON_REQUEST = ("search", "search-awu")


def names() -> tuple[str, ...]:
    """The names of all experiments, in the paper's order."""
    return tuple(_MODULES)


def experiment(name: str) -> Experiment:
    """The experiment of a name."""
    if not isinstance(name, str) or name not in _MODULES:
        raise InputError(f"There is no experiment '{name}'. {did_you_mean(name, _MODULES)}")
    defined: Experiment = import_module(f"cafe.reproduce.{_MODULES[name]}").EXPERIMENT
    return defined


def reproduce(
    selection: Sequence[str] = (),
    folder: str | Path = "paper",
    *,
    quick: bool = False,
    backend: Backend | None = None,
    fetching: Fetching = nullcontext,
    progress: Callable[[str], TrialProgress] | None = None,
    on_finding: Callable[[Experiment, Finding], None] | None = None,
) -> dict[str, Finding]:
    """Run experiments and write a folder with the results of each.

    Args:
        selection: names of experiments; empty: all but ``search`` and ``search-awu``.
        folder: the parent of the experiments' folders.
        quick: run a few rounds only, to test that everything works. The verdicts of a quick run
            mean nothing.
        backend: where trials run; processes of this machine, one per core, if left out.
        fetching: see :func:`cafe.data.load`.
        progress: called with an experiment's name before it starts; returns the function that is
            called with the number of finished trials and of all trials.
        on_finding: called with each experiment and its finding as soon as its folder is written.

    Returns:
        The findings by the experiments' names.
    """
    from cafe.reproduce.folder import check_writable, write_folder, write_index

    if isinstance(selection, str) or not isinstance(selection, Sequence):
        raise InputError(f"selection must be a list of experiments. Got {shorten(selection)}.")
    check_flag("quick", quick)
    check_backend(backend)
    check_callable("fetching", fetching)
    for name, given in (("progress", progress), ("on_finding", on_finding)):
        if given is not None:
            check_callable(name, given, "a function, or None")
    folder = check_path("folder", folder)
    selected = selection or [name for name in _MODULES if name not in _ON_REQUEST]
    experiments = [experiment(name) for name in dict.fromkeys(selected)]
    for one in experiments:
        check_writable(folder / one.name)
    effort = Effort(quick) if backend is None else Effort(quick, backend)
    findings = {}
    for one in experiments:
        fetch_data(one.name, fetching)
        show: TrialProgress = (lambda done, of: None) if progress is None else progress(one.name)
        rows = one.run(effort, show)
        findings[one.name] = write_folder(one, rows, folder / one.name, quick)
        write_index(folder, names())
        if on_finding is not None:
            on_finding(one, findings[one.name])
    return findings


def conclude_again(folder: str | Path = "paper") -> dict[str, Finding]:
    """Write the pages, results and pictures in a folder again from its rows, without any trials.

    Args:
        folder: the parent of the experiments' folders.

    Returns:
        The findings of all experiments whose rows are in the folder, by name.
    """
    from cafe.reproduce.folder import RUNS, read_rows, write_folder, write_index

    folder = check_path("folder", folder)
    kept = [name for name in names() if (folder / name / RUNS).is_file()]
    findings = {}
    for name in kept:
        own = folder / name
        findings[name] = write_folder(experiment(name), read_rows(own), own)
    write_index(folder, names())
    return findings
