"""A scenario: who takes part, how the server runs its rounds, what is learned, and until when."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cafe.errors import InputError, did_you_mean, whole
from cafe.federation import Federation
from cafe.files import read_text
from cafe.randomness import check_seed
from cafe.rounds.policy import Policy
from cafe.scenario.document import tables_in
from cafe.scenario.learning import Learning, learning_from_tables
from cafe.scenario.names import REQUIRED, Table
from cafe.scenario.reading import Place, validated
from cafe.scenario.signatures import arguments, call_named, shape_of
from cafe.scenario.tables import federation_from_table, file_of

if TYPE_CHECKING:
    from cafe.data.store import Fetching
    from cafe.task import Task

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # it becomes part of a folder's name


@dataclass(frozen=True, eq=False)
class Scenario:
    """What a TOML file describes.

    Attributes:
        path: of the file.
        text: of the file.
        tables: of the file, as TOML has them.
        federation: who takes part.
        policies: those that have a table, by label; the first is that of ``[policy]``.
        run: what :func:`cafe.engine.simulate` is told: limits, crash, evaluate_every and patience.
        seeds: of the runs.
        learning: what is learned; None where only the books are kept.
    """

    path: Path
    text: str
    tables: dict[str, Any]
    federation: Federation
    policies: Mapping[str, Policy]
    run: dict[str, Any]
    seeds: tuple[int, ...]
    learning: Learning | None = None

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def label(self) -> str:
        """Of the policy in ``[policy]``."""
        return next(iter(self.policies))

    def policy(self, label: str) -> Policy:
        """The policy of that label; a recipe without a table takes what it knows of ``[policy]``.

        So ``[policy]`` alone serves to compare policies that share their parameters.
        """
        from cafe.policies import recipes

        if label in self.policies:
            return self.policies[label]
        known = recipes()
        if label not in known:
            raise InputError(
                f"There is no policy '{label}'. {did_you_mean(label, {*self.policies, *known})}"
            )
        shared = shape_of(known[label])
        table = {key: value for key, value in self.tables["policy"].items() if key in shared}
        advice = (
            f"There is no table [policies.{label}], so {label} inherits from [policy] what it "
            f"knows ({', '.join(table) or 'nothing'}): add that table, with values of its own."
        )
        place = Place(self.path, f"policies.{label}", advice)
        return _policy({**table, "name": label}, self.federation, self.run, place)

    def task(self, seed: int, threads: int | None = None) -> Task | None:
        """What is learned under a seed, which decides who holds which examples.

        Args:
            seed: a whole number from 0 up.
            threads: for a learner that has its own; one per core if left out.
        """
        if self.learning is None:
            return None
        return self.learning.task(self.federation.clients, seed, threads)

    def fetch(self, fetching: Fetching) -> None:
        """Have the examples here before a run asks for them, with somebody told if that takes long.

        Args:
            fetching: see :func:`cafe.data.load`.
        """
        if self.learning is not None:
            self.learning.fetch(fetching)

    def settings(self, label: str) -> dict[str, Any]:
        """All that the runs of a policy depend on, but for their seed, as JSON has it."""
        policy = self.policy(label)
        found = {
            "federation": self.tables["federation"],
            "files": _sums(self.tables["federation"], self.path),
            "policy": {"name": policy.name, **policy.parameters},
            "run": self.run,
        }
        return found | {key: self.tables[key] for key in ("task", "learner") if key in self.tables}

    def varied(self, changes: Mapping[str, Any]) -> Scenario:
        """The same with other values in its tables, by dotted key: ``{"policy.quorum": 33}``.

        A number in a key counts groups, from 0: ``"federation.group.0.clients"``.
        """
        tables = copy.deepcopy(self.tables)
        for key, value in changes.items():
            *path, last = key.split(".")
            inner: Any = tables
            for step in path:
                inner = inner[int(step)] if isinstance(inner, list) else inner.setdefault(step, {})
            inner[last] = value
        found = _scenario(self.path, self.text, tables)
        if found.learning is not None and self.learning is not None:
            found.learning.share(self.learning)
        return found

    def but(self, *, rounds: int | None = None, seeds: Sequence[int] | None = None) -> Scenario:
        """The same with another number of rounds, or other seeds."""
        run = self.run if rounds is None else {**self.run, "rounds": rounds}
        _check_limits(run)
        return replace(self, run=run, seeds=self.seeds if seeds is None else _checked(seeds))


def load_scenario(path: str | Path) -> Scenario:
    """The scenario described by a ``.toml`` file."""
    return scenario_from_text(path, read_text(path))


def scenario_from_text(path: str | Path, text: str) -> Scenario:
    """The scenario in the text of a file."""
    path = Path(path)
    return _scenario(path, text, tables_in(path, text, ("federation", "policy", "run")))


def _scenario(path: Path, text: str, tables: Table) -> Scenario:
    place = Place(path)
    federation = federation_from_table(tables["federation"], path)
    run, seeds = _run(tables["run"], place.inside("run"))
    if "evaluate_every" in run and "task" not in tables:
        raise place.error(
            "run.evaluate_every needs [task]: without one there is no model to measure. Take it "
            "out, or add [task] and [learner]."
        )
    return Scenario(
        path=path,
        text=text,
        tables=tables,
        federation=federation,
        policies=_policies(tables, federation, run, place),
        run=run,
        seeds=seeds,
        learning=_learning(tables, place),
    )


def _policies(tables: Table, federation: Federation, run: Table, place: Place) -> dict[str, Policy]:
    """The policy of ``[policy]`` under its name, then those of ``[policies.LABEL]``."""
    first = _policy(tables["policy"], federation, run, place.inside("policy"))
    found = {first.name: first}
    others = place.inside("policies")
    for label, table in tables.get("policies", {}).items():
        here = others.inside(label)
        if not _LABEL.fullmatch(label):
            raise here.error(
                f"'{label}' cannot be a folder's name, which it is to become: use letters, digits "
                "and hyphens."
            )
        if label in found:
            raise here.error(
                f"{here.key} is the label of [policy] too: choose another, and say in the table "
                f'which policy it is, name = "{label}".'
            )
        validated({label: (Table, REQUIRED)}, {label: table}, others)
        found[label] = _policy({"name": label, **table}, federation, run, here)
    return found


def _policy(table: Table, federation: Federation, run: Table, place: Place) -> Policy:
    from cafe.policies import recipes

    policy = call_named(recipes(), table, place)
    with place.explaining():
        policy.check(federation, run.get("crash", 0.0))
    return policy


def _run(table: Table, place: Place) -> tuple[Table, tuple[int, ...]]:
    """What ``simulate`` is told, and the seeds."""
    from cafe.engine import simulate
    from cafe.engine.run import check_hazards

    shape = {"seeds": (list[int], None), **shape_of(simulate, ("seed",))}
    given = arguments(shape, table, place)
    with place.explaining():
        seeds = _checked(given.pop("seeds", [0]))
        _check_limits(given)
        check_hazards(given.get("crash", 0.0), given.get("patience", 1))
    return given, seeds


def _check_limits(run: Table) -> None:
    from cafe.engine import Limits

    Limits(run.get("rounds"), run.get("updates"), run.get("time"))
    if "evaluate_every" in run:
        whole("evaluate_every", run["evaluate_every"])


def _checked(seeds: Sequence[int]) -> tuple[int, ...]:
    found = tuple(check_seed(seed) for seed in seeds)
    if not found or len({*found}) < len(found):
        raise InputError(
            f"seeds must be one or more, all different. Got {[*found]}: each is one run."
        )
    return found


def _learning(tables: Table, place: Place) -> Learning | None:
    if "task" not in tables and "learner" not in tables:
        return None
    for name, other in (("task", "learner"), ("learner", "task")):
        if name not in tables:
            raise place.error(
                f"[{other}] needs [{name}] beside it: what is learned and how belong together. "
                "Add it, or take both out and only the books are kept."
            )
    return learning_from_tables(tables["task"], tables["learner"], place)


def _sums(federation: Table, path: Path) -> dict[str, str]:
    """The SHA-256 of each file that a federation is read from."""
    tables = (federation, federation.get("presence", {}), *federation.get("group", ()))
    names = [{"file": table["file"]} for table in tables if "file" in table]
    read = {name["file"]: read_text(file_of(name, Place(path))) for name in names}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in read.items()}
