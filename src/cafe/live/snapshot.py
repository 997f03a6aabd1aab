"""A live run as plain arrays and back: the contents of its checkpoint."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from cafe.controllers import display_name, identity_of
from cafe.engine.snapshot import State, pack, restore_books, save_books, unpack
from cafe.live.aggregation import Sum
from cafe.live.job_records import RESTARTED, JobRecord
from cafe.live.live_run import LiveRun
from cafe.live.wire import Report
from cafe.rounds.client_vectors import ClientVectors
from cafe.rounds.jobs import Status
from cafe.rounds.ledger import UNKNOWN


def save(run: LiveRun) -> State:
    """The state of a run and its past. Random numbers need no state."""
    state, meta = save_books(run)
    model, kept = run.global_model, run.kept_records
    state |= {f"model.{version}": vector for version, vector in model.versions.items()}
    state |= {f"moment.{n}": np.asarray(moment) for n, moment in enumerate(model.moments)}
    state |= {f"rest.{name}": array for name, array in model.rest.items()}
    state |= {f"held.{k}": np.asarray(report.vector) for k, report in run.held.items()}
    state["stay.departures"] = run.stay_estimate.departures
    state["stay.seconds"] = run.stay_estimate.seconds
    state["norms"] = np.array([*run.clipper.norms.items()], dtype=float).reshape(-1, 2)
    meta |= asdict(run.clients)
    meta |= {"failures": run.failures, "waits": run.calls.waits, **identity(run)}
    meta["clock"], meta["restarts"] = run.now(), run.restarts
    meta["classes"] = run.validator.classes
    meta["held"] = {k: _without_vector(report) for k, report in run.held.items()}
    meta["pending"] = {k: [asdict(record) for record in chain] for k, chain in kept.chains.items()}
    meta["used"] = {k: asdict(record) for k, record in kept.held.items()}
    meta["running"] = [asdict(record) for record in run.records]
    if run.vectors.used or run.vectors.begun:
        arrays, meta["vectors"] = run.vectors.save()
        state |= arrays
    return pack(state, meta)


def restore(run: LiveRun, state: State) -> None:
    """Set a new run, made with the same arguments, to the state of a saved run.

    Its clock continues from there. Jobs that were running cannot report to the new server, and are
    lost.
    """
    meta = unpack(state, identity(run))
    vars(run.clients).update({name: meta[name] for name in vars(run.clients)})
    run.books.admit(np.full(len(run.clients.names), UNKNOWN))
    restore_books(run, state, meta)
    run.running.arrival[:], run.running.stop[:] = np.inf, run.ledger.now
    run.running.status[:] = Status.CRASHED
    run.failures, run.calls.waits = meta["failures"], meta["waits"]
    run.restarts = meta["restarts"]
    run.validator.classes = meta["classes"]
    run.clipper.norms = {int(client): norm for client, norm in state["norms"].tolist()}
    stay = _with_prefix(state, "stay.")  # runs of older versions have none
    if stay:
        run.stay_estimate.restore(**stay)
    model, kept = run.global_model, run.kept_records
    model.versions = {int(n): array for n, array in _with_prefix(state, "model.").items()}
    model.rest = _with_prefix(state, "rest.")
    moments = _with_prefix(state, "moment.")
    model.moments = tuple(moments[f"{n}"] for n in range(len(moments)))
    run.held = {
        int(k): _report(run, int(k), vector, meta["held"][k])
        for k, vector in _with_prefix(state, "held.").items()
    }
    kept.chains = {
        int(k): [JobRecord(**record) for record in chain] for k, chain in meta["pending"].items()
    }
    kept.held = {int(k): JobRecord(**record) for k, record in meta["used"].items()}
    if "vectors" in meta:
        run.vectors = ClientVectors.restore(state, meta["vectors"])
    lost = [JobRecord(**record) for record in meta["running"]]
    run.records = [replace(record, reason=RESTARTED) for record in lost]
    run.set_clock(meta["clock"])


def identity(run: LiveRun) -> dict[str, Any]:
    """What a run must have in common with a saved run that it resumes."""
    model, optimiser = run.global_model, run.global_model.optimiser
    layout = model.layout
    return {
        "seed": run.seed,
        "policy": identity_of(run.controller),
        "combine": display_name(model.combine or Sum()),
        "optimiser": None if optimiser is None else display_name(optimiser),
        "model": {name: [[*shape], layout.kinds[name]] for name, shape in layout.shapes.items()},
    }


def _without_vector(report: Report) -> dict[str, Any]:
    """An accepted report for JSON, without its update."""
    assert report.vector is not None
    return {
        "carried": report.carried,
        "examples": UNKNOWN if report.examples is None else report.examples,
        "loss": report.loss,
        "label": report.label,
        "norm": float(np.linalg.norm(report.vector.astype(np.float64))),
        "took": report.took,
        "steps": report.steps,
        "rms_loss": report.rms_loss,
        "labels": report.labels,
        "rate": report.rate,
    }


def _report(run: LiveRun, k: int, vector: Any, meta: dict[str, Any]) -> Report:
    """The accepted report that a client's books hold."""
    kept = run.books.kept
    return Report(
        update={},
        invitation=int(kept.invitation[k]),
        version=int(kept.version[k]),
        carried=meta["carried"],
        examples=None if meta["examples"] == UNKNOWN else meta["examples"],
        loss=meta["loss"],
        label=meta["label"],
        took=meta["took"],
        steps=meta["steps"],
        rms_loss=meta["rms_loss"],
        labels=None if meta["labels"] is None else tuple(meta["labels"]),
        rate=meta.get("rate"),
        vector=vector,
    )


def _with_prefix(state: State, prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): array.copy()
        for name, array in state.items()
        if name.startswith(prefix)
    }
