"""Reply with the start time, the process, its cost until then, and a random number."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


def _age() -> float:
    """Seconds since this process was made."""
    text = Path("/proc/self/stat").read_text()
    made = int(text[text.rindex(")") + 2 :].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - made


@app.train()
def train(message: Message, context: Context) -> Message:
    said = ConfigRecord(
        {
            "began": time.time(),
            "age": _age(),
            "computed": time.process_time(),
            "name": str(context.node_config["name"]),
            "partition": context.node_config["partition-id"],
            "pid": os.getpid(),
            "program": sys.argv[0],
            "random": float(np.random.random()),  # noqa: NPY002
        }
    )
    return Message(RecordDict({"c": said}), reply_to=message)
