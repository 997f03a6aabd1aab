"""``python -m benchmarks [growth | simulate | networks | policies | sweeps | million]``.

Prints tables, and writes results to a folder.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import growth, million, networks, policies, report, simulate, sweeps
from benchmarks.peers import PEERS, PLAIN_TORCH

MILLION = 3  # repetitions of the largest federations, at most
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "which",
        nargs="?",
        choices=["growth", "simulate", "networks", "policies", "sweeps", "million"],
        help="default: all",
    )
    parser.add_argument("--peers", action="store_true", help="race other simulators too")
    parser.add_argument(
        "--peers-dir", type=Path, help="where their environments are kept (about 5 GB)"
    )
    parser.add_argument("--repetitions", type=int, default=simulate.Sizes.repetitions)
    parser.add_argument("--slot", type=float, help="seconds per turn: 1, for networks 3")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the peers' processes end too
    if given.which in (None, "growth"):
        growth.sheet(growth.measure()).print()
    for which in ("simulate", "networks"):
        if given.which in (None, which):
            _race(which, given)
    if given.which in (None, "policies"):
        _policies(given)
    if given.which in (None, "sweeps"):
        measured = sweeps.measure(_say, repetitions=given.repetitions)
        _show("sweeps", measured, sweeps.sheets(measured), given.output)
    if given.which in (None, "million"):
        measured = million.measure(_say, repetitions=min(given.repetitions, MILLION))
        _show("million", measured, million.sheets(measured), given.output)


def _race(which: str, given: argparse.Namespace) -> None:
    peers = (PLAIN_TORCH, *(PEERS if given.peers else ()))
    folder, times = _peers_folder(given), _times(given)
    if which == "simulate":
        measured = simulate.measure(simulate.Sizes(**times), peers, folder, _say)
    else:
        measured = networks.measure(peers, folder, _say, **times)
    name = f"{which}-peers" if given.peers else which
    _show(name, measured, report.sheets(measured), given.output)


def _policies(given: argparse.Namespace) -> None:
    peers = [peer for peer in PEERS if given.peers and peer.module == "pfl_research"]
    measured = policies.measure(_say, peers=peers, folder=_peers_folder(given), **_times(given))
    name = "policies-peers" if given.peers else "policies"
    _show(name, measured, policies.sheets(measured), given.output)


def _peers_folder(given: argparse.Namespace) -> Path:
    return given.peers_dir or Path(tempfile.gettempdir()) / "cafe-peers"


def _times(given: argparse.Namespace) -> dict[str, Any]:
    return {"repetitions": given.repetitions} | ({"slot": given.slot} if given.slot else {})


def _show(
    name: str, measured: Mapping[str, object], sheets: Sequence[report.Sheet], folder: Path
) -> None:
    for sheet in sheets:
        sheet.print()
    report.write(name, measured, sheets, folder)


def _say(what: str) -> None:
    print(f"... {what}", file=sys.stderr)


if __name__ == "__main__":
    main()
