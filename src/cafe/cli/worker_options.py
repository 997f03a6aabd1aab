"""The options --jobs, --dask and --dask-local: where runs are executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cafe.errors import InputError

if TYPE_CHECKING:
    from cafe.workers import Backend


def choose_backend(jobs: int | None, dask: str | None, dask_local: int | None) -> Backend | None:
    """The Dask workers that a user asked for; None: processes of this machine."""
    options = {"--jobs": jobs, "--dask": dask, "--dask-local": dask_local}
    given = [option for option, value in options.items() if value is not None]
    if len(given) > 1:
        raise InputError(f"Give {given[0]} or {given[1]}, not both: all runs use the same workers.")
    for option, number in (("--jobs", jobs), ("--dask-local", dask_local)):
        if number is not None and number < 1:
            raise InputError(f"{option} must be at least 1. Got {number}.")
    if dask is not None:
        from cafe.workers import DaskCluster

        return DaskCluster(dask)
    if dask_local is not None:
        from cafe.workers import LocalDask

        return LocalDask(dask_local)
    return None
