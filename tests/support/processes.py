"""Scripts that are run in new processes."""

from __future__ import annotations

import os
import subprocess
import sys


def outputs_by_hash_seed(script: str) -> set[str]:
    """The outputs of a script in processes with different hash seeds; one if all are equal."""
    return {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
