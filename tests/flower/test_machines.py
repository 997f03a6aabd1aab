"""The files for several machines, tested with network namespaces as machines.

The commands are read from the unit files; only folders and addresses differ.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cafe.flower import node_heartbeat
from cafe.flower.node_heartbeat import STALE
from tests.support.flower.waiting import LIMIT, wait_until

pytest.importorskip("flwr", reason="needs Flower")
yaml = pytest.importorskip("yaml")

FILES = Path(__file__).parents[2] / "examples" / "federation"
APP = Path(__file__).parents[1] / "support" / "flower" / "chaos_app"
SCRIPTS = sysconfig.get_path("scripts")
NGINX = shutil.which("nginx") or os.environ.get("CAFE_TEST_NGINX")
ADDRESS = "10.213.7.1"  # of the server's machine
CLIENTS = ("one", "two", "stranger")
# Forwards bytes from a port of the machine to the SuperLink, if nginx is not installed.
FORWARD = """
import asyncio
async def pipe(source, sink):
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()
    sink.close()
async def serve(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", 8000)
    await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer), return_exceptions=True)
async def main():
    await (await asyncio.start_server(serve, "0.0.0.0", 9092)).serve_forever()
asyncio.run(main())
"""
# Posts a number of bytes to an address, and prints the status of the answer.
POST = """
import ssl, sys, urllib.error, urllib.request
url, size, ca = sys.argv[1:]
kind = {"Content-Type": "application/protobuf"}
request = urllib.request.Request(url, b"x" * int(size), kind)
try:
    trusted = ssl.create_default_context(cafile=ca)
    print(urllib.request.urlopen(request, timeout=600, context=trusted).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""

# ---------------------------------------------------------------- the files


def settings(name: str) -> dict[str, list[str]]:
    """A unit's settings, each with all the values it is given."""
    found: dict[str, list[str]] = {}
    for line in (FILES / name).read_text().replace("\\\n", " ").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def variables(text: str) -> dict[str, str]:
    """What an EnvironmentFile sets."""
    pairs = (line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: "".join(shlex.split(value)) for name, value in pairs}


def options(command: list[str]) -> list[str]:
    """Options and values one by one, in one spelling."""
    parts = [p for word in command[1:] for p in word.split("=", 1 if word[:2] == "--" else 0)]
    return [part.replace("${", "$").replace("}", "") for part in parts]


def test_compose_starts_what_the_units_start() -> None:
    compose = yaml.safe_load((FILES / "compose.yaml").read_text())["services"]
    shell = compose["supernode"]["command"][2].replace("$$", "$").removeprefix("exec ")
    for name, command in (
        ("superlink.service", compose["superlink"]["command"]),
        ("supernode.service", shlex.split(shell)),
    ):
        assert options(command) == options(shlex.split(settings(name)["ExecStart"][0]))
        told = compose[name.partition(".")[0]]["environment"]
        assert {f"{key}={value}" for key, value in told.items()} < {*settings(name)["Environment"]}


def test_nodes_are_judged_by_their_heartbeats() -> None:
    assert settings("supernode.service")["WatchdogSec"] == [f"{STALE:.0f}"]
    compose = yaml.safe_load((FILES / "compose.yaml").read_text())["services"]["supernode"]
    assert compose["healthcheck"]["test"] == ["CMD", "python", "-m", node_heartbeat.__name__]
    assert compose["restart"] == "always"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("name", ["superlink.service", "supernode.service"])
def test_systemd_understands_the_units(name: str, tmp_path: Path) -> None:
    text = (FILES / name).read_text().replace("/opt/cafe/bin/python", f"{SCRIPTS}/python")
    (tmp_path / name).write_text(text)
    verify = ["systemd-analyze", "verify", str(tmp_path / name)]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert name not in done.stdout + done.stderr


# ---------------------------------------------------------------- the machines


class Machines:
    """Network namespaces, each wired to the server's, and what was started in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def wire(self) -> None:
        """Create the namespaces; OSError if the system does not allow it."""
        self._ip("netns", "add", self.space("server"))
        self._ip("-n", self.space("server"), "link", "set", "lo", "up")
        self._ip("-n", self.space("server"), "address", "add", f"{ADDRESS}/32", "dev", "lo")
        for number, name in enumerate(CLIENTS):
            self._ip("netns", "add", self.space(name))
            self._ip("-n", self.space(name), "link", "set", "lo", "up")
            wire, near, far = f"cafe{number}", *(f"10.213.8.{4 * number + n}" for n in (1, 2))
            link = ["link", "add", wire, "netns", self.space(name), "type", "veth"]
            self._ip(*link, "peer", "name", wire, "netns", self.space("server"))
            for side, address in ((name, far), ("server", near)):
                self._ip("-n", self.space(side), "address", "add", f"{address}/30", "dev", wire)
                self._ip("-n", self.space(side), "link", "set", wire, "up")
            self._ip("-n", self.space(name), "route", "add", ADDRESS, "via", near)

    @staticmethod
    def _ip(*words: str) -> None:
        done = subprocess.run(["ip", *words], capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")

    @staticmethod
    def space(name: str) -> str:
        return f"cafe-{os.getpid()}-{name}"

    def own(self, name: str) -> Path:
        """A machine's folder, instead of /var/lib/cafe; its folder etc is /etc/cafe."""
        return self.folder / name

    def log(self, name: str) -> str:
        return (self.own(name) / "log").read_text(errors="replace")

    def call(self, name: str, *command: str, home: Path | None = None) -> str:
        """Run a command on a machine; what it printed."""
        env = {"FLWR_HOME": str(home or self.own(name)), **QUIET}
        done = subprocess.run(
            ["ip", "netns", "exec", self.space(name), *command],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        return done.stdout or done.stderr

    def start(self, name: str, command: list[str], env: Mapping[str, str]) -> None:
        """Start a command on a machine."""
        with (self.own(name) / "log").open("ab") as log:
            child = subprocess.Popen(
                ["ip", "netns", "exec", self.space(name), *command],
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(child)

    def service(self, name: str, unit: str) -> None:
        """Start the command of a unit, in this machine's folders."""

        def here(text: str) -> str:
            text = text.replace("/opt/cafe/bin", SCRIPTS)
            text = text.replace("/etc/cafe", f"{self.own(name)}/etc")
            return text.replace("/var/lib/cafe", str(self.own(name)))

        told = settings(unit)
        env = dict(here(pair).split("=", 1) for pair in told["Environment"])
        for path in told.get("EnvironmentFile", []):
            env |= variables(Path(here(path)).read_text())
        words = shlex.split(here(told["ExecStart"][0]))
        names = {f"${{{name}}}": value for name, value in env.items()}
        self.start(name, [names.get(word, word) for word in words], env)

    def stop(self) -> None:
        """End what runs in the namespaces, and take them down."""
        for what in (signal.SIGTERM, signal.SIGKILL):
            for pid in self._pids():
                os.kill(pid, what)
            until = time.monotonic() + 6.0
            while self._pids() and time.monotonic() < until:
                time.sleep(0.2)
        for name in ("server", *CLIENTS):
            subprocess.run(["ip", "netns", "delete", self.space(name)], capture_output=True)

    def _pids(self) -> list[int]:
        for child in self.started:
            child.poll()
        found = [
            subprocess.run(["ip", "netns", "pids", self.space(name)], capture_output=True).stdout
            for name in ("server", *CLIENTS)
        ]
        return [int(pid) for pid in b" ".join(found).split()]


QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """A server's machine with a SuperLink, and machines of clients with keys, not yet started."""
    missing = [tool for tool in ("ip", "openssl", "ssh-keygen") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs {missing[0]}" if missing else "only root makes network namespaces")
    made = Machines(tmp_path_factory.mktemp("machines"))
    try:
        try:
            made.wire()
        except OSError as error:
            pytest.skip(f"no network namespaces here: {error}")
        make_keys(made)
        made.service("server", "superlink.service")
        start_proxy(made)
        wait_until(lambda: "Uvicorn running" in made.log("server"), lambda: made.log("server"))
        yield made
    finally:
        made.stop()


def make_keys(machines: Machines) -> None:
    """Follow the page: a certificate on the server's machine, a key on each client's."""
    for name in ("server", *CLIENTS):
        (machines.own(name) / "etc").mkdir(parents=True)
    server = machines.own("server")
    script = ["sh", str(FILES / "certificates.sh"), "superlink.example", ADDRESS]
    subprocess.run(script, cwd=server / "etc", check=True, capture_output=True)
    (server / "config.toml").write_text(
        f'[superlink.here]\naddress = "127.0.0.1:8000"\nroot-certificates = "{server}/etc/ca.pem"\n'
    )
    node = variables((FILES / "supernode.env").read_text())["NODE"]
    for number, name in enumerate(CLIENTS):
        etc = machines.own(name) / "etc"
        shutil.copy(server / "etc" / "ca.pem", etc)
        make = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-C", ""]
        subprocess.run([*make, "-f", str(etc / "node.key")], check=True)
        told = node.replace("site-1", name).replace("partition-id=0", f"partition-id={number}")
        (etc / "supernode.env").write_text(f"SUPERLINK={ADDRESS}:9092\nNODE='{told}'\n")


def start_proxy(machines: Machines) -> None:
    """Start nginx with the page's configuration; without nginx, a forwarder."""
    own = machines.own("server")
    if not NGINX:
        machines.start("server", [sys.executable, "-c", FORWARD], {})
        return
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    lines = ["daemon off;", "master_process off;", f"pid {own}/nginx.pid;", "events {}", "http {"]
    lines += ["access_log off;", *(f"{kind}_temp_path {own}/{kind};" for kind in kinds)]
    lines += [(FILES / "nginx.conf").read_text().replace("/etc/cafe", f"{own}/etc"), "}"]
    (own / "nginx.conf").write_text("\n".join(lines))
    machines.start("server", [NGINX, "-c", f"{own}/nginx.conf", "-e", f"{own}/nginx.log"], {})


def flwr(machines: Machines, *words: str) -> dict[str, object]:
    """Flower's tool on the server's machine."""
    said = machines.call("server", f"{SCRIPTS}/flwr", *words, "--format", "json")
    answer: dict[str, object] = json.loads(said)
    assert answer["success"], said
    return answer


@pytest.mark.federation
def test_two_machines_train_and_an_unregistered_one_does_not(machines: Machines) -> None:
    for name in ("one", "two"):
        flwr(machines, "supernode", "register", f"{machines.own(name)}/etc/node.key.pub", "here")
    for name in CLIENTS:
        machines.service(name, "supernode.service")
    folder = machines.own("server") / "run"
    told = f'folder="{folder}" rounds=2 quorum=2 deadline=300.0 wait={LIMIT}'
    flwr(machines, "run", str(APP), "here", "--run-config", told)

    def state() -> str:
        live = folder / "live.json"
        return str(json.loads(live.read_text())["state"]) if live.exists() else "not begun"

    wait_until(lambda: state() == "finished", lambda: f"{state()}\n{machines.log('server')}")
    result = json.loads((folder / "result.json").read_text())
    assert result["updates"] == 2
    jobs = [json.loads(line) for line in (folder / "jobs.jsonl").read_text().splitlines()]
    assert [job["fate"] for job in jobs] == ["fresh"] * 4
    assert len({job["name"] for job in jobs}) == 2
    assert "SuperNode ID" in machines.log("one")
    assert "SuperNode ID" not in machines.log("stranger")
    wait_until(
        lambda: "Failed to activate SuperNode" in machines.log("stranger"),
        lambda: machines.log("stranger"),
    )


@pytest.mark.federation
@pytest.mark.skipif(not NGINX, reason="needs nginx")
@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        ("/v1/fleet/pull-messages", 0, 401),  # passes nginx, and the SuperLink rejects it
        ("/v1/fleet/push-object", 9 * 2**20, 413),
        ("/v1/fleet/push-messages", 2**17, 401),
        ("/v1/fleet/push-messages", 2**20, 413),
        ("/v1/control/list-nodes", 0, 403),
        ("/v1/runtime/acquire-task", 0, 403),
        ("/docs", 0, 403),
    ],
)
def test_clients_reach_only_the_allowed_paths(
    machines: Machines, path: str, size: int, status: int
) -> None:
    ca = f"{machines.own('one')}/etc/ca.pem"
    post = [sys.executable, "-c", POST, f"https://{ADDRESS}:9092{path}", str(size), ca]
    assert machines.call("one", *post).strip() == f"{status}"
