"""``python -m benchmarks [growth | simulate]``: tables on the terminal, results in a folder."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks import growth, report, simulate
from benchmarks.peers import PEERS, PLAIN_TORCH

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("which", nargs="?", choices=["growth", "simulate"], help="default: both")
    parser.add_argument("--peers", action="store_true", help="race other simulators too")
    parser.add_argument(
        "--peers-dir", type=Path, help="where their environments are kept (about 5 GB)"
    )
    parser.add_argument("--repetitions", type=int, default=simulate.Sizes.repetitions)
    parser.add_argument("--slot", type=float, default=simulate.Sizes.slot, help="seconds per turn")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the peers' processes end too
    if given.which != "simulate":
        growth.sheet(growth.measure()).print()
    if given.which != "growth":
        _simulate(given)


def _simulate(given: argparse.Namespace) -> None:
    peers = (PLAIN_TORCH, *(PEERS if given.peers else ()))
    folder = given.peers_dir or Path(tempfile.gettempdir()) / "cafe-peers"
    sizes = simulate.Sizes(repetitions=given.repetitions, slot=given.slot)
    measured = simulate.measure(
        sizes, peers, folder, lambda what: print(f"... {what}", file=sys.stderr)
    )
    sheets = report.sheets(measured)
    for sheet in sheets:
        sheet.print()
    report.write("simulate-peers" if given.peers else "simulate", measured, sheets, given.output)


if __name__ == "__main__":
    main()
