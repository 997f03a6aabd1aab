"""The paper, reproduced: every figure and table, and what lies beyond them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cafe.errors import InputError, did_you_mean
from cafe.reproduce.findings import Claim, Effort, Experiment, Finding, Verdict
from cafe.reproduce.trials import Progress, fetch

if TYPE_CHECKING:
    from cafe.data.store import Fetching

__all__ = ["Claim", "Experiment", "Finding", "Verdict", "experiment", "names", "reproduce"]

# By name: the module in cafe.reproduce that has it as ``EXPERIMENT``, in the paper's order.
_HOMES = {
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
}
_ON_REQUEST = ("search",)  # what "all" leaves out: it takes longer than all the others


def names() -> tuple[str, ...]:
    """What there is to reproduce, in the paper's order."""
    return tuple(_HOMES)


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in _HOMES:
        raise InputError(f"There is no experiment '{name}'. {did_you_mean(name, _HOMES)}")
    found: Experiment = import_module(f"cafe.reproduce.{_HOMES[name]}").EXPERIMENT
    return found


def reproduce(
    chosen: Sequence[str] = (),
    folder: str | Path = "paper",
    *,
    quick: bool = False,
    fetching: Fetching = nullcontext,
    progress: Callable[[str], Progress] | None = None,
    found: Callable[[Experiment, Finding], None] | None = None,
) -> dict[str, Finding]:
    """Run experiments anew and write a folder for each.

    Args:
        chosen: names; all but ``search`` if there are none.
        folder: in which their folders are.
        quick: only enough to see that everything works; says nothing about the paper.
        fetching: see :func:`cafe.data.load`.
        progress: asked for each experiment who is to be told how far it is.
        found: told of each experiment when it is done.
    """
    from cafe.reproduce.folder import make_ready, write, write_index

    every = chosen or [name for name in _HOMES if name not in _ON_REQUEST]
    wanted = [experiment(name) for name in dict.fromkeys(every)]
    for one in wanted:
        make_ready(Path(folder) / one.name)
    findings = {}
    for one in wanted:
        fetch(one.name, fetching)
        tell: Progress = (lambda done, of: None) if progress is None else progress(one.name)
        rows = one.run(Effort(quick), tell)
        findings[one.name] = write(one, rows, Path(folder) / one.name, quick)
        write_index(Path(folder), names())
        if found is not None:
            found(one, findings[one.name])
    return findings
