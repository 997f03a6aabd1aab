"""A soak test: a federation of real SuperNodes with injected faults.

    python -m tests.support.flower.soak --nodes 8 --rounds 60 --seed 1 --output studies/soak

In a seeded order it kills, stops, starts and adds nodes, ends their tasks, kills the server and the
SuperLink, and has clients send false reports. In the end every round, job and report is accounted
for, and the model is trained again from the log: it must be the same to the bit.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.flower.accounts import accounts, page
from tests.support.flower.faults import Soak
from tests.support.flower.trial import federation
from tests.support.flower.waiting import unhurried


def soak(
    nodes: int, rounds: int, seed: int, apart: tuple[float, float], seconds: float,
    first: Sequence[str] = (), keep: Path | None = None, say: Callable[[str], None] = print,
) -> dict[str, Any]:  # fmt: skip
    """Run a soak, with some faults first and then others in random order; return its figures."""
    with federation(nodes) as lab:
        out = lab.paths.folder / "out"
        settings = {
            "rounds": rounds, "policy": "agu", "quorum": max(nodes * 5 // 8, 1),
            "deadline": unhurried(7.0),
            "wait": 600.0,
        }  # fmt: skip
        made = Soak(lab, out, settings, random.Random(seed), nodes, say, deck=[*first][::-1])
        made.play(apart, seconds)
        made.rest()
        started = {"nodes": made.nodes, "servers_started": len(made.runs)}
        names = {str(node["id"]): str(node["name"]) for node in lab.status()["nodes"]}
        found = started | accounts(out, made.notes, names)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for name in ("events.jsonl", "jobs.jsonl"):
                shutil.copy(out / name, keep / name)
        return found


def main() -> None:
    """Run the long soak, and write its page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("studies/soak"))
    given = parser.parse_args()
    found = soak(
        given.nodes, given.rounds, given.seed, (4.0, 9.0), 60.0 * given.rounds,
        keep=given.output, say=lambda sentence: print(sentence, flush=True),
    )  # fmt: skip
    words = " ".join(f"--{name} {value}" for name, value in vars(given).items())
    found["command"] = f"python -m tests.support.flower.soak {words}"
    (given.output / "result.json").write_text(json.dumps(found, indent=2) + "\n")
    (given.output / "README.md").write_text(page(found))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
