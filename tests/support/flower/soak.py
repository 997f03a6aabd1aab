"""A soak test: a federation of real SuperNodes with injected faults.

    python -m tests.support.flower.soak --nodes 8 --rounds 20 --seed 1

It plays a run of each policy, one after the other on the same federation. In a seeded order it
kills, stops, starts and adds nodes, ends their tasks, kills the server and the SuperLink, and has
clients send false reports. Proxies between all parties inject errors, resets and delays, and lose
answers. In the end every round, job and report is accounted for, and the models are trained again
from the logs: they must be the same to the bit.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from cafe.flower.lab import commands, startup
from tests.support.flower.accounts import accounts
from tests.support.flower.announcements import Announcements
from tests.support.flower.faults import Leg, Soak
from tests.support.flower.proxied_lab import ProxiedLab, proxied_federation
from tests.support.flower.soak_page import page
from tests.support.flower.waiting import LIMIT

POLICIES = ("agu", "holding", "mcu")
RATES = {"500": 0.02, "503": 0.01, "reset": 0.01, "delay": 0.01}  # shares of the requests
LOGS = ("events.jsonl", "jobs.jsonl")


def soak(
    proxied: ProxiedLab,
    rounds: Mapping[str, int],
    seed: int,
    *,
    deadline: float,
    apart: tuple[float, float],
    faults: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run a soak; return its figures.

    Args:
        proxied: the federation; a run's folder in it is ``soak-`` and the name of its policy.
        rounds: how many rounds the run of each policy has.
        seed: of the faults.
        deadline: of the rounds, in seconds.
        apart: the least and the most seconds between two faults, without those of the proxies.
        faults: the faults, in this order; none: random ones, until the last run has finished.
        say: called with a sentence about each fault.
    """
    nodes = len(proxied.lab.status()["nodes"])
    settings = {"quorum": max(nodes * 5 // 8, 1), "deadline": deadline, "wait": 600.0}
    made = Soak(
        proxied,
        settings,
        random.Random(seed),
        nodes,
        most=nodes + 2,
        say=say,
        deck=[*faults][::-1],
        endless=not faults,
    )
    began, legs = time.monotonic(), []
    proxied.turn(on=True)
    for policy, number in rounds.items():
        out = proxied.lab.paths.folder / f"soak-{policy}"
        legs.append(Leg(policy, number, out, Announcements(out)))
        made.play(legs[-1], apart, 1800.0 + 60.0 * number)
    seconds = time.monotonic() - began
    proxied.turn(on=False)
    made.rest()
    by_proxy = {name: dict(sorted(count.items())) for name, count in proxied.injected().items()}
    return {
        "nodes": made.nodes,
        "seconds": round(seconds, 1),
        "servers_started": sum(leg.servers for leg in legs),
        "servers_ended_by_themselves": made.ended,
        "faults": dict(sorted(made.faults.items())),
        "faults_of_proxies": by_proxy,
        "runs": {leg.policy: accounts(leg.said, leg.notes) for leg in legs},
    }


def main() -> None:
    """Run the long soak, and write its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20, help="of each policy")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("studies/soak"))
    given = parser.parse_args()
    with (
        mock.patch.object(commands, "ANSWER_LIMIT", LIMIT),
        mock.patch.object(startup, "START_LIMIT", LIMIT),
        proxied_federation(given.nodes, RATES) as proxied,
    ):
        found = soak(
            proxied,
            dict.fromkeys(POLICIES, given.rounds),
            given.seed,
            deadline=7.0,
            apart=(2.0, 5.0),
            say=partial(print, flush=True),
        )
        for policy in POLICIES:
            (given.output / policy).mkdir(parents=True, exist_ok=True)
            for name in LOGS:
                source = proxied.lab.paths.folder / f"soak-{policy}" / name
                shutil.copy(source, given.output / policy / name)
    words = f"--nodes {given.nodes} --rounds {given.rounds} --seed {given.seed}"
    found["command"] = f"python -m tests.support.flower.soak {words}"
    (given.output / "result.json").write_text(json.dumps(found, indent=2) + "\n")
    (given.output / "README.md").write_text(page(found))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
