"""The bound: nothing but matrix products, in two threads, each of the best shape there is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from math import ceil
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.workloads import Workload

THREADS = 2
SIDES = (384, 512, 768, 1024)  # of square matrices


class Peak:
    """Does as many operations as a workload's matrix products have, and no other work."""

    name = "matrix-product peak"

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Seconds for the products of so many rounds at the speed of the best ones."""
        flops = workload.flops * rounds
        times = ceil(flops / (2.0 * self.side**3) / THREADS)
        return flops / multiply(self.side, times)

    @cached_property
    def side(self) -> int:
        """The side with the fastest product on this machine: the fastest of three tries each."""
        times = {side: max(round(1e9 / side**3), 1) for side in SIDES}
        return max(SIDES, key=lambda side: max(multiply(side, times[side]) for _ in range(3)))


def multiply(side: int, times: int) -> float:
    """Operations per second of ``times`` products of a side in every thread."""
    rng = np.random.default_rng(0)
    shape = (3, side, side)
    given = [rng.random(shape, dtype=np.float32) for _ in range(THREADS)]

    def work(matrices: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
        left, right, out = matrices
        for _ in range(times):
            np.matmul(left, right, out=out)

    with ThreadPoolExecutor(THREADS) as pool, threadpool_limits(1, user_api="blas"):
        began = perf_counter()
        list(pool.map(work, given))
        return THREADS * times * 2.0 * side**3 / (perf_counter() - began)
