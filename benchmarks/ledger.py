"""The books alone: rounds of many clients without a task.

``python -m benchmarks.ledger CLIENTS ROUNDS`` runs a simulation and prints its seconds and its peak
memory as JSON. Peak memory is that of the whole process, so each run needs its own process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import cafe
from benchmarks.memory import peak_gib
from cafe.decisions import KeepRunning, Mean, Refill
from cafe.policies import mcu
from cafe.rounds import COMMIT, Invitation, Ledger, Policy, Verdict, Wait, Waiting

ROOT = Path(__file__).resolve().parent.parent


def seconds(clients: int, rounds: int) -> float:
    """Seconds for a run without a task."""
    federation = cafe.Federation(clients, cafe.Exponential(rate=1.0))
    began = perf_counter()
    cafe.simulate(federation, mcu(quorum=1, deadline=0.5), rounds=rounds)
    return perf_counter() - began


def refilled(concurrency: int, goal: int) -> Policy:
    """FedBuff as published: a reporting client is replaced; every goal-th report commits."""
    refill = Refill(concurrency)

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        if waiting.reports >= goal:
            return COMMIT
        return refill.now(ledger) or Wait(reports=waiting.reports + 1)

    return Policy("refilled", refill, close, Mean(), KeepRunning())


def seconds_per_report(clients: int, updates: int) -> float:
    """Seconds per report if each report is followed by an invitation."""
    federation = cafe.Federation(clients, cafe.Exponential(rate=1.0))
    began = perf_counter()
    run = cafe.simulate(federation, refilled(max(min(100, clients // 2), 1), 10), updates=updates)
    return (perf_counter() - began) / run.reports_used


def measure(
    clients: int, rounds: int, large: tuple[int, int], repetitions: int
) -> dict[str, object]:
    """Client-rounds per second, repeatedly, and one large run with its peak memory."""
    seconds(clients, 1)
    many, more = large
    command = [sys.executable, "-m", "benchmarks.ledger", str(many), str(more)]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return {
        "clients": clients,
        "rounds": rounds,
        "client_rounds_per_second": [
            clients * rounds / seconds(clients, rounds) for _ in range(repetitions)
        ],
        "report": {
            "clients": [clients // 100, clients],
            "growth": [
                seconds_per_report(clients, rounds) / seconds_per_report(clients // 100, rounds)
                for _ in range(repetitions)
            ],
        },
        "large": {"clients": many, "rounds": more, **json.loads(found.stdout)},
    }


def main() -> None:
    took = seconds(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps({"seconds": took, "peak_gib": peak_gib()}))


if __name__ == "__main__":
    main()
