"""The ServerApp."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from cafe.control import Controller
from cafe.flower.grid import GridWire
from cafe.learn.server import ServerOptimiser
from cafe.live.admission import Guard
from cafe.live.brief import Brief, Model
from cafe.live.layout import Layout
from cafe.live.robust import Combine
from cafe.live.run import titled
from cafe.live.scoring import Evaluate
from cafe.live.serving import serve
from cafe.rounds.policy import Policy

FOLDER = "results/live"


def server(
    policy: Policy | Controller,
    model: Model,
    *,
    rounds: int | None = None,
    updates: int | None = None,
    time: float | None = None,
    seed: int = 0,
    evaluate: Evaluate | str | None = None,
    evaluate_every: int = 1,
    evaluate_seconds: float = 60.0,
    guard: Guard | None = None,
    combine: Combine | None = None,
    optimiser: ServerOptimiser | None = None,
    clients: int | None = None,
    wait: float = 300.0,
    patience: int = 100,
    folder: str | Path = FOLDER,
) -> ServerApp:
    """A Flower ServerApp that runs a policy; see :class:`cafe.live.brief.Brief`.

    Keys of the app's own configuration take the place of some: ``folder``, ``rounds``, ``updates``,
    ``time``, ``seed``; and ``overwrite`` begins a run anew. A run that is in the folder and not
    finished is gone on with.

    Args:
        policy: such as ``cafe.policies.mcu(...)``, the same object that ``cafe.simulate`` takes; or
            a controller that chooses a policy for each round.
        model: the arrays to begin with, by name, or a function that gives them.
        rounds: how many rounds at most, failed ones included.
        updates: how many successful rounds at most.
        time: stop after the first round that closes after so many seconds.
        seed: of all that the server draws.
        evaluate: from the model's arrays to its loss and accuracy; "clients": ask them; None: not.
        evaluate_every: how many updates apart.
        evaluate_seconds: how long an evaluation may take.
        guard: limits on what clients may report.
        combine: how updates are put together; None adds them up.
        optimiser: what the server does with the update; None adds it to the model.
        clients: wait for so many before a round; None: for as many as the quorum.
        wait: seconds to wait for them, before the run is stopped.
        patience: so many failed rounds in a row stop the run.
        folder: for the run's files.
    """
    written = Brief(
        policy,
        model,
        rounds=rounds,
        updates=updates,
        time=time,
        seed=seed,
        evaluate=evaluate,
        evaluate_every=evaluate_every,
        evaluate_seconds=evaluate_seconds,
        guard=guard,
        combine=combine,
        optimiser=optimiser,
        clients=clients,
        wait=wait,
        patience=patience,
    )
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        config = context.run_config
        brief = replace(written, **_configured(config))
        place = Path(str(config.get("folder") or folder))
        say = logging.getLogger("flwr").info
        wire = GridWire(grid, Layout.of(brief.arrays()), _key(place, brief), say)
        if not wire.limited:
            say("This version of Flower takes in replies of any size: see the page on security.")
        anew = bool(config.get("overwrite", False))
        serve(wire, brief, place, overwrite=anew, name=f"{context.run_id}", say=say)

    return app


def _configured(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the app's configuration says; 0 stands for not said, since it has no other word."""
    names = ("rounds", "updates", "time")
    found = {name: config[name] for name in names if config.get(name)}
    if found:
        found = dict.fromkeys(names) | found
    return found | ({"seed": config["seed"]} if "seed" in config else {})


def _key(folder: Path, brief: Brief) -> str:
    """A word for a run that is the same when it is gone on with."""
    text = f"{folder.resolve()} {titled(brief.controller)} {brief.seed}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
