"""A ServerApp that runs a policy."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from cafe.controllers import Controller, display_name
from cafe.errors import check_path
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

    An unfinished run in the folder is resumed. The app's configuration overrides some arguments:
    the keys ``folder``, ``rounds``, ``updates``, ``time``, ``seed``, ``secure_aggregation`` and
    ``metrics``. The key ``overwrite`` starts the run over. A table
    ``[tool.flwr.app.config.policy]`` overrides the policy. It contains the parameters of the policy
    and its ``name``: one of CAFe's policies, one that an installed package registers, or
    ``package.module:function``.

    Args:
        policy: for example ``cafe.policies.mcu(...)``, the same object that ``cafe.simulate``
            takes; or a controller that chooses a policy for each round; or the name of a policy
            that needs no parameters, such as ``"my_app.policies:buffered"``.
        model: the initial arrays by name, or a function that returns them.
        folder: where the run's files are written.
        more: when to stop, how to evaluate, what to reject and so on: any other field of
            :class:`cafe.live.server_config.ServerConfig`.

    Example:
        >>> import cafe
        >>> import numpy as np
        >>> from cafe.flower import server
        >>> policy = cafe.policies.mcu(quorum=2, deadline=8.0)
        >>> app = server(policy, {"w": np.zeros(3)}, rounds=20)  # what server_app.py must define
    """
    chosen: Any = policy  # ServerConfig refuses what is neither a policy nor a controller
    if isinstance(policy, str):
        chosen = build_policy({"name": policy}, TableLocation("server", "policy"))
    check_path("folder", folder)
    configured = ServerConfig(chosen, model, **more)
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        config = context.run_config
        final = replace(configured, **_read_config(config))
        output = Path(str(config.get("folder") or folder))
        say = logging.getLogger("flwr").info
        wire = GridWire(grid, Layout.of(final.arrays()), _run_key(output, final), say)
        if not wire.limited:
            say("With this version of Flower, replies of any size are read: see docs/security.md.")
        overwrite = bool(config.get("overwrite", False))
        serve(wire, final, output, overwrite=overwrite, name=f"{context.run_id}", say=say)

    return app


def _read_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the app's configuration sets; 0 means not set, since TOML has no null."""
    names = ("rounds", "updates", "time")
    found = {name: config[name] for name in names if config.get(name)}
    if found:
        found = dict.fromkeys(names) | found
    others = ("seed", "secure_aggregation")
    found |= {name: config[name] for name in others if name in config}
    found |= {"metrics": config["metrics"]} if config.get("metrics") else {}
    # Flower flattens nested tables: their keys contain dots.
    table = {k.removeprefix(POLICY): v for k, v in config.items() if k.startswith(POLICY)}
    if table:
        found["policy"] = build_policy(table, TableLocation("the app's configuration", "policy"))
    return found


def _run_key(folder: Path, config: ServerConfig) -> str:
    """A hash that identifies a run, and stays the same when the run is resumed."""
    text = f"{folder.resolve()} {display_name(config.controller)} {config.seed}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
