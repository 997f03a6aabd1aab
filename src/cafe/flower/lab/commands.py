"""The command lines of a federation's processes, and calls of Flower's tool ``flwr``."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower import FlowerMissingError
from cafe.flower.lab.app_settings import read_imports
from cafe.flower.lab.paths import LabPaths, LabState
from cafe.flower.task_signal import task_pipe

LOOPBACK = "127.0.0.1"
CONNECTION = "lab"  # the name of the SuperLink in the configuration of flwr
TASK_POLL = "5.0"  # seconds between two polls for a client's task, which the node also announces
RUN_POLL = "1.0"  # seconds between two polls for a new run
ANSWER_LIMIT = 60.0  # seconds in which the SuperLink must answer
SUBMISSIONS = 3  # attempts to submit an app
# What ``flwr`` says if another attempt may succeed.
TEMPORARY = ("SuperLink is unavailable", "Internal server error", "500 Internal Server Error")
# What SuperNodes and their task runners import, also while they run.
NODE_IMPORTS = (
    "cafe.flower.program",
    "flwr.supernode.cli.flower_supernode",
    "flwr.supernode.main",
)
TASK_IMPORTS = (
    "cafe.flower.lab.warm_executor",
    "flwr.supercore.superexec.run_superexec",
    "flwr.supernode.runtime.run_clientapp",
    "numpy",
)
_COLOUR = re.compile(r"\x1b\[\d*m")


def check_flower() -> None:
    """Raise an error if Flower is not installed, or if there is no /proc."""
    if importlib.util.find_spec("flwr") is None:
        raise FlowerMissingError(
            "A real federation needs Flower. Install it: pip install 'flwr>=1.41,<1.43'."
        )
    if not Path("/proc/self/stat").exists():
        raise InputError(
            "A federation on one machine needs Linux: it finds its processes in /proc."
        )


def environment(paths: LabPaths, name: str) -> dict[str, str]:
    """The environment of a process: its own Flower folder, no telemetry, no update check."""
    scripts = sysconfig.get_path("scripts")
    return {
        **os.environ,
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
        "FLWR_HOME": str(paths.home(name)),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": RUN_POLL if name == "superlink" else TASK_POLL,
        "PYTHONUNBUFFERED": "1",
    }


def superlink(paths: LabPaths, state: LabState) -> list[str]:
    """The command of the SuperLink, which also starts the processes of ServerApps."""
    command = [*_program("flower-superlink"), *_address(state.port)]
    command += ["--database", str(paths.database), "--disable-runtime-dependency-installation"]
    if state.insecure:
        return [*command, "--insecure"]
    return [*command, *_tls(paths), "--enable-supernode-auth"]


def supernode(paths: LabPaths, state: LabState, name: str) -> list[str]:
    """The command of a SuperNode."""
    this = state.nodes[name]
    settings = f'partition-id={this.partition} num-partitions={this.partitions} name="{name}"'
    command = [*_program("flower-supernode"), "--superlink", f"{LOOPBACK}:{state.port}"]
    command += [*_address(this.port), "--node-config", settings]
    if state.insecure:
        command += ["--insecure"]
    else:
        command += [*_tls(paths), "--root-certificates", str(paths.keys / "ca.pem")]
        command += ["--auth-supernode-private-key", str(paths.key(name))]
    if state.cold:
        return command
    command += ["--isolation", "process"]
    return [*command, "--superexec-auth-secret-file", str(paths.keys / "tasks.secret")]


def task_runner(paths: LabPaths, state: LabState, name: str, node_pid: int) -> list[str]:
    """The command of a SuperNode's task runner, which ends when the node ends."""
    command = [sys.executable, "-m", "cafe.flower.lab.warm_executor"]
    command += ["--runtime-api-address", f"{LOOPBACK}:{state.nodes[name].port}"]
    command += ["--parent-pid", str(node_pid), "--signal", str(task_pipe(paths.home(name)))]
    command += ["--superexec-auth-secret-file", str(paths.keys / "tasks.secret")]
    if not state.insecure:
        command += ["--root-certificates", str(paths.keys / "ca.pem")]
    return [*command, *read_imports(paths.folder)]


def supervisor(paths: LabPaths) -> list[str]:
    """The command of the process that starts nodes again which send no heartbeats."""
    return [sys.executable, "-m", "cafe.flower.lab.supervisor", str(paths.folder)]


def configure_flwr(paths: LabPaths, state: LabState) -> None:
    """Write the address of the SuperLink to the configuration of ``flwr``."""
    lines = ["[superlink]", f'default = "{CONNECTION}"', "", f"[superlink.{CONNECTION}]"]
    lines += [f'address = "{LOOPBACK}:{state.port}"']
    if state.insecure:
        lines += ["insecure = true"]
    else:
        lines += [f"root-certificates = {json.dumps(str(paths.keys / 'ca.pem'))}"]
    home = paths.home("tool")
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text("\n".join([*lines, ""]))


