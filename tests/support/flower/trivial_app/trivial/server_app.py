"""Send each node some messages, one after the other, and write the replies to a file."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config, rows = context.run_config, []
    if config["fail"]:
        raise RuntimeError("it was told to fail")
    for number in range(int(config["messages"])):
        sent = time.time()
        content = RecordDict({"c": ConfigRecord({"number": number})})
        orders = [Message(content, node, "train", ttl=120.0) for node in grid.get_node_ids()]
        waiting = set(grid.push_messages(orders))
        while waiting:
            for reply in grid.pull_messages(waiting):
                waiting.discard(reply.metadata.reply_to_message_id)
                said = {} if reply.has_error() else dict(reply.content["c"])
                rows.append({**said, "sent": sent, "pulled": time.time()})
            time.sleep(0.05)
        # An idle node polls every three seconds: send at a random moment between two polls.
        time.sleep(random.uniform(0.0, float(config["pause"])))
    (Path(str(config["folder"])) / "rows.json").write_text(json.dumps(rows))
