"""The command lines of a federation's processes, and of Flower's own tool."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

from cafe.errors import FileError, InputError
from cafe.files import read_text
from cafe.flower import FlowerMissingError
from cafe.flower.lab.paths import Memory, Places

LOOPBACK = "127.0.0.1"
CONNECTION = "lab"  # the name of the SuperLink in the tool's configuration
TASK_POLL = "0.2"  # seconds between two questions whether a task waits; each costs 2 to 5 ms
RUN_POLL = "1.0"  # the same for the SuperLink, where a task is a whole run
ANSWER = 60.0  # seconds that the SuperLink has to answer
_COLOUR = re.compile(r"\x1b\[\d*m")


def check_flower() -> None:
    """Refuse where Flower is not installed, or where there is no /proc."""
    if importlib.util.find_spec("flwr") is None:
        raise FlowerMissingError(
            "A real federation needs Flower. Install it: pip install 'cafe-fl[flower]'."
        )
    if not Path("/proc/self/stat").exists():
        raise InputError(
            "A federation on one machine needs Linux: its processes are found in /proc."
        )


def environment(places: Places, name: str) -> dict[str, str]:
    """A process's environment: a Flower folder of its own, and nothing sent to anybody."""
    scripts = sysconfig.get_path("scripts")
    return {
        **os.environ,
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
        "FLWR_HOME": str(places.home(name)),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": RUN_POLL if name == "superlink" else TASK_POLL,
        "PYTHONUNBUFFERED": "1",
    }


def superlink(places: Places, memory: Memory) -> list[str]:
    """The SuperLink; it runs ServerApps in processes of its own."""
    command = [_script("flower-superlink"), *_at(memory.port)]
    command += ["--database", str(places.database), "--disable-runtime-dependency-installation"]
    if memory.insecure:
        return [*command, "--insecure"]
    return [*command, *_served(places), "--enable-supernode-auth"]


def node(places: Places, memory: Memory, name: str) -> list[str]:
    """A SuperNode."""
    this = memory.nodes[name]
    settings = f'partition-id={this.partition} num-partitions={this.partitions} name="{name}"'
    command = [_script("flower-supernode"), "--superlink", f"{LOOPBACK}:{memory.port}"]
    command += [*_at(this.port), "--node-config", settings]
    if memory.insecure:
        command += ["--insecure"]
    else:
        command += [*_served(places), "--root-certificates", str(places.keys / "ca.pem")]
        command += ["--auth-supernode-private-key", str(places.key(name))]
    if memory.cold:
        return command
    command += ["--isolation", "process"]
    return [*command, "--superexec-auth-secret-file", str(places.keys / "tasks.secret")]


def tasks(places: Places, memory: Memory, name: str, node_pid: int) -> list[str]:
    """What runs a SuperNode's tasks in warm processes; it ends with the node."""
    command = [sys.executable, "-m", "cafe.flower.lab.warm_executor"]
    command += ["--runtime-api-address", f"{LOOPBACK}:{memory.nodes[name].port}"]
    command += ["--parent-pid", str(node_pid)]
    command += ["--superexec-auth-secret-file", str(places.keys / "tasks.secret")]
    if not memory.insecure:
        command += ["--root-certificates", str(places.keys / "ca.pem")]
    return [*command, *_imported_once(places.folder)]


def connect_tool(places: Places, memory: Memory) -> None:
    """Tell Flower's own tool where the SuperLink is."""
    lines = ["[superlink]", f'default = "{CONNECTION}"', "", f"[superlink.{CONNECTION}]"]
    lines += [f'address = "{LOOPBACK}:{memory.port}"']
    if memory.insecure:
        lines += ["insecure = true"]
    else:
        lines += [f"root-certificates = {json.dumps(str(places.keys / 'ca.pem'))}"]
    home = places.home("tool")
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text("\n".join([*lines, ""]))


def tool(places: Places, *words: str) -> dict[str, Any]:
    """Call ``flwr`` and return what it answers."""
    try:
        done = _flwr(places, *words, "--format", "json", seconds=ANSWER)
    except subprocess.TimeoutExpired:
        raise InputError(
            f"`flwr {words[0]}` had no answer from the SuperLink in {ANSWER:.0f} seconds. "
            "See whether it runs: cafe federate status."
        ) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if done.returncode or not answer.get("success"):
        why = answer.get("error-message") or done.stderr or done.stdout
        raise InputError(f"`flwr {' '.join(words)}` failed: {why.strip()}")
    return dict(answer)


def online(places: Places) -> dict[str, str]:
    """The SuperLink's word for each node that it knows, by Flower's id: online, offline..."""
    found = tool(places, "supernode", "list", CONNECTION)
    return {str(node["node-id"]): str(node["status"]) for node in found["nodes"]}


def run_log(places: Places, run: str) -> str:
    """A run's log, which the SuperLink keeps; nothing if it does not answer."""
    try:
        done = _flwr(places, "log", run, CONNECTION, "--show", seconds=15.0)
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode:
        return ""
    lines = _COLOUR.sub("", done.stdout).splitlines()
    return "\n".join(line for line in lines if not line.startswith("Using SuperLink: "))


def _flwr(places: Places, *words: str, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_script("flwr"), *words],
        env=environment(places, "tool"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def _script(name: str) -> str:
    return str(Path(sysconfig.get_path("scripts")) / name)


def _at(port: int) -> list[str]:
    return ["--host", LOOPBACK, "--port", str(port)]


def _served(places: Places) -> list[str]:
    return [
        *("--ssl-certfile", str(places.keys / "server.pem")),
        *("--ssl-keyfile", str(places.keys / "server.key")),
        *("--ssl-ca-certfile", str(places.keys / "ca.pem")),
    ]


def _imported_once(folder: Path) -> list[str]:
    """The modules that an app wants in its warm processes: [tool.cafe] imports."""
    path = folder / "pyproject.toml"
    try:
        found = tomllib.loads(read_text(path)).get("tool", {}).get("cafe", {}).get("imports", [])
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"the file must be TOML. {error}.") from None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise FileError(path, "imports in [tool.cafe] must be a list of modules' names.")
    return found
