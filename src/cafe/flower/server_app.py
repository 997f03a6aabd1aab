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

from cafe.control import Controller, display_name
from cafe.flower.grid import GridWire
from cafe.live.model_layout import Layout
from cafe.live.server import serve
from cafe.live.server_config import Model, ServerConfig
from cafe.rounds.policy import Policy
from cafe.scenario.policy_tables import build_policy
from cafe.toml_tables.reading import TableLocation

FOLDER = "results/live"
POLICY = "policy."


def server(
    policy: Policy | Controller | str, model: Model, *, folder: str | Path = FOLDER, **more: Any
) -> ServerApp:
    """A Flower ServerApp that runs a policy.

    Keys of the app's own configuration take the place of some: ``folder``, ``rounds``, ``updates``,
    ``time``, ``seed``, ``secure_aggregation``; and ``overwrite`` begins a run anew. An unfinished
    run in the folder is resumed. A table ``[tool.flwr.app.config.policy]`` with a ``name`` and the
    recipe's parameters takes the place of the policy: the name of a shipped recipe, of one that an
    installed package registers, or ``package.module:function``.

    Args:
        policy: such as ``cafe.policies.mcu(...)``, the same object that ``cafe.simulate`` takes; or
            a controller that chooses a policy for each round; or the name of a recipe that needs no
            parameters, such as ``"my_app.policies:fedbuff"``.
        model: the arrays to begin with, by name, or a function that gives them.
        folder: for the run's files.
        more: when to stop, how to evaluate, what to refuse and so on: all that
            :class:`cafe.live.server_config.ServerConfig` has.
    """
    if isinstance(policy, str):
        policy = build_policy({"name": policy}, TableLocation("server", "policy"))
    written = ServerConfig(policy, model, **more)
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
    others = ("seed", "secure_aggregation")
    found |= {name: config[name] for name in others if name in config}
    # Flower makes one level of nested tables, with dots in the keys.
    table = {k.removeprefix(POLICY): v for k, v in config.items() if k.startswith(POLICY)}
    if table:
        found["policy"] = build_policy(table, TableLocation("the app's configuration", "policy"))
    return found


def _key(folder: Path, brief: ServerConfig) -> str:
    """A word for a run that is the same when it is gone on with."""
    text = f"{folder.resolve()} {display_name(brief.controller)} {brief.seed}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
