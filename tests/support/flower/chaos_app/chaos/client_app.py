"""A client that trains, or does what the file ``<script>/<its name>`` says if there is one.

If the run has a folder ``notes``, the client writes there which orders it gets and what it does.
"""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from flwr.app.message import message as flwr_message
from flwr.clientapp import ClientApp

from cafe.flower import array_records, client, messages
from cafe.flower.client_app import make_reply
from chaos import task

app = ClientApp()


def told(context, round_=0):
    """The script's command for a round: a word, and a number if the word needs one."""
    return read_script(context.run_config["script"], context.node_config["name"], round_)


def read_script(script, name, round_):
    """A word and a number from a client's line for a round."""
    path = Path(str(script)) / str(name)
    lines = path.read_text().splitlines() if script and path.exists() else []
    words = lines[round_ % len(lines)].split() if lines else []
    return words[0] if words else "", words[1] if len(words) > 1 else "0"


def note(config, name, client, invitation, did):
    """Append a line to the client's notes: got an order and was told a word, or has trained."""
    if config["notes"]:
        line = {"client": f"{client}", "invitation": invitation, "did": did}
        with (Path(str(config["notes"])) / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")


def train(model, job):
    """Train, after doing what the script says."""
    word, number = job.config["told"], float(job.config["number"])
    if word == "sleep":
        time.sleep(number)
    while word == "busy" and job.go_on():
        time.sleep(0.05)
    while word == "hold":  # until the script says something else
        time.sleep(0.05)
        word, _ = read_script(job.config["script"], job.settings["name"], job.round)
    if word == "work":  # as long as training would take on slower machines than this one
        end = time.monotonic() + 0.5 + job.rng().exponential(number)
        while time.monotonic() < end:
            job.check()
            time.sleep(0.02)
    if word == "raise":
        raise ValueError("told to fail")
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    trained = task.train(model, job)
    note(job.config, job.settings["name"], job.client, job.invitation, "trained")
    return trained


def judge(model, job):
    """Loss and accuracy on the client's own examples."""
    x, y = task.examples(job.settings["partition-id"])
    return (*task.score(model, x, y), len(y))


honest = client(train, evaluate=judge)


def forged(message, word, number):
    """A report that must be rejected."""
    order, _ = messages.read_order(message.content.config_records["order"])
    model = array_records.join_parts(message.content.array_records["model"])
    update = {name: np.full_like(array, 1e-3) for name, array in model.items()}
    values = {
        "invitation": order.invitation,
        "version": order.version,
        "carried": False,
        "examples": 100,
    }
    if word == "nan":
        update["weight"][0, 0] = np.nan
    if word == "inf":
        update["bias"][0] = np.inf
    if word == "shape":
        update["weight"] = update["weight"].T
    if word == "dtype":
        update["bias"] = update["bias"].astype(np.float64)
    if word == "missing":
        del update["bias"]
    if word == "huge":
        update["weight"] += 1e30
    if word == "version":
        values["version"] = order.version + 7
    if word == "replay":
        values["invitation"] = order.invitation - 1 if order.invitation else 99
    if word == "examples":
        values["examples"] = 10**15
    if word == "text":
        values["invitation"] = "one"
    record = array_records.pack_arrays(update)
    if word == "oversize":
        record["weight"] = Array(np.zeros(int(number or 4e6), np.float32))
    if word == "pickle":
        record["weight"] = Array("object", (1,), "numpy.ndarray", b"\x80\x04K\x01.")
    if word == "bomb":
        header = (
            np.lib.format.magic(1, 0)
            + b"v\x00"
            + (
                b"{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000,), }".ljust(117)
                + b"\n"
            )
        )
        record["weight"] = Array("float32", (10**13,), "numpy.ndarray", header)
    if word == "empty":
        return RecordDict()
    if word == "extra":
        return RecordDict({"update": record, "report": ConfigRecord(values), "more": ArrayRecord()})
    return RecordDict({"update": record, "report": ConfigRecord(values)})


FORGED = (
    "nan", "inf", "shape", "dtype", "missing", "huge", "version", "replay", "examples", "text",
    "oversize", "pickle", "bomb", "empty", "extra",
)  # fmt: skip


def turned(message, factor):
    """The honest reply with its update multiplied."""
    arrays = message.content.array_records["update"]
    for name in list(arrays):
        arrays[name] = Array((arrays[name].numpy() * factor).astype(np.float32))
    return message


@app.train()
def on_train(message, context):
    """Train, or send a false report."""
    order, _ = messages.read_order(message.content.config_records["order"])
    word, number = told(context, order.round)
    context.run_config["told"], context.run_config["number"] = word, number
    did = f"told {word}" if word else "received"
    note(context.run_config, context.node_config["name"], context.node_id, order.invitation, did)
    received = time.monotonic()
    if word == "clock":
        flwr_message.now = lambda: datetime.now(UTC) + timedelta(hours=float(number))
    if word in FORGED:
        return make_reply(message, forged(message, word, float(number)), received)
    answer = honest(message, context)
    if word in ("flip", "scale") and "update" in answer.content:
        return turned(answer, -1.0 if word == "flip" else float(number))
    return answer


@app.evaluate()
def on_evaluate(message, context):
    """Evaluate, after a pause if the script says so."""
    word, number = told(context)
    if word == "sleep":
        time.sleep(float(number))
    return honest(message, context)
