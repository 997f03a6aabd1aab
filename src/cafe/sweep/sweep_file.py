"""Read the file of a sweep: the scenario, the values of its keys, policies, seeds, a measure."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from cafe._version import __version__
from cafe.errors import InputError, check_choice, check_path, check_whole
from cafe.federation_files.federation_toml import DOCUMENT_TABLES
from cafe.files import read_text
from cafe.randomness import check_seed
from cafe.scenario import Scenario, scenario_from_text
from cafe.scenario.scenario import scenario_from_tables
from cafe.sweep.axes import Axis, ListAxis, RangeAxis, axes_from_table
from cafe.sweep.measures import SweepMeasure, check_measure
from cafe.sweep.scenario_keys import check_scenario_key
from cafe.toml_tables.reading import TableLocation, parse_toml, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

SAMPLERS = ("grid", "random", "optuna")
BATCH = 8  # points that Optuna chooses at a time, if the file does not say it
MOST_CELLS = 1_000_000

_SHAPE: Shape = {
    "scenario": (str, None),
    "values": (Table, REQUIRED),
    "policies": (list[str], None),
    "seeds": (list[int] | int, None),
    "minimise": (str, None),
    "maximise": (str, None),
    "accuracy": (float, None),
    "sampler": (Literal["grid", "random", "optuna"], None),
    "samples": (int, None),
    "seed": (int, None),
    "batch": (int, None),
}


@dataclass(frozen=True)
class SweepText:
    """A sweep as text for worker processes, because its files may change meanwhile.

    Attributes:
        path: the absolute path of the sweep's file.
        text: its text.
        scenario_text: the text of the scenario's file; None if it is the same file.
        sampler: the sampler that was chosen instead of the file's.
        version: the version of CAFe that workers must have.
    """

    path: Path
    text: str
    scenario_text: str | None = None
    sampler: str | None = None
    version: str = __version__


@dataclass(frozen=True, eq=False)
class Sweep:
    """The contents of a sweep's file.

    Attributes:
        source: the texts it was read from.
        scenario: the scenario whose values are changed.
        axes: the keys that are changed, and their values.
        labels: the labels of the policies.
        seeds: every setting runs once with each seed.
        measure: what is minimised or maximised.
        sampler: how settings are chosen: ``grid``, ``random`` or ``optuna``.
        samples: the number of settings for ``random`` and ``optuna``; 0 for ``grid``.
        seed: the seed of the random settings.
        batch: the number of settings that Optuna chooses at a time.
    """

    source: SweepText
    scenario: Scenario
    axes: tuple[Axis, ...]
    labels: tuple[str, ...]
    seeds: tuple[int, ...]
    measure: SweepMeasure
    sampler: str
    samples: int
    seed: int
    batch: int

    @property
    def name(self) -> str:
        """The name of the file without its extension."""
        return self.source.path.stem

    @property
    def size(self) -> int:
        """The number of cells: one run of one policy with one seed each."""
        if self.sampler == "optuna":
            return self.samples * len(self.seeds)
        points = self.samples or math.prod(
            len(axis.values) for axis in self.axes if isinstance(axis, ListAxis)
        )
        return points * len(self.labels) * len(self.seeds)

    def settings(self) -> dict[str, Any]:
        """All that determines the cells and their figures, ready for JSON."""
        return {
            "sweep": {
                "values": {axis.key: _values(axis) for axis in self.axes},
                "policies": [*self.labels],
                "seeds": [*self.seeds],
                self.measure.direction: self.measure.name,
                "accuracy": self.measure.accuracy,
                "sampler": self.sampler,
                "samples": self.samples,
                "seed": self.seed,
                "batch": self.batch if self.sampler == "optuna" else None,
            },
            "scenario": {label: self.scenario.settings(label) for label in self.labels},
        }


def load_sweep(path: str | Path, *, sampler: str | None = None) -> Sweep:
    """Load a sweep from a ``.toml`` file.

    Args:
        path: the file.
        sampler: ``grid``, ``random`` or ``optuna``, in place of the file's.

    Example:
        >>> from pathlib import Path
        >>> from cafe.sweep import load_sweep
        >>> text = '''
        ... federation = {clients = 20, rate = 1.0}
        ... policy = {name = "mcu", quorum = 3, deadline = 0.5}
        ... run = {rounds = 10}
        ... [sweep]
        ... minimise = "waste_per_update"
        ... seeds = 2
        ... values.policy.quorum = [3, 5]
        ... values.policy.deadline = [0.5, 1.0, 2.0]
        ... '''
        >>> _ = Path("sweep.toml").write_text(text)
        >>> load_sweep("sweep.toml").size
        12
    """
    path = check_path("path", path)
    text = read_text(path)
    location = TableLocation(path, "sweep")
    other = _sweep_table(parse_toml(path, text), path).get("scenario")
    source = SweepText(path.absolute(), text, sampler=sampler)
    if other is not None:
        with location.inside("scenario").add_to_errors():
            source = replace(source, scenario_text=read_text(path.parent / other))
    return _read(source, path)


@lru_cache(maxsize=1)
def sweep_from_source(source: SweepText) -> Sweep:
    """The sweep with its scenario and examples, made once in every worker process."""
    return _read(source, source.path)


def _sweep_table(tables: Table, path: Path) -> Table:
    location = TableLocation(path)
    shape: Shape = dict.fromkeys(DOCUMENT_TABLES, (Table, None)) | {"sweep": (Table, REQUIRED)}
    table = validate_table(shape, tables, location)["sweep"]
    read = validate_table(_SHAPE, table, location.inside("sweep"))
    others = [name for name in DOCUMENT_TABLES if name in tables]
    if "scenario" in read and others:
        raise location.error(
            "the scenario must be in one place. Got sweep.scenario and the table "
            f"[{others[0]}]: remove one of them."
        )
    if "scenario" not in read and not others:
        raise location.error(
            "the sweep needs a scenario. Name its file in [sweep], such as scenario = "
            '"scenario.toml", or add its tables to this file.'
        )
    return read


def _read(source: SweepText, shown: Path) -> Sweep:
    """Read a sweep; ``shown`` is its path in error messages."""
    tables = parse_toml(shown, source.text)
    table, location = _sweep_table(tables, shown), TableLocation(shown, "sweep")
    if source.scenario_text is not None:
        scenario = scenario_from_text(shown.parent / table["scenario"], source.scenario_text)
    else:
        rest = {name: value for name, value in tables.items() if name != "sweep"}
        scenario = scenario_from_tables(shown, source.text, rest)
    values = location.inside("values")
    axes = axes_from_table(table["values"], values)
    for axis in axes:
        check_scenario_key(axis.key, scenario.tables, values)
    with location.add_to_errors():
        sampler = _sampler(source.sampler or table.get("sampler"), axes)
        chosen = source.sampler == "grid"  # in place of the file's sampler, which has samples
        samples = _samples(sampler, None if chosen else table.get("samples"))
        scenario, labels = _policies(scenario, table.get("policies"))
        sweep = Sweep(
            source=source,
            scenario=scenario,
            axes=tuple(axes),
            labels=labels,
            seeds=_seeds(scenario, table.get("seeds")),
            measure=_measure(table),
            sampler=sampler,
            samples=samples,
            seed=check_seed(table.get("seed", 0)),
            batch=check_whole("batch", table.get("batch", BATCH)),
        )
        if sweep.size > MOST_CELLS:
            raise InputError(
                f"A sweep may have at most {MOST_CELLS:,} cells. Got {sweep.size:,}: give fewer "
                "values or seeds, or use the sampler random or optuna."
            )
    return sweep


def _values(axis: Axis) -> Any:
    """The values of an axis, ready for JSON."""
    if isinstance(axis, ListAxis):
        return [*axis.values]
    return {name: value for name, value in asdict(axis).items() if name != "key"}


def _sampler(given: str | None, axes: list[Axis]) -> str:
    ranges = [axis.key for axis in axes if isinstance(axis, RangeAxis)]
    sampler = given or ("random" if ranges else "grid")
    check_choice("sampler", sampler, SAMPLERS)
    if sampler == "grid" and ranges:
        raise InputError(
            f"A grid needs a list of values for every key. Got a range for {ranges[0]}: give a "
            "list, or use the sampler random or optuna."
        )
    return sampler


def _samples(sampler: str, given: int | None) -> int:
    if sampler == "grid":
        if given is not None:
            raise InputError(
                f"samples is for the samplers random and optuna: a grid runs all values. Got "
                f"samples = {given}: remove it, or set the sampler."
            )
        return 0
    if given is None:
        raise InputError(
            f"samples is missing: the sampler {sampler} must know how many settings to try. Add "
            "it, such as samples = 50."
        )
    return check_whole("samples", given)


def _policies(scenario: Scenario, names: list[str] | None) -> tuple[Scenario, tuple[str, ...]]:
    labels = scenario.labels
    if names is not None:
        scenario, labels = scenario.with_labels_for(names)
    if not labels or len({*labels}) < len(labels):
        raise InputError(
            f"policies must be one or more different policies. Got {', '.join(labels) or 'none'}."
        )
    for label in labels:
        scenario.policy_or_controller(label)  # raises an error if there is no such policy
    return scenario, tuple(labels)


def _seeds(scenario: Scenario, given: list[int] | int | None) -> tuple[int, ...]:
    if isinstance(given, int):
        given = [*range(check_whole("seeds", given))]
    return scenario.with_run(seeds=given).seeds


def _measure(table: Table) -> SweepMeasure:
    directions: list[Literal["minimise", "maximise"]] = ["minimise", "maximise"]
    given = [direction for direction in directions if direction in table]
    if len(given) != 1:
        raise InputError(
            f"One measure must be minimised or maximised. Got {'both' if given else 'neither'}: "
            'give one, such as minimise = "waste_per_update" or maximise = "accuracy".'
        )
    measure = SweepMeasure(table[given[0]], given[0], table.get("accuracy"))
    check_measure(measure.name, measure.accuracy)
    return measure
