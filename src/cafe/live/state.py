"""A live run as plain arrays and back: what a checkpoint holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from cafe.engine.state import State, packed, restore_books, save_books
from cafe.errors import InputError
from cafe.live.records import Record
from cafe.live.run import LiveRun, titled

_ROSTER = ("names", "labels", "refusals")


def save(run: LiveRun) -> State:
    """All that the rest of a run depends on, and its past; random numbers need no state."""
    state, meta = save_books(run)
    state["ledger.examples"] = run.ledger.examples
    state |= {f"model.{version}": model for version, model in run.models.items()}
    state |= {f"moment.{n}": np.asarray(moment) for n, moment in enumerate(run.moments)}
    state |= {f"held.{k}": update for k, update in run.held.items()}
    state |= {f"rest.{name}": array for name, array in run.rest.items()}
    state["norms"] = np.array(run.gate.norms, dtype=float)
    meta |= {name: getattr(run, name) for name in _ROSTER}
    meta |= {"failures": run.failures, **identity(run)}
    meta["pending"] = {
        k: [asdict(record) for record in chain] for k, chain in run.pending.chains.items()
    }
    meta["running"] = [asdict(run.record_of(k)) for k in run.running.client.tolist()]
    return packed(state, meta)


def restore(run: LiveRun, state: State) -> None:
    """Put a new run, made with the same arguments, where the saved one was.

    Its clock goes on from there. Jobs that were running then cannot report to the new server: they
    are lost.
    """
    meta = json.loads(bytes(state["meta"]))
    for name, mine in identity(run).items():
        if meta[name] != mine:
            raise InputError(
                f"The saved run has the {name} {meta[name]}, and this one {mine}: it cannot be "
                "taken up with another. Begin anew in another folder."
            )
    for name in _ROSTER:
        setattr(run, name, meta[name])
    run.books.admit(len(run.names))
    restore_books(run, state, meta)
    run.ledger.examples = state["ledger.examples"].copy()
    run.running.arrival[:], run.running.stop[:] = np.inf, run.ledger.now
    run.failures = meta["failures"]
    run.models = {int(n): array for n, array in _named(state, "model.").items()}
    run.held = {int(n): array for n, array in _named(state, "held.").items()}
    run.rest = _named(state, "rest.")
    moments = _named(state, "moment.")
    run.moments = tuple(moments[f"{n}"] for n in range(len(moments)))
    run.gate.norms.extend(state["norms"].tolist())
    run.pending.chains = {
        int(k): [Record(**record) for record in chain] for k, chain in meta["pending"].items()
    }
    for record in meta["running"]:
        run.lose(Record(**record), "the server was started again")
    run.set_clock(run.ledger.now)


def identity(run: LiveRun) -> dict[str, Any]:
    """What a run must have in common with one that it takes up."""
    return {
        "seed": run.seed,
        "policy": run.title,
        "combine": titled(run.combine),
        "optimiser": None if run.optimiser is None else titled(run.optimiser),
        "model": {
            name: [[*shape], run.layout.kinds[name]] for name, shape in run.layout.shapes.items()
        },
    }


def _named(state: State, prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): array.copy()
        for name, array in state.items()
        if name.startswith(prefix)
    }
