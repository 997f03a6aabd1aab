"""Simulation speed compared with the machine's bound, a reference and other simulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ledger, machine, thrift
from benchmarks.fused import Fused
from benchmarks.ours import COMPILED, Ours
from benchmarks.peak import Peak
from benchmarks.peers import Peer
from benchmarks.process import Process
from benchmarks.race import Contestant, race, summary
from benchmarks.workloads import WORKLOADS, Workload


@dataclass(frozen=True)
class Sizes:
    """The sizes of all measurements.

    Attributes:
        workloads: the workloads of the contestants.
        repetitions: how often everything is repeated.
        slot: approximate seconds of each contestant in each repetition.
        books: clients and rounds of the run without a task.
        large: clients and rounds of the run whose memory is measured.
        failing: a quorum that is rarely met, and the number of rounds.
    """

    workloads: Sequence[Workload] = WORKLOADS
    repetitions: int = 7
    slot: float = 1.0
    books: tuple[int, int] = (10**5, 100)
    large: tuple[int, int] = (10**6, 100)
    failing: tuple[int, int] = (35, 500)


def measure(
    sizes: Sizes, peers: Sequence[Peer], folder: Path, say: Callable[[str], None]
) -> dict[str, object]:
    """All measurements, as they are written to the JSON file.

    Args:
        sizes: the sizes of the measurements.
        peers: simulators to compare with, besides the bound, the reference and this project.
        folder: the folder of their environments, which are created if they do not exist.
        say: called with a description of each stage.
    """
    about = machine.describe()
    with ExitStack() as stack:
        contestants: list[Contestant] = [Peak(), Fused(), Ours(), Ours(compiled=True)]
        contestants += [stack.enter_context(closing(Process(peer, folder))) for peer in peers]
        finish = race(contestants, sizes.workloads, sizes.repetitions, sizes.slot, say)
    say("the books alone")
    books = ledger.measure(*sizes.books, sizes.large, sizes.repetitions)
    say("failing rounds")
    quorum, rounds = sizes.failing
    failing = thrift.measure(sizes.workloads[0], quorum, rounds, sizes.repetitions)
    return {
        "machine": about,
        "repetitions": sizes.repetitions,
        **summary(finish, Ours.name),
        "compiled_over": summary(finish, COMPILED)["cafe_over"],
        "ledger": books,
        "failing_rounds": failing,
    }
