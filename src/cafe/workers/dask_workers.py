"""Calls on Dask workers: those of an existing cluster, or new processes of this machine."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from cafe._version import __version__
from cafe.errors import InputError, check_whole
from cafe.workers.backends import LostCall, RunCalls, WorkersLostError

RETRIES = 3  # how often a call is repeated after its worker was killed
SECONDS = 10  # how long the scheduler may take to answer
POLL = 5.0  # seconds between two looks at the workers
NO_WORKERS = 120  # seconds without any worker after which an error ends the calls


@dataclass(frozen=True)
class DaskCluster:
    """The workers of a Dask cluster that runs already.

    Attributes:
        address: the address of its scheduler, such as ``tcp://127.0.0.1:8786``.
    """

    address: str

    @contextmanager
    def open(self) -> Iterator[RunCalls]:
        """A context with a function that makes calls, and yields each result when it is known."""
        distributed = _import_distributed()
        _check_address(self.address)
        with ExitStack() as stack:
            yield _Calls(_connect(distributed, self.address, self.address, stack), self.address).run

    def threads(self) -> int:
        """One: a worker is one core."""
        return 1


@dataclass(frozen=True)
class LocalDask:
    """A Dask cluster of this machine, started for the calls: processes that talk over TCP.

    Attributes:
        workers: the number of worker processes.
    """

    workers: int

    def __post_init__(self) -> None:
        check_whole("dask_local", self.workers)

    @contextmanager
    def open(self) -> Iterator[RunCalls]:
        """A context with a function that makes calls, and yields each result when it is known."""
        distributed = _import_distributed()
        with ExitStack() as stack:
            settings = {
                # No call waits behind a long one on a worker while another worker is free.
                "distributed.scheduler.worker-saturation": 1.0,
                # Killed workers are started again. Dask gives up the place of a worker that is gone
                # this long after a kill, even if it returned and was killed again in between.
                "distributed.deploy.lost-worker-timeout": "30 days",
            }
            stack.enter_context(_import_config().set(settings))
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=1,
                    processes=True,
                    protocol="tcp://",
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",  # any free port
                    memory_limit=0,  # a limit would kill workers that the machine has room for
                    silence_logs=logging.CRITICAL,
                    preload="cafe.workers.dask_interrupts",
                )
            )
            address = cluster.scheduler_address
            yield _Calls(_connect(distributed, cluster, address, stack), address).run

    def threads(self) -> int:
        """One: a worker is one core."""
        return 1


class _Calls:
    """Sends calls to a scheduler."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address

    def run(self, work: Callable[[Any], Any], given: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        distributed = _import_distributed()
        cancelled = distributed.client.FutureCancelledError
        ended = (cancelled, distributed.client.FuturesCancelledError, OSError)
        try:
            waiting = {
                self._client.submit(work, argument, pure=False, retries=RETRIES): number
                for number, argument in enumerate(given)
            }
            seen = time.monotonic()  # when there was a worker
            while waiting:
                for future in self._done(distributed, [*waiting]):
                    try:
                        result = future.result(timeout=POLL)
                    except TimeoutError:
                        continue  # its worker was killed before it sent the result: it runs again
                    except distributed.KilledWorker:
                        result = LostCall(
                            "Workers were killed again and again, possibly because memory ran out."
                        )
                    except ImportError as error:
                        raise InputError(
                            f"A Dask worker cannot run jobs of CAFe: {error}. Install CAFe "
                            f"{__version__} where the workers of {self._address} run."
                        ) from None
                    number = waiting.pop(future)
                    future.release()
                    yield number, result
                if self._client.scheduler_info(n_workers=-1)["workers"]:
                    seen = time.monotonic()
                elif time.monotonic() - seen > NO_WORKERS:
                    raise WorkersLostError(
                        f"The Dask scheduler at {self._address} has had no workers for "
                        f"{NO_WORKERS} s. Start some: dask worker {self._address} --nthreads 1."
                    )
        except ended:
            raise WorkersLostError(
                f"The connection to the Dask scheduler at {self._address} is lost. Check whether "
                "the scheduler runs."
            ) from None

    def _done(self, distributed: Any, futures: Sequence[Any]) -> Sequence[Any]:
        """Futures that have ended; none if nothing ends for a while."""
        try:
            with self._client.as_current():
                found = distributed.wait(futures, timeout=POLL, return_when="FIRST_COMPLETED")
            return [*found.done]
        except TimeoutError:
            return []


def _check_address(address: str) -> None:
    """Raise an error for text that is no address, as Dask would then fail again much later."""
    if not re.fullmatch(r"((tcp|tls|wss?|ucx)://)?[^/]+:\d+", address):
        raise InputError(
            f"There is no Dask scheduler at {address}: an address has a host and a port, such as "
            "tcp://127.0.0.1:8786. Start one (dask scheduler), or check the address."
        )


def _connect(distributed: Any, to: Any, address: str, stack: ExitStack) -> Any:
    """A client of the scheduler, which has a worker."""
    _silence_logs()
    try:
        client = distributed.Client(to, timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"There is no Dask scheduler at {address}: {error}. Start one (dask scheduler), or "
            "check the address, such as tcp://127.0.0.1:8786."
        ) from None
    stack.enter_context(client)
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except TimeoutError:
        raise InputError(
            f"The Dask scheduler at {address} has no workers after {SECONDS} s. Start some: dask "
            f"worker {address} --nthreads 1."
        ) from None
    return client


def _silence_logs() -> None:
    """Silence the logs of Dask in this process, where errors are sentences of CAFe."""
    for name in [*logging.root.manager.loggerDict]:
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _import_config() -> Any:
    import dask.config

    return dask.config


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError(
            "Dask is not installed. Run: pip install distributed, or use the cores of this machine "
            "(--jobs)."
        ) from None
    return distributed
