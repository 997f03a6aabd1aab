"""The speed of training PyTorch networks, compared with the bound, a reference and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from benchmarks import machine
from benchmarks.ours import Ours
from benchmarks.peak import Peak
from benchmarks.peers import Peer
from benchmarks.process import Process
from benchmarks.race import Contestant, race, summary
from benchmarks.threaded_torch import ThreadedTorch
from benchmarks.workloads import NETWORKS, Workload


def measure(
    peers: Sequence[Peer],
    folder: Path,
    say: Callable[[str], None],
    *,
    workloads: Sequence[Workload] = NETWORKS,
    repetitions: int = 7,
    slot: float = 3.0,
) -> dict[str, object]:
    """All measurements, as they are written to the JSON file.

    Args:
        peers: simulators to compare with, besides the bound, the reference and this project.
        folder: the folder of their environments, which are created if they do not exist.
        say: called with a description of each stage.
        workloads: the workloads of the contestants.
        repetitions: how often everything is repeated.
        slot: approximate seconds of each contestant in each repetition.
    """
    about = machine.describe()
    with ExitStack() as stack:
        contestants: list[Contestant] = [Peak(), ThreadedTorch(), Ours()]
        contestants += [stack.enter_context(closing(Process(peer, folder))) for peer in peers]
        finish = race(contestants, workloads, repetitions, slot, say)
    return {"machine": about, "repetitions": repetitions, **summary(finish, Ours.name)}
