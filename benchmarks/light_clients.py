"""``python -m benchmarks.light_clients --clients 500``: how many clients one SuperLink serves.

A light client is a thread that speaks Flower's Fleet API with Flower's own connection, its own key
and TLS, and answers every order at once with an update of zeros. Some processes run all of them, so
that the machine has room for the SuperLink. Measured: the share of reports in time, the SuperLink's
CPU time for a client's job and for an idle client, and its requests.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import random
import shutil
import sys
import tempfile
import threading
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from benchmarks.nodes import APP, IDLE, POLL, cpu_seconds, read_state
from benchmarks.report import Sheet
from cafe.flower.lab import Lab, commands
from cafe.flower.retry_interceptor import RetryInterceptor, install
from cafe.live.run_log import read_jobs, read_rounds

PROCESSES = 2
BATCH = 100  # keys that are registered by one command


class LightClient:
    """A client that answers every order with an update of zeros.

    Args:
        address: host and port of the SuperLink.
        ca: the certificate of its authority.
        key: the file of the client's private key.
        counts: to which the requests of this client are added.
        ask: seconds between two questions for work.
    """

    def __init__(self, address: str, ca: str, key: str, counts: Any, ask: float) -> None:
        self._address, self._ca, self._key, self._counts = address, ca, key, counts
        self._ask = ask

    def run(self, leave: Event) -> None:
        """Serve until ``leave`` is set."""
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_ssh_private_key
        from flwr.supernode.fleet_http_connection import http_request_response

        from cafe.flower import client

        private = load_ssh_private_key(Path(self._key).read_bytes(), None)
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        app = client(lambda model, job: model)
        keys = (private, private.public_key())
        with http_request_response(self._address, False, self._ca, keys) as way:
            time.sleep(random.uniform(0.0, self._ask))
            while not leave.is_set():
                order = self._call(way[1])
                if order is None:
                    leave.wait(self._ask * random.uniform(0.8, 1.2))
                else:
                    self._answer(app, way, *order)

    def _answer(self, app: Any, way: Any, message: Any, tree: Any) -> None:
        from flwr.app import Context, RecordDict
        from flwr.supercore.inflatable.inflatable_object import (
            get_all_nested_objects,
            get_object_tree,
            iterate_object_tree,
        )
        from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

        node, _, send, get_run, _, _, push, confirm = way
        run, name = message.metadata.run_id, message.metadata.message_id
        self._call(get_run, run)
        pieces = {
            each.object_id: self._pull(way, run, each.object_id)
            for each in iterate_object_tree(tree)
        }
        self._call(confirm, run, name)
        whole: Any = inflate_object_from_contents(name, pieces)
        vars(whole.metadata)["_message_id"] = name
        reply = app(whole, Context(run, node, {}, RecordDict(), {}))
        vars(reply.metadata)["_message_id"] = reply.object_id
        every = get_all_nested_objects(reply)
        wanted, session = self._call(send, reply, get_object_tree(reply), 0.0)
        for each in wanted:
            self._call(push, run, session, each, every[each].deflate())

    def _pull(self, way: Any, run: int, piece: str) -> bytes:
        """A piece of an order, as soon as the server has sent it to the SuperLink."""
        from flwr.supercore.inflatable.inflatable_utils import ObjectUnavailableError

        while True:
            try:
                return bytes(self._call(way[5], run, piece))
            except ObjectUnavailableError:
                time.sleep(random.uniform(0.5, 1.5))

    def _call(self, function: Any, *args: Any) -> Any:
        with self._counts.get_lock():
            self._counts.value += 1
        return function(*args)


def _serve(clients: list[LightClient], leave: Event) -> None:
    install(RetryInterceptor(math.inf))  # as nodes do that cafe.flower.program starts
    threads = [threading.Thread(target=each.run, args=(leave,), daemon=True) for each in clients]
    for thread in threads:
        thread.start()
    leave.wait()
    for thread in threads:
        thread.join(timeout=20.0)


def _make_keys(folder: Path, clients: int) -> list[Path]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir()
    for number in range(clients):
        key = ec.generate_private_key(ec.SECP384R1())
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        (folder / f"{number}").write_bytes(private)
        (folder / f"{number}.pub").write_bytes(public + b"\n")
    return [folder / f"{number}" for number in range(clients)]


def measure(clients: int, rounds: int, deadline: float, ask: float, folder: Path) -> dict[str, Any]:
    """Reports in time, and the SuperLink's CPU time and requests."""
    lab = Lab(shutil.copytree(APP, folder / "app"))
    start = multiprocessing.get_context("spawn")
    leave, counts = start.Event(), start.Value("q", 0)
    workers = []
    try:
        lab.up(1, say=lambda sentence: print(f"... {sentence}", file=sys.stderr))
        began, keys = time.monotonic(), _make_keys(folder / "keys", clients)
        for first in range(0, clients, BATCH):
            some = [path.with_suffix(".pub") for path in keys[first : first + BATCH]]
            commands.register_keys(lab.paths, some)
            print(f"... {min(first + BATCH, clients)} keys are registered", file=sys.stderr)
        state = lab.paths.load_state()
        assert state is not None
        ca = str(lab.paths.keys / "ca.pem")
        made = [
            LightClient(f"{commands.LOOPBACK}:{state.port}", ca, str(key), counts, ask)
            for key in keys
        ]
        workers = [
            start.Process(target=_serve, args=(made[k::PROCESSES], leave)) for k in range(PROCESSES)
        ]
        for worker in workers:
            worker.start()
        while sum(status == "online" for status in lab.node_statuses().values()) <= clients:
            time.sleep(2.0)
        found: dict[str, Any] = {"clients": clients, "join": time.monotonic() - began}
        print(f"... all clients are online after {found['join']:.0f} s", file=sys.stderr)
        before, requests, since = cpu_seconds(lab), counts.value, time.monotonic()
        time.sleep(IDLE)
        seconds = time.monotonic() - since
        found["idle_cores"] = (cpu_seconds(lab)["superlink"] - before["superlink"]) / seconds
        found["idle_requests"] = (counts.value - requests) / seconds
        out, since = folder / "run", time.monotonic()
        before, requests = cpu_seconds(lab), counts.value
        run = lab.submit(
            folder=str(out),
            rounds=rounds,
            deadline=deadline,
            quorum=1,
            evaluate="none",
            all=True,
        )
        while not (status := read_state(out)).startswith(("finished", "stopped", "failed")):
            time.sleep(POLL)
        if status != "finished":
            raise SystemExit(lab.run_log(run))
        found["run"] = time.monotonic() - since
        found["run_cpu"] = cpu_seconds(lab)["superlink"] - before["superlink"]
        found["requests"] = counts.value - requests
        played = read_rounds(out)
        found["reported"] = [each.reports / (clients + 1) for each in played]
        found["closed"] = [each.closed - each.opened for each in played]
        found["jobs"] = sum(job.arrived is not None for job in read_jobs(out))
        return found
    finally:
        leave.set()
        for worker in workers:
            worker.join(timeout=60.0)
            if worker.is_alive():
                worker.kill()
        lab.down()


