"""Where many calls of a function run at once: processes of this machine, or Dask workers."""

from cafe.workers.backends import Backend, LocalProcesses, LostCall
from cafe.workers.dask_workers import DaskCluster, LocalDask

__all__ = ["Backend", "DaskCluster", "LocalDask", "LocalProcesses", "LostCall"]
