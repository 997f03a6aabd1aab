"""A server whose policy comes from the run's configuration."""

from __future__ import annotations

import json
from pathlib import Path

from flwr.serverapp import ServerApp

import cafe
from cafe.control import SelfTuning
from cafe.decisions import Everyone, Mean, closing
from cafe.flower import server
from cafe.live import Clip, Median, Sum, Trimmed
from cafe.rounds import HOLD, Carried, Policy
from chaos import task

COMBINE = {"sum": Sum(), "clip": Clip(), "trimmed": Trimmed(0.25), "median": Median()}
app = ServerApp()


def hold(ledger, closed):
    """Hold every report until its client sends another."""
    return Carried(HOLD, kept=True)


def holding(quorum, deadline, close_when_all=False):
    """Average the last report of every client, of those that have not reported again as well."""
    rule = closing(quorum, deadline, all_in=close_when_all)
    return Policy("holding", Everyone(), merge=Mean(), carry=hold, **rule)


def policy(config):
    """The policy that the configuration names, or the one in the file ``<script>/policy.json``."""
    file = Path(str(config["script"])) / "policy.json"
    if config["script"] and file.exists():
        name, arguments = json.loads(file.read_text())
        if name == "self-tuning":
            return SelfTuning(**arguments)
        return cafe.policies.recipes()[name](**arguments)
    parameters = {"deadline": config["deadline"]}
    if config["policy"] != "awu":
        parameters["quorum"] = config["quorum"]
    if config["policy"] == "fedavg":
        parameters["fraction"] = 1.0
    if config["all"] and config["policy"] != "fedavg":
        parameters["close_when_all"] = True
    if config["policy"] == "mcu-late":
        return cafe.policies.mcu(late="keep", **parameters)
    if config["policy"] == "holding":
        return holding(**parameters)
    return cafe.policies.recipes()[config["policy"]](**parameters)


def judge(model):
    """Loss and accuracy on the test examples."""
    return task.score(model, *task.examples())


@app.main()
def main(grid, context):
    """Build the real server, and let it run."""
    config = context.run_config
    real = server(
        policy(config),
        task.start,
        rounds=8,
        evaluate={"server": judge, "clients": "clients", "none": None}[config["evaluate"]],
        clients=config["clients"] or None,
        combine=COMBINE[config["combine"]],
        patience=config["patience"],
        wait=config["wait"],
    )
    real(grid, context)
