"""A live run as plain arrays and back: what a checkpoint holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from cafe.engine.state import State, packed, restore_books, save_books, unpacked
from cafe.live.records import Record
from cafe.live.run import LiveRun, titled


def save(run: LiveRun) -> State:
    """All that the rest of a run depends on, and its past; random numbers need no state."""
    state, meta = save_books(run)
    state["ledger.examples"] = run.ledger.examples
    weights = run.weights
    state |= {f"model.{version}": model for version, model in weights.versions.items()}
    state |= {f"moment.{n}": np.asarray(moment) for n, moment in enumerate(weights.moments)}
    state |= {f"rest.{name}": array for name, array in weights.rest.items()}
    state |= {f"held.{k}": update for k, update in run.held.items()}
    state["norms"] = np.array(run.desk.gate.norms, dtype=float)
    meta |= asdict(run.roster)
    meta |= {"failures": run.failures, **identity(run)}
    meta["pending"] = {
        k: [asdict(record) for record in chain] for k, chain in run.pending.chains.items()
    }
    meta["running"] = [asdict(run.desk.records[k]) for k in run.running.client.tolist()]
    return packed(state, meta)


def restore(run: LiveRun, state: State) -> None:
    """Put a new run, made with the same arguments, where the saved one was.

    Its clock goes on from there. Jobs that were running then cannot report to the new server: they
    are lost.
    """
    meta = unpacked(state, identity(run))
    vars(run.roster).update({name: meta[name] for name in vars(run.roster)})
    run.books.admit(len(run.roster.names))
    restore_books(run, state, meta)
    run.ledger.examples = state["ledger.examples"].copy()
    run.running.arrival[:], run.running.stop[:] = np.inf, run.ledger.now
    run.failures = meta["failures"]
    weights = run.weights
    weights.versions = {int(n): array for n, array in _named(state, "model.").items()}
    run.held = {int(n): array for n, array in _named(state, "held.").items()}
    weights.rest = _named(state, "rest.")
    moments = _named(state, "moment.")
    weights.moments = tuple(moments[f"{n}"] for n in range(len(moments)))
    run.desk.gate.norms.extend(state["norms"].tolist())
    run.pending.chains = {
        int(k): [Record(**record) for record in chain] for k, chain in meta["pending"].items()
    }
    for record in meta["running"]:
        run.desk.lose(Record(**record), "the server was started again")
    run.set_clock(run.ledger.now)


def identity(run: LiveRun) -> dict[str, Any]:
    """What a run must have in common with one that it takes up."""
    layout, optimiser = run.weights.layout, run.weights.optimiser
    return {
        "seed": run.seed,
        "policy": run.title,
        "combine": titled(run.weights.combine),
        "optimiser": None if optimiser is None else titled(optimiser),
        "model": {name: [[*shape], layout.kinds[name]] for name, shape in layout.shapes.items()},
    }


def _named(state: State, prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): array.copy()
        for name, array in state.items()
        if name.startswith(prefix)
    }
