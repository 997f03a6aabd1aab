"""A live run as plain arrays and back: what a checkpoint holds."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from cafe.control import display_name, identity_of
from cafe.engine.snapshot import State, pack, restore_books, save_books, unpack
from cafe.live.job_records import JobRecord
from cafe.live.live_run import LiveRun
from cafe.live.validation import Admitted
from cafe.rounds.client_vectors import ClientVectors
from cafe.rounds.jobs import Status
from cafe.rounds.ledger import UNKNOWN


def save(run: LiveRun) -> State:
    """All that the rest of a run depends on, and its past; random numbers need no state."""
    state, meta = save_books(run)
    global_model = run.global_model
    state |= {f"model.{version}": model for version, model in global_model.versions.items()}
    state |= {f"moment.{n}": np.asarray(moment) for n, moment in enumerate(global_model.moments)}
    state |= {f"rest.{name}": array for name, array in global_model.rest.items()}
    state |= {f"held.{k}": report.update for k, report in run.held.items()}
    state["norms"] = np.array(run.dispatcher.validator.norms, dtype=float)
    meta |= asdict(run.clients)
    meta |= {"failures": run.failures, "waits": run.calls.waits, **identity(run)}
    meta["classes"] = run.dispatcher.validator.classes
    meta["held"] = {k: _but_update(report) for k, report in run.held.items()}
    meta["pending"] = {
        k: [asdict(record) for record in chain] for k, chain in run.pending.chains.items()
    }
    meta["used"] = {k: asdict(record) for k, record in run.pending.held.items()}
    meta["running"] = [asdict(record) for record in run.records]
    if run.vectors.used:
        arrays, meta["vectors"] = run.vectors.save()
        state |= arrays
    return pack(state, meta)


def restore(run: LiveRun, state: State) -> None:
    """Put a new run, made with the same arguments, where the saved one was.

    Its clock goes on from there. Jobs that were running then cannot report to the new server: they
    are lost.
    """
    meta = unpack(state, identity(run))
    vars(run.clients).update({name: meta[name] for name in vars(run.clients)})
    run.books.admit(np.full(len(run.clients.names), UNKNOWN))
    restore_books(run, state, meta)
    run.running.arrival[:], run.running.stop[:] = np.inf, run.ledger.now
    run.running.status[:] = Status.CRASHED
    run.failures, run.calls.waits = meta["failures"], meta["waits"]
    run.dispatcher.validator.classes = meta["classes"]
    global_model = run.global_model
    global_model.versions = {int(n): array for n, array in _named(state, "model.").items()}
    run.held = {
        int(n): _admitted(array, meta["held"][n]) for n, array in _named(state, "held.").items()
    }
    global_model.rest = _named(state, "rest.")
    moments = _named(state, "moment.")
    global_model.moments = tuple(moments[f"{n}"] for n in range(len(moments)))
    run.dispatcher.validator.norms.extend(state["norms"].tolist())
    run.pending.chains = {
        int(k): [JobRecord(**record) for record in chain] for k, chain in meta["pending"].items()
    }
    run.pending.held = {int(k): JobRecord(**record) for k, record in meta["used"].items()}
    if "vectors" in meta:
        run.vectors = ClientVectors.restore(state, meta["vectors"])
    why = "the server was started again"
    run.records = [replace(JobRecord(**record), reason=why) for record in meta["running"]]
    run.set_clock(run.ledger.now)


def identity(run: LiveRun) -> dict[str, Any]:
    """What a run must have in common with one that it takes up."""
    layout, optimiser = run.global_model.layout, run.global_model.optimiser
    return {
        "seed": run.seed,
        "policy": identity_of(run.controller),
        "combine": display_name(run.global_model.combine),
        "optimiser": None if optimiser is None else display_name(optimiser),
        "model": {name: [[*shape], layout.kinds[name]] for name, shape in layout.shapes.items()},
    }


def _but_update(report: Admitted) -> dict[str, Any]:
    """A report for JSON, which has no word for what is not a number."""
    found = {name: value for name, value in vars(report).items() if name != "update"}
    return {name: None if value != value else value for name, value in found.items()}


def _admitted(update: Any, meta: dict[str, Any]) -> Admitted:
    losses = {name: np.nan if meta[name] is None else meta[name] for name in ("loss", "rms_loss")}
    labels = None if meta["labels"] is None else tuple(meta["labels"])
    return Admitted(**meta | losses | {"labels": labels, "update": update})


def _named(state: State, prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): array.copy()
        for name, array in state.items()
        if name.startswith(prefix)
    }
