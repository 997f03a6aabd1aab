"""Read scenario.toml: the federation, the policies, what is learned, and when the run ends."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cafe.controllers import Controller, identity_of
from cafe.errors import InputError, check_path, check_type, check_whole, did_you_mean
from cafe.federation import Federation
from cafe.federation_files.federation_table import csv_path, federation_from_table
from cafe.federation_files.federation_toml import check_document
from cafe.files import read_text
from cafe.randomness import check_seed
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.policy import Policy
from cafe.scenario import control_table
from cafe.scenario.policy_tables import (
    controllers_from_tables,
    is_label,
    labels_for,
    policies_from_tables,
    policy_from_table,
    registered_names,
)
from cafe.scenario.task_tables import Learning, learning_from_tables
from cafe.toml_tables.reading import TableLocation, parse_toml
from cafe.toml_tables.shapes import Table
from cafe.toml_tables.signatures import read_arguments, shape_of, shape_of_call

if TYPE_CHECKING:
    from cafe.data.store import Fetching
    from cafe.task import Task


@dataclass(frozen=True, eq=False)
class Scenario:
    """The contents of a scenario file.

    Attributes:
        path: the path of the file.
        text: the text of the file.
        tables: the tables of the file, as TOML gives them.
        federation: the clients.
        policies: the policies that have a table, by label; the first is that of ``[policy]``.
        controllers: the controller of ``[controller]`` or ``[control]`` by its label; empty if
            there is none.
        run: the options of :func:`cafe.engine.simulate`: limits, crash, evaluate_every, patience
            and secure_aggregation.
        seeds: one run is made for each seed.
        learning: what is learned; None if nothing is, and only the books are kept.
        names_by_label: names of the policies that have a label but no table, by label; see
            :meth:`with_labels_for`.
    """

    path: Path
    text: str
    tables: dict[str, Any]
    federation: Federation
    policies: Mapping[str, Policy | Hierarchy]
    run: dict[str, Any]
    seeds: tuple[int, ...]
    learning: Learning | None = None
    controllers: Mapping[str, Controller] = field(default_factory=dict)
    names_by_label: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file without its extension."""
        return self.path.stem

    @property
    def label(self) -> str:
        """The label that runs by default: that of the controller, or else of ``[policy]``."""
        return self.labels[0]

    @property
    def labels(self) -> list[str]:
        """All labels with a table: the controller, the policy of ``[policy]``, then the others."""
        return [*self.controllers, *self.policies]

    def policy_or_controller(self, label: str) -> Policy | Hierarchy | Controller:
        """The controller or the policy with this label."""
        check_type("The label of a policy", label, str, "a text, such as 'mcu'")
        return self.controllers[label] if label in self.controllers else self.policy(label)

    def policy(self, label: str) -> Policy | Hierarchy:
        """The policy with this label.

        A policy without a table takes the parameters of ``[policy]`` that it knows, so ``[policy]``
        alone is enough to compare policies that share their parameters. A name can be given instead
        of a label, see :func:`cafe.policies.resolve`.
        """
        if label in self.policies:
            return self.policies[label]
        if label in self.controllers:
            raise self._table_of(label)[1].error(
                f"a policy is needed here. Got {label}, which is a controller and chooses a policy "
                "for each round: name a policy."
            )
        table, location = self._table_of(label)
        return policy_from_table(table, self.federation, self.run, location)

    def with_labels_for(self, names: Sequence[str]) -> tuple[Scenario, list[str]]:
        """A copy with a label for each of the names, and these labels in the order of the names.

        A label is part of a folder name. The label of ``my_policies:buffered`` is ``buffered``, or
        ``my_policies.buffered`` if ``buffered`` is something else. A name that is a valid label is
        its own label.
        """
        from cafe.policies import recipes

        known = {label: self._table_of(label)[0]["name"] for label in self.labels} | {
            **self.names_by_label
        }
        others = {*recipes(), *filter(is_label, names)}
        labels = []
        for name in names:
            own = {label for label, other in known.items() if other == name}
            label = name if is_label(name) else next(labels_for(name, {*known, *others} - own))
            labels.append(label)
            if label != name:
                known[label] = name
        named = {label: name for label, name in known.items() if label not in self.labels}
        return replace(self, names_by_label=named), labels

    def task(self, seed: int, threads: int | None = None) -> Task | None:
        """The learning task for a seed, which determines the examples of each client.

        None if nothing is learned.

        Args:
            seed: a whole number from 0 up.
            threads: the number of threads of a learner that uses several; one per core if left out.
        """
        if self.learning is None:
            return None
        return self.learning.task(self.federation.clients, seed, threads)

    def fetch(self, fetching: Fetching) -> None:
        """Download the examples now, if necessary, so that a run need not wait for them.

        Args:
            fetching: shows the progress of a download, see :func:`cafe.data.load`.
        """
        if self.learning is not None:
            self.learning.fetch(fetching)

    def settings(self, label: str) -> dict[str, Any]:
        """All settings that determine the runs of a policy, except the seed, ready for JSON."""
        found = {
            "federation": self.tables["federation"],
            "files": _checksums(self.tables["federation"], self.path),
            "policy": self._policy_settings(label),
            "run": self.run,
        }
        hashes = {} if self.learning is None else self.learning.identity
        tables = {key: self.tables[key] for key in ("task", "learner") if key in self.tables}
        return found | {key: {**table, **hashes.get(key, {})} for key, table in tables.items()}

    def _policy_settings(self, label: str) -> dict[str, Any]:
        """The settings of a policy; those of a custom policy include the identity of its code."""
        from cafe.policies import recipes

        table, location = self._table_of(label)
        if label in self.controllers:
            given = {key: value for key, value in table.items() if key != "name"}
            with location.add_to_errors():
                identity = identity_of(self.controllers[label])
            return {"controller": table["name"], "parameters": given, "identity": identity}
        policy = self.policy(label)
        if table["name"] in recipes():
            return {"name": policy.name, **policy.parameters}
        given = {key: value for key, value in table.items() if key != "name"}
        with location.add_to_errors():
            return {"name": table["name"], "parameters": given, "identity": policy.identity}

    def _table_of(self, label: str) -> tuple[Table, TableLocation]:
        """The table and location of a policy.

        For a policy without a table, these are the keys of ``[policy]`` that are its parameters.
        """
        from cafe.policies import recipes, resolve

        location = TableLocation(self.path, f"policies.{label}")
        if label in self.controllers:
            if "control" in self.tables:
                named = {"name": label, **self.tables["control"]}
                return named, TableLocation(self.path, "control")
            return self.tables["controller"], TableLocation(self.path, "controller")
        if label in self.policies:
            own = {"name": label, **self.tables.get("policies", {}).get(label, {})}
            first = "policy" in self.tables and label == next(iter(self.policies))
            return (
                (self.tables["policy"], TableLocation(self.path, "policy"))
                if first
                else (own, location)
            )
        name = self.names_by_label.get(label, label)
        if name == control_table.LABEL:
            raise InputError(
                f"{name} is the label of [control], and the scenario has no such table: add it. It "
                "may be empty."
            )
        if ":" not in name and name not in recipes():
            known = {*self.policies, *recipes(), *registered_names()}
            if name not in known:
                raise InputError(f"There is no policy '{name}'. {did_you_mean(name, known)}")
        recipe = resolve(name, self.path.parent)
        with location.add_to_errors():
            shared = shape_of_call(recipe)
        first = self.tables.get("policy", {})
        table = {key: value for key, value in first.items() if key in shared}
        naming = "" if label == name else f', name = "{name}"'
        advice = (
            f"There is no table [policies.{label}], so {label} takes from [policy] the parameters "
            f"that it knows ({', '.join(table) or 'none'}): add that table{naming}, with its own "
            "values."
        )
        return {**table, "name": name}, replace(location, advice=advice)

    def with_values(self, changes: Mapping[str, Any]) -> Scenario:
        """A copy with other values in its tables, by dotted key: ``{"policy.quorum": 33}``.

        A number in a key is the index of a group: ``"federation.group.0.clients"``.
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
        return replace(found, names_by_label=self.names_by_label)

    def with_run(
        self, *, rounds: int | None = None, seeds: Sequence[int] | None = None
    ) -> Scenario:
        """A copy with another number of rounds or other seeds."""
        run = self.run if rounds is None else {**self.run, "rounds": rounds}
        _check_limits(run)
        return replace(self, run=run, seeds=self.seeds if seeds is None else _check_seeds(seeds))


def load_scenario(path: str | Path) -> Scenario:
    r"""Load a scenario from a ``.toml`` file.

    Example:
        >>> from pathlib import Path
        >>> import cafe
        >>> text = "[federation]\nclients = 20\nrate = 1.0\n[run]\nrounds = 10\n"
        >>> text += "[policy]\nname = 'mcu'\nquorum = 3\ndeadline = 0.5"
        >>> _ = Path("scenario.toml").write_text(text)
        >>> cafe.load_scenario("scenario.toml").with_run(seeds=[0, 1]).seeds
        (0, 1)
    """
    return scenario_from_text(path, read_text(path))


def scenario_from_text(path: str | Path, text: str) -> Scenario:
    r"""Read a scenario from text.

    Args:
        path: the path of the file, for error messages; files that the text names are relative to
            it.
        text: the text of the file.

    Example:
        >>> from cafe.scenario import scenario_from_text
        >>> text = "[federation]\nclients = 20\nrate = 1.0\n[run]\nrounds = 10\n"
        >>> text += "[policy]\nname = 'mcu'\nquorum = 3\ndeadline = 0.5"
        >>> scenario = scenario_from_text("scenario.toml", text)
        >>> scenario.label, scenario.federation.clients, scenario.run
        ('mcu', 20, {'rounds': 10})
    """
    path = check_path("path", path)
    check_type("text", text, str, "the text of a scenario file")
    return scenario_from_tables(path, text, parse_toml(path, text))


def scenario_from_tables(path: str | Path, text: str, tables: Table) -> Scenario:
    """Read a scenario from tables, such as those of a file that also has other tables.

    Args:
        path: the path of the file, for error messages; files that the tables name are relative to
            it.
        text: the text of the file.
        tables: the tables of the scenario, as TOML gives them.
    """
    path = check_path("path", path)
    return _scenario(path, text, check_document(path, tables, ("federation", "policy", "run")))


def _scenario(path: Path, text: str, tables: Table) -> Scenario:
    location = TableLocation(path)
    federation = federation_from_table(tables["federation"], path)
    run, seeds = _run(tables["run"], location.inside("run"))
    if "evaluate_every" in run and "task" not in tables:
        raise location.error(
            "run.evaluate_every needs [task]: without one there is no model to evaluate. Remove "
            "it, or add [task] and [learner]."
        )
    policies = policies_from_tables(tables, federation, run, location)
    return Scenario(
        path=path,
        text=text,
        tables=tables,
        federation=federation,
        policies=policies,
        controllers=controllers_from_tables(tables, policies, location),
        run=run,
        seeds=seeds,
        learning=_learning(tables, location),
    )


def _run(table: Table, location: TableLocation) -> tuple[Table, tuple[int, ...]]:
    """The options of ``simulate``, and the seeds."""
    from cafe.engine import simulate
    from cafe.engine.run_checks import check_hazards

    shape = {"seeds": (list[int], None), **shape_of(simulate, ("seed",))}
    given = read_arguments(shape, table, location)
    with location.add_to_errors():
        seeds = _check_seeds(given.pop("seeds", [0]))
        _check_limits(given)
        check_hazards(given.get("crash", 0.0), given.get("patience", 1))
    return given, seeds


def _check_limits(run: Table) -> None:
    from cafe.engine import StoppingRule

    StoppingRule(run.get("rounds"), run.get("updates"), run.get("time"))
    if "evaluate_every" in run:
        check_whole("evaluate_every", run["evaluate_every"])


def _check_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    found = tuple(check_seed(seed) for seed in seeds)
    if not found or len({*found}) < len(found):
        raise InputError(
            f"seeds must be one or more different numbers. Got {[*found]}: each is one run."
        )
    return found


def _learning(tables: Table, location: TableLocation) -> Learning | None:
    if "task" not in tables and "learner" not in tables:
        return None
    for name, other in (("task", "learner"), ("learner", "task")):
        if name not in tables:
            raise location.error(
                f"[{other}] needs [{name}]: both are required to learn a model. Add [{name}], or "
                f"remove [{other}] to simulate without learning."
            )
    return learning_from_tables(tables["task"], tables["learner"], location)


def _checksums(federation: Table, path: Path) -> dict[str, str]:
    """The SHA-256 of each file that a federation is read from."""
    tables = (federation, federation.get("presence", {}), *federation.get("group", ()))
    names = [{"file": table["file"]} for table in tables if "file" in table]
    read = {name["file"]: read_text(csv_path(name, TableLocation(path))) for name in names}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in read.items()}
