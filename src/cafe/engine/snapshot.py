"""Save a run as plain arrays and restore it, so that it continues with identical results."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cafe.controllers import identity_of
from cafe.engine.books import Books
from cafe.engine.failures import Failures
from cafe.engine.job_chains import InvitedWork, Link
from cafe.engine.local_models import ChainStore
from cafe.engine.run import Run
from cafe.errors import InputError
from cafe.learn.base import Score
from cafe.rounds.client_vectors import ClientVectors
from cafe.rounds.history import Column
from cafe.rounds.identity import digest
from cafe.rounds.jobs import Running, Work
from cafe.rounds.ledger import ModelScore
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.policy_changes import PolicyChange, change_from_json

State = dict[str, NDArray[Any]]

_CLOCK = (
    *("now", "opened", "round", "version", "invitations"),
    *("state", "owner", "control", "score"),
)
_BOOKS = ("area", "settled", "weight", "joined")


class RunWithBooks(Protocol):
    """What simulated and live runs have in common: books, running jobs, outcomes and scores."""

    policy: Policy
    books: Books
    running: Running
    outcomes: list[Outcome]
    policy_changes: list[PolicyChange]
    scores: list[tuple[int, Score]]

    @property
    def by_round(self) -> dict[str, Column]:
        """The rounds so far, as an array per field."""


def save_books(run: RunWithBooks) -> tuple[State, dict[str, Any]]:
    """The books of a run, its running jobs, and its past, as arrays and as values for JSON."""
    books, ledger = run.books, run.books.ledger
    state: State = {f"ledger.{name}": column for name, column in vars(books.columns).items()}
    state |= {f"books.{name}": getattr(books, name) for name in _BOOKS}
    state |= {f"kept.{name}": column for name, column in vars(books.kept).items()}
    state |= {f"running.{name}": column for name, column in vars(run.running).items()}
    state |= {f"by_round.{name}": column for name, column in run.by_round.items()}
    state["scores"] = np.array(
        [
            (after, score.loss, np.nan if score.accuracy is None else score.accuracy)
            for after, score in run.scores
        ]
    ).reshape(-1, 3)
    if ledger.memory is not None:
        state["memory"] = ledger.memory
    changes = [asdict(change) for change in run.policy_changes]
    return state, {name: getattr(ledger, name) for name in _CLOCK} | {"policy_changes": changes}


def restore_books(run: RunWithBooks, state: State, meta: dict[str, Any]) -> None:
    """Write what :func:`save_books` has saved into a run."""
    ledger, books = run.books.ledger, run.books
    for name in _CLOCK:
        setattr(ledger, name, meta.get(name, getattr(ledger, name)))  # older runs lack some
    ledger.score = None if ledger.score is None else ModelScore(*ledger.score)
    for name in vars(books.columns):
        setattr(books.columns, name, state[f"ledger.{name}"].copy())
    ledger.memory = state.get("memory")
    if ledger.memory is not None:
        ledger.memory.setflags(write=False)
    ledger.forget_marks()
    ledger.attach(books.columns)
    for name in _BOOKS:
        setattr(books, name, state[f"books.{name}"].copy())
    for name in vars(books.kept):
        setattr(books.kept, name, state[f"kept.{name}"].copy())
    run.running = Running(**{f.name: state[f"running.{f.name}"] for f in fields(Running)})
    ledger.working = len(run.running)
    found = [state[f"by_round.{field.name}"] for field in fields(Outcome)]
    run.policy_changes = [change_from_json(each) for each in meta.get("policy_changes", ())]
    run.outcomes = [Outcome(*map(_plain, row)) for row in zip(*found, strict=True)]
    run.scores = [
        (int(after), Score(float(loss), None if np.isnan(accuracy) else float(accuracy)))
        for after, loss, accuracy in state["scores"]
    ]


def pack(state: State, meta: dict[str, Any]) -> State:
    """Copies of the arrays, with the values for JSON as one more array."""
    text = json.dumps(meta).encode()
    whole = state | {"meta": np.frombuffer(text, dtype=np.uint8)}
    return {name: np.array(column) for name, column in whole.items()}


def unpack(state: State, identity: dict[str, Any]) -> dict[str, Any]:
    """The values for JSON of a saved run. Raises an error if it is another run."""
    meta: dict[str, Any] = json.loads(bytes(state["meta"]))
    for name, mine in identity.items():
        if meta[name] != mine:
            raise InputError(
                f"The saved run has the {name} {meta[name]}, and this one {mine}: a run can only "
                "be resumed with the same settings. Start over in another folder."
            )
    return meta


def save(run: Run) -> State:
    """The state of a run as arrays: all that its next rounds depend on, and its past.

    Example:
        >>> import cafe
        >>> from cafe.engine import Run
        >>> from cafe.engine.snapshot import restore, save
        >>> federation = cafe.Federation(clients=20, latency=cafe.Exponential(rate=1.0))
        >>> policy = cafe.policies.mcu(quorum=5, deadline=1.0)
        >>> first, second = Run(federation, policy), Run(federation, policy)
        >>> first.step().round
        0
        >>> restore(second, save(first))
        >>> second.step().round
        1
    """
    if run.starter.simulate_jobs is not None:
        raise InputError(
            "A run of two levels cannot be saved: the runs of its clusters are not part of it. "
            "Run it again from its seed, which gives the same results."
        )
    state, meta = save_books(run)
    meta |= {"failures": asdict(run.failures), "waits": run.calls.waits, **_identity(run)}
    meta["uploads"] = [*run.traffic.uploads.items()]
    state["responses"] = run.responses.rows.copy()
    if run.presence is not None:
        saved = run.presence.save()
        state |= {f"presence.{name}": column for name, column in saved.items()}
    training = run.training
    if training is not None:
        learner = training.task.learner
        state |= {f"model.{v}": learner.save(model) for v, model in training.models.items()}
        state |= {f"moment.{n}": learner.save(m) for n, m in enumerate(training.moments)}
        meta["trained"], meta["given"] = training.version, training.given
        meta["examples_trained"], meta["evaluated_on"] = training.examples_trained, run.evaluated_on
        chains = training.chains
        meta |= {"chains": chains.kept, "begun": chains.continued}
        meta["calls"] = [
            (number, each.round, asdict(each.work)) for number, each in chains.invitations.items()
        ]
        if training.vectors.used or training.vectors.begun:
            arrays, meta["vectors"] = training.vectors.save()
            state |= arrays
    return pack(state, meta)


def restore(run: Run, state: State) -> None:
    """Write the saved state into a new run, which must have the same arguments as the saved one."""
    meta = unpack(state, _identity(run))
    if run.presence is not None:
        prefix = "presence."
        run.presence.restore(
            {n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)}
        )
    training = run.training
    if ("trained" in meta) != (training is not None):
        raise InputError("The saved run and this one must both have a task, or both have none.")
    restore_books(run, state, meta)
    run.failures, run.calls.waits = Failures(**meta["failures"]), meta["waits"]
    run.traffic.uploads = dict(meta["uploads"])
    run.responses.add(state["responses"])
    if training is not None:
        load = training.task.learner.load
        training.version, training.given = meta["trained"], meta["given"]
        training.examples_trained, run.evaluated_on = meta["examples_trained"], meta["evaluated_on"]
        training.models = {
            int(name.partition(".")[2]): load(saved)
            for name, saved in state.items()
            if name.startswith("model.")
        }
        moments = sum(name.startswith("moment.") for name in state)
        training.moments = tuple(load(state[f"moment.{n}"]) for n in range(moments))
        kept, continued = (
            {int(k): tuple(Link(*link) for link in chain) for k, chain in meta[name].items()}
            for name in ("chains", "begun")
        )
        invitations = {n: InvitedWork(round_, Work(**work)) for n, round_, work in meta["calls"]}
        training.chains = ChainStore(kept, continued, invitations)
        if "vectors" in meta:
            training.vectors = ClientVectors.restore(state, meta["vectors"])


def _identity(run: Run) -> dict[str, Any]:
    """The settings that a saved run and the run that resumes it must share."""
    return {
        "seed": run.seed,
        "policy": identity_of(run.controller),
        "clients": run.federation.clients,
        "presence": f"{run.federation.presence}",
        "per_step": digest(run.federation.per_step),
        "crash": run.crash,
        "parameters": None if run.training is None else len(_flat(run)),
    }


def _flat(run: Run) -> NDArray[Any]:
    assert run.training is not None
    return run.training.task.learner.save(run.training.model)


def _plain(value: Any) -> Any:
    return value if isinstance(value, np.ndarray) else value.item()
