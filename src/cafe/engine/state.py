"""A run as plain arrays and back, so that it can be put down and taken up again, to the bit."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.engine.run import Run
from cafe.errors import InputError
from cafe.learn.base import Score
from cafe.rounds.jobs import Running, Work
from cafe.rounds.outcome import Outcome

State = dict[str, NDArray[Any]]

_LEDGER = ("last_start", "last_round", "merged", "busy", "local")
_CLOCK = ("now", "opened", "round", "version", "state")
_BOOKS = ("area", "settled", "weight")


def save(run: Run) -> State:
    """All that the rest of a run depends on, and its past."""
    ledger, books = run.ledger, run.books
    state: State = {f"ledger.{name}": getattr(ledger, name) for name in _LEDGER}
    state |= {f"books.{name}": getattr(books, name) for name in _BOOKS}
    state |= {f"kept.{name}": column for name, column in vars(books.kept).items()}
    state |= {f"running.{name}": column for name, column in vars(run.running).items()}
    state |= {f"by_round.{name}": column for name, column in run.history().by_round.items()}
    state["scores"] = np.array(
        [
            (after, score.loss, np.nan if score.accuracy is None else score.accuracy)
            for after, score in run.scores
        ]
    ).reshape(-1, 3)
    meta: dict[str, Any] = {name: getattr(ledger, name) for name in _CLOCK}
    meta |= {"seed": run.seed, "policy": str(run.policy), "failures": run.failures}
    training = run.training
    if training is not None:
        learner = training.task.learner
        state |= {f"model.{v}": learner.save(model) for v, model in training.models.items()}
        state |= {f"moment.{n}": learner.save(m) for n, m in enumerate(training.moments)}
        meta["trained"] = training.version
        meta["chains"] = training.chains
        meta["works"] = {r: asdict(work) for r, work in training.works.items()}
    try:
        text = json.dumps(meta)
    except TypeError:
        raise InputError(
            f"The policy {run.policy.name} keeps a state that cannot be written as JSON, so the "
            "run cannot be saved: let observe return numbers, strings, lists and dictionaries."
        ) from None
    state["meta"] = np.frombuffer(text.encode(), dtype=np.uint8)
    return {name: np.array(column) for name, column in state.items()}


def restore(run: Run, state: State) -> None:
    """Put a new run, made with the same arguments, where the saved one was."""
    meta = json.loads(bytes(state["meta"]))
    for name, mine in (("seed", run.seed), ("policy", str(run.policy))):
        if meta[name] != mine:
            raise InputError(
                f"The saved run has the {name} {meta[name]}, and this one {mine}: it cannot be "
                "taken up with another."
            )
    ledger, books, training = run.ledger, run.books, run.training
    if ("trained" in meta) != (training is not None):
        raise InputError("The saved run and this one must both have a task, or both none.")
    for name in _CLOCK:
        setattr(ledger, name, meta[name])
    for name in _LEDGER:
        setattr(ledger, name, state[f"ledger.{name}"].copy())
    for name in _BOOKS:
        setattr(books, name, state[f"books.{name}"].copy())
    for name in vars(books.kept):
        setattr(books.kept, name, state[f"kept.{name}"].copy())
    run.running = Running(**{f.name: state[f"running.{f.name}"] for f in fields(Running)})
    run.failures = (meta["failures"][0], meta["failures"][1], meta["failures"][2])
    columns = [state[f"by_round.{field.name}"] for field in fields(Outcome)]
    run.outcomes = [Outcome(*map(_plain, row)) for row in zip(*columns, strict=True)]
    run.scores = [
        (int(after), Score(float(loss), None if np.isnan(accuracy) else float(accuracy)))
        for after, loss, accuracy in state["scores"]
    ]
    if training is not None:
        load = training.task.learner.load
        training.version = meta["trained"]
        training.models = {
            int(name.partition(".")[2]): load(saved)
            for name, saved in state.items()
            if name.startswith("model.")
        }
        moments = sum(name.startswith("moment.") for name in state)
        training.moments = tuple(load(state[f"moment.{n}"]) for n in range(moments))
        training.chains = {
            int(k): tuple((job[0], job[1]) for job in jobs) for k, jobs in meta["chains"].items()
        }
        training.works = {int(r): Work(**work) for r, work in meta["works"].items()}


def _plain(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else value.item()
