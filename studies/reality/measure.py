"""Run a real federation twice, and save its logs.

    python -m studies.reality.measure

Six SuperNodes run on this machine. Training takes half a second plus an exponential time, in which
the client sleeps: two cores cannot train six models at once, and real clients do not share a
processor. The rest is real: Flower's polling and processes, the machine's network, the server's
clock. The first run has a long deadline, so that most response times are observed. The second run
has a short deadline.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from tests.support.flower.trial import federation, read_live

HERE = Path(__file__).parent
NODES, MEAN = 6, 2.0
RUNS = {
    "long": {"quorum": 5, "deadline": 9.0, "rounds": 60},
    "short": {"quorum": 4, "deadline": 6.0, "rounds": 90},
}


def main() -> None:
    """Run both settings, one after the other."""
    with federation(NODES, Path(tempfile.mkdtemp()) / "lab", say=print) as lab:
        script = lab.paths.folder / "script"
        for k in range(1, NODES + 1):
            (script / f"node-{k}").write_text(f"work {MEAN}")
        for name, settings in RUNS.items():
            out, load = lab.paths.folder / name, []
            lab.submit(folder=str(out), script=str(script), all=False, evaluate="none", **settings)
            while (now := read_live(out))["state"] != "finished":
                if now["state"] == "stopped":
                    raise SystemExit(now["why"])
                print(f"{name}: round {now['round']} of {settings['rounds']}", flush=True)
                time.sleep(20)
                load.append(os.getloadavg()[0])
            kept = HERE / name
            kept.mkdir(exist_ok=True)
            for file in ("events.jsonl", "jobs.jsonl", "responses.csv"):
                shutil.copy(out / file, kept / file)
            # Load average over one minute, which includes other processes.
            record = {"clients": NODES, "policy": "mcu", **settings, "load": sum(load) / len(load)}
            (kept / "settings.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
