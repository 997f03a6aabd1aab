"""The tables ``[task]`` and ``[learner]``: what is learned, from which examples, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cafe.randomness import Stream
from cafe.scenario.data_table import DATA_KEYS, DataTable, data_from_table
from cafe.scenario.learner_table import LearnerMaker, learner_from_table
from cafe.toml_tables.reading import TableLocation
from cafe.toml_tables.shapes import REQUIRED, Shape, Table
from cafe.toml_tables.signatures import call_named, read_arguments, shape_of

if TYPE_CHECKING:
    from cafe.data import Dataset, Partition
    from cafe.data.own_clients import OwnClients
    from cafe.data.store import Fetching
    from cafe.task import Task


@dataclass(frozen=True, eq=False)
class Learning:
    """What is learned. It becomes a task with a seed, which determines the clients' examples.

    Attributes:
        source: the name of the scenario file, for error messages.
        data_table: which examples are used.
        split: which training and test examples to use: the dataset's "own", or those of the
            "paper".
        partition: how the examples are distributed over the clients.
        learner: builds the learner.
        options: the other fields of the task.
    """

    source: str
    data_table: DataTable
    split: Literal["own", "paper"]
    partition: Partition | OwnClients
    learner: LearnerMaker
    options: dict[str, Any]

    @cached_property
    def data(self) -> Dataset:
        """The examples, loaded at the first use."""
        return self._load(nullcontext)

    def fetch(self, fetching: Fetching) -> None:
        """Load the dataset now if it may have to be downloaded; see :func:`cafe.data.load`."""
        if self.data_table.may_be_fetched and "data" not in vars(self):
            vars(self)["data"] = self._load(fetching)

    def _load(self, fetching: Fetching) -> Dataset:
        found = self.data_table.load(TableLocation(self.source, "task"), fetching)
        return found.paper_split() if self.split == "paper" and not found.held_out else found

    def share(self, other: Learning) -> None:
        """Use the examples that another object has loaded, if they are the same."""
        if (self.data_table, self.split) == (other.data_table, other.split):
            vars(self)["data"] = other.data

    @cached_property
    def identity(self) -> dict[str, dict[str, dict[str, str]]]:
        """Hashes of what the tables only name: the user's data, and the user's code."""
        data = self.data_table.sums(TableLocation(self.source, "task"))
        sums = {"task": data, "learner": self.learner.code}
        return {table: {"sha256": each} for table, each in sums.items() if each}

    def task(self, clients: int, seed: int, threads: int | None = None) -> Task:
        """The task for a seed, which determines the examples of each client."""
        from cafe.data.own_clients import OwnClients
        from cafe.task import Task

        train = self.data.train
        with TableLocation(self.source, "task").inside("partition").add_to_errors():
            rng, partition = Stream(seed, "partition").at(0), self.partition
            if isinstance(partition, OwnClients):
                shards = partition(self.data.holders, clients, rng)
            else:
                shards = partition(train.y, clients, rng)
        learner = self.learner.build(prod(train.x.shape[1:]), train.classes, threads)
        if hasattr(learner, "check"):
            with TableLocation(self.source, "learner").add_to_errors():
                learner.check(train)
        return Task(train, shards, learner, self.data.test, **self.options)


def learning_from_tables(task: Table, learner: Table, location: TableLocation) -> Learning:
    """What the two tables describe; ``location`` is that of the document."""
    from cafe.data import PARTITIONS, Examples, Shards
    from cafe.data.own_clients import OwnClients
    from cafe.task import Task

    here = location.inside("task")
    given = read_arguments(_task_shape(), task, here)
    data = data_from_table(given, here)
    known = {**PARTITIONS, "own": OwnClients}
    partition = _call(known, given["partition"], here.inside("partition"))
    options = {k: v for k, v in given.items() if k not in {*DATA_KEYS, "split", "partition"}}
    if isinstance(options.get("rate"), dict):
        options["rate"] = _falling_rate(options["rate"], here.inside("rate"))
    if "server" in options:
        options["server"] = _call(_servers(), options["server"], here.inside("server"))
    maker = learner_from_table(learner, location.inside("learner"))
    with here.add_to_errors():  # check the options early, with the smallest possible task
        one = Examples(np.zeros((1, 1)), np.zeros(1))
        Task(one, Shards.of([np.array([0])]), maker.build(1, 2, 1), **options)
    split = given.get("split", "own")
    return Learning(f"{location.where}", data, split, partition, maker, options)


def _task_shape() -> Shape:
    """The keys of ``[task]``: the fields of Task, with names or tables for non-TOML types."""
    from cafe.task import Task

    return {
        **dict.fromkeys(DATA_KEYS, (str, None)),
        "split": (Literal["own", "paper"], None),
        "partition": (str | Table, REQUIRED),
        **shape_of(Task),
        "rate": (float | Table, None),
        "server": (str | Table, None),
    }


def _call(
    known: Mapping[str, Callable[..., Any]], value: str | Table, location: TableLocation
) -> Any:
    """Call what a name stands for; the name is given alone or in a table with parameters."""
    return call_named(known, {"name": value} if isinstance(value, str) else value, location)


def _falling_rate(table: Table, location: TableLocation) -> Callable[[Any], Any]:
    from cafe.learn.schedules import LearningRate

    given = read_arguments(shape_of(LearningRate), table, location)
    with location.add_to_errors():
        return LearningRate(**given)


def _servers() -> dict[str, type[Any]]:
    """All server optimisers, by the name of the class in lower case."""
    from cafe.learn import server_optimisers

    classes = (found for found in vars(server_optimisers).values() if isinstance(found, type))
    return {found.__name__.lower(): found for found in classes if is_dataclass(found)}