def sheet(found: dict[str, Any]) -> Sheet:
    """The figures as a table."""
    clients = found["clients"]
    rows = [
        ["seconds until all clients are registered and online", f"{found['join']:.0f}"],
        ["share of reports in time, per round", " ".join(f"{x:.0%}" for x in found["reported"])],
        ["seconds of a round", " ".join(f"{x:.0f}" for x in found["closed"])],
        ["requests of the clients per second, while idle", f"{found['idle_requests']:.0f}"],
        ["cores of the SuperLink, while idle", f"{found['idle_cores']:.2f}"],
        [
            "requests of the clients per second, in the run",
            f"{found['requests'] / found['run']:.0f}",
        ],
        [
            "requests for a report, with questions for orders",
            f"{found['requests'] / max(found['jobs'], 1):.1f}",
        ],
        ["cores of the SuperLink and the run's server", f"{found['run_cpu'] / found['run']:.2f}"],
        ["their CPU seconds for a report", f"{found['run_cpu'] / max(found['jobs'], 1):.3f}"],
    ]
    return Sheet(f"{clients} light clients of one SuperLink", ["", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--deadline", type=float, default=180.0, help="of a round, in seconds")
    parser.add_argument(
        "--ask", type=float, default=3.0, help="seconds between two questions of an idle client"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(given.clients, given.rounds, given.deadline, given.ask, Path(folder))
        sheet(found).print()


if __name__ == "__main__":
    main()