def call_flwr(paths: LabPaths, *words: str) -> dict[str, Any]:
    """Run ``flwr`` with some arguments; return its answer."""
    try:
        done = _flwr(paths, *words, "--format", "json")
    except subprocess.TimeoutExpired:
        raise InputError(
            f"`flwr {words[0]}` got no answer from the SuperLink in {ANSWER_LIMIT:.0f} seconds. "
            "Check whether it is running: cafe federate status."
        ) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if done.returncode or not answer.get("success"):
        why = answer.get("error-message") or done.stderr or done.stdout
        raise InputError(f"`flwr {' '.join(words)}` failed: {_sentences(why)}")
    return dict(answer)


def register_keys(paths: LabPaths, keys: Sequence[Path]) -> dict[Path, str]:
    """Register public keys; return Flower's id of each that the SuperLink has accepted."""
    command = [sys.executable, "-m", "cafe.flower.lab.registration", *map(str, keys)]
    limit = ANSWER_LIMIT + len(keys)
    try:
        done = _run_tool(paths, command, limit)
    except subprocess.TimeoutExpired:
        raise InputError(
            f"The SuperLink did not register the nodes' keys in {limit:.0f} seconds. "
            "Check whether it is running: cafe federate status."
        ) from None
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {Path(each["key"]): str(each["node-id"]) for each in answers if "node-id" in each}
    if not found:
        why = next((each["error"] for each in answers), "") or done.stderr or done.stdout
        raise InputError(f"The SuperLink registered no key: {_sentences(why)}")
    return found


def submit_app(paths: LabPaths, *options: str) -> str:
    """Submit the app of a lab; return the id of the run.

    If the SuperLink's answer is lost, its list of runs shows whether it has accepted the app.
    """
    began = datetime.now(UTC).replace(microsecond=0)
    attempts = 0
    while True:
        attempts += 1
        try:
            answer = call_flwr(paths, "run", str(paths.folder), CONNECTION, *options)
            return str(answer["run-id"])
        except InputError as error:
            if not any(text in f"{error}" for text in TEMPORARY):
                raise
            for run in call_flwr(paths, "list", CONNECTION)["runs"]:
                if datetime.fromisoformat(run["pending-at"]) >= began:
                    return str(run["run-id"])
            if attempts == SUBMISSIONS:
                raise


def node_statuses(paths: LabPaths) -> dict[str, str]:
    """The SuperLink's status (online, offline and so on) of each node, by Flower's id."""
    found = call_flwr(paths, "supernode", "list", CONNECTION)
    return {str(node["node-id"]): str(node["status"]) for node in found["nodes"]}


def run_log(paths: LabPaths, run: str) -> str:
    """The log of a run, from the SuperLink; empty if the SuperLink does not answer."""
    try:
        done = _flwr(paths, "log", run, CONNECTION, "--show")
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode:
        return ""
    return _without_address(done.stdout)


def _without_address(said: str) -> str:
    """What ``flwr`` said, without colours and without the line about the SuperLink's address."""
    lines = _COLOUR.sub("", said).splitlines()
    return "\n".join(line for line in lines if not line.startswith("Using SuperLink: "))


def _sentences(said: str) -> str:
    """What ``flwr`` said about a failure, in one paragraph, and what to do about a license."""
    lines = (line.strip().removeprefix("- ") for line in _without_address(said).splitlines())
    text = " ".join(line for line in lines if line)
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    if "project].license" not in text:
        return text
    return (
        f"{text} Write the app's license to a file LICENSE beside pyproject.toml, which must "
        'contain license = { file = "LICENSE" } in [project].'
    )


def _flwr(paths: LabPaths, *words: str) -> subprocess.CompletedProcess[str]:
    return _run_tool(paths, [*_program("flwr"), *words], ANSWER_LIMIT)


def _run_tool(
    paths: LabPaths, command: Sequence[str], limit: float
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment(paths, "tool"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit,
    )


def _program(name: str) -> list[str]:
    """One of Flower's programs, which repeats requests after temporary errors."""
    return [sys.executable, "-m", "cafe.flower.program", name]


def _address(port: int) -> list[str]:
    return ["--host", LOOPBACK, "--port", str(port)]


def _tls(paths: LabPaths) -> list[str]:
    return [
        *("--ssl-certfile", str(paths.keys / "server.pem")),
        *("--ssl-keyfile", str(paths.keys / "server.key")),
        *("--ssl-ca-certfile", str(paths.keys / "ca.pem")),
    ]
