"""How fast rounds are simulated: against the machine's bound, a reference, and other simulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ledger, machine, thrift
from benchmarks.fused import Fused
from benchmarks.ours import Ours
from benchmarks.peak import Peak
from benchmarks.peers import Peer
from benchmarks.process import Process
from benchmarks.race import Contestant, race, spread
from benchmarks.workloads import WORKLOADS, Workload


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        workloads: what the contestants play.
        repetitions: of everything.
        slot: about how many seconds a contestant plays in each.
        books: clients and rounds of the run without a task.
        large: the same of the run whose memory is watched.
        failing: the quorum that is rarely met, and rounds.
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
    """Everything, as it goes into the JSON file.

    Args:
        sizes: how much.
        peers: who takes part beside the bound, the reference and this project.
        folder: where their environments are, or will be made.
        say: is told what goes on.
    """
    about = machine.describe()
    with ExitStack() as stack:
        contestants: list[Contestant] = [Peak(), Fused(), Ours()]
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
        "rounds_per_second": finish.rates,
        "cafe_over": {
            workload: {
                other: spread(ratios)
                for other in rates
                if other != Ours.name and (ratios := finish.ratios(workload, Ours.name, other))
            }
            for workload, rates in finish.rates.items()
        },
        "dropped_out": finish.dropped,
        "ledger": books,
        "failing_rounds": failing,
    }
