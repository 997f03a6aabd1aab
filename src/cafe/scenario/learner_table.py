"""The table ``[learner]``: a learner by name, and its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING

from cafe.scenario.torch_table import torch_from_table
from cafe.toml_tables.reading import TableLocation, look_up_name
from cafe.toml_tables.shapes import Table
from cafe.toml_tables.signatures import read_arguments, shape_of

if TYPE_CHECKING:
    from cafe.learn.base import Learner

# For each name: the module, the class, and the parameters that the name implies.
_LEARNERS: dict[str, tuple[str, str, Table]] = {
    "logistic": ("cafe.learn.linear", "Logistic", {}),
    "mlp": ("cafe.learn.mlp", "MLP", {}),
    "ridge": ("cafe.learn.linear", "Ridge", {}),
    "softmax": ("cafe.learn.mlp", "MLP", {"hidden": ()}),
    "torch": ("", "", {}),
}
_FROM_EXAMPLES = ("inputs", "classes")  # parameters of a learner that follow from the examples
_THREADS = "threads"  # a parameter that depends on the machine, so a scenario does not set it


@dataclass(frozen=True)
class LearnerMaker:
    """Builds the learner of a scenario.

    Attributes:
        build: a function of the numbers of inputs, classes and threads.
        code: the hash of each user function that the learner calls, by its key in ``[learner]``.
    """

    build: Callable[[int, int, int | None], Learner]
    code: dict[str, str] = field(default_factory=dict)


def learner_from_table(table: Table, location: TableLocation) -> LearnerMaker:
    """What the table describes."""
    module, name, implied = look_up_name("name", _LEARNERS, table, location)
    rest = {key: value for key, value in table.items() if key != "name"}
    if not module:
        make, code = torch_from_table(rest, location)
        return LearnerMaker(lambda inputs, classes, threads: make(threads), code)
    learner: Callable[..., Learner] = getattr(import_module(module), name)
    shape = shape_of(learner, {*_FROM_EXAMPLES, _THREADS, *implied})
    given = implied | read_arguments(shape, rest, location, ("name",))
    with location.add_to_errors():  # check the options early, with the smallest possible learner
        learner(inputs=1, classes=2, **given)
    return LearnerMaker(partial(_build_learner, learner, given))


def _build_learner(
    learner: Callable[..., Learner], given: Table, inputs: int, classes: int, threads: int | None
) -> Learner:
    own = {_THREADS: threads} if _THREADS in signature(learner).parameters else {}
    return learner(inputs=inputs, classes=classes, **given, **own)
