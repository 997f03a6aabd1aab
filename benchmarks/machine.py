"""The machine of the measurements, without host names or paths."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import scipy
from threadpoolctl import threadpool_info

import cafe


def describe() -> dict[str, object]:
    """The processor, the versions of libraries, and the load of the machine."""
    blas = [
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', 'unknown')})"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    ]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": sorted(set(blas)),
        "cafe": cafe.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
