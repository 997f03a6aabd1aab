"""Where many jobs run at the same time: processes of this machine, or Dask workers."""

from cafe.workers.backends import Backend, LocalProcesses, LostJob
from cafe.workers.dask_workers import DaskCluster, LocalDask

__all__ = ["Backend", "DaskCluster", "LocalDask", "LocalProcesses", "LostJob"]
