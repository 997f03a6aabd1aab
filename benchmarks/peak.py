"""The upper bound on speed: only matrix products, in two threads, of the fastest shape."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from math import ceil
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.workloads import Workload

THREADS = 2
SIDES = (384, 512, 768, 1024)  # sizes of the square matrices


class Peak:
    """Does the floating-point operations of a workload's matrix products and no other work."""

    name = "matrix-product peak"
    networks: frozenset[str] | None = None

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Seconds for the matrix products of this many rounds at the highest speed."""
        flops = workload.flops * rounds
        times = ceil(flops / (2.0 * self.side**3) / THREADS)
        return flops / multiply(self.side, times)

    @cached_property
    def side(self) -> int:
        """The matrix size with the fastest product on this machine, of three tries each."""
        times = {side: max(round(1e9 / side**3), 1) for side in SIDES}
        return max(SIDES, key=lambda side: max(multiply(side, times[side]) for _ in range(3)))


def multiply(side: int, times: int) -> float:
    """Operations per second of ``times`` products of this size in each thread."""
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
