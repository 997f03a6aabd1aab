"""What the servers of a run announce in ``live.json``, one after the other: it must stay true."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cafe.results import checkpoint, events
from tests.support.flower.trial import read_live

TINY = 1e-6  # seconds; times are read from text


@dataclass
class Announcements:
    """What was read from the files of a run, while its servers were killed and started again.

    Attributes:
        out: the run's folder.
        versions: the line of the log of each announced version.
        unsafe: announced versions that the checkpoint of a killed server did not contain.
        clock: the last time of the run's clock.
        last_starts: by client, how often it was merged, and when its last merged job started.
        backwards: sentences about times that went back.
    """

    out: Path
    versions: dict[int, str] = field(default_factory=dict)
    unsafe: set[int] = field(default_factory=set)
    clock: float = 0.0
    last_starts: dict[str, tuple[int, float]] = field(default_factory=dict)
    backwards: list[str] = field(default_factory=list)

    def watch(self) -> dict[str, Any]:
        """Read ``live.json``, remember what it announces, and return it."""
        now = read_live(self.out)
        if now["version"] > 0 and now["version"] not in self.versions:
            self.versions[now["version"]] = _line(self.out, now["version"])
        if "now" in now:
            self._check_times(now)
        return now

    def note_kill(self) -> None:
        """Check that the checkpoint of a killed server contains every version that it announced."""
        self.watch()
        kept = checkpoint.read(self.out / checkpoint.NAME)
        safe = 0 if kept is None else int(json.loads(bytes(kept.state["meta"]))["version"])
        self.unsafe |= {version for version in self.versions if version > safe}

    def lost(self) -> list[int]:
        """Announced versions that were not in a checkpoint, or whose log line has changed."""
        changed = {v for v, line in self.versions.items() if not line or _line(self.out, v) != line}
        return sorted(self.unsafe | changed)

    def _check_times(self, now: dict[str, Any]) -> None:
        """Neither the clock nor an age may go back, unless a merge has made the client younger.

        The age is the time since the client's last merged job started. So that start only changes
        with a merge, and never to an earlier one.
        """
        if now["now"] < self.clock - TINY:
            self.backwards.append(f"the clock went from {self.clock} to {now['now']}")
        self.clock = now["now"]
        for client in now["clients"]:
            name, merged, start = client["name"], client["merged"], now["now"] - client["age"]
            before, started = self.last_starts.get(name, (merged, start))
            moved = start > started + TINY and merged == before
            if merged < before or moved or start < started - TINY:
                self.backwards.append(
                    f"client {name}: {before} merges, the last started at {started}; then {merged} "
                    f"merges, {start}"
                )
            self.last_starts[name] = merged, start


def _line(out: Path, version: int) -> str:
    """The line of the round that produced a version; empty if there is none."""
    for text in (out / events.NAME).read_text().splitlines():
        try:
            line = json.loads(text)
        except ValueError:  # the last line may be incomplete
            continue
        if line.get("succeeded") and line["version"] == version:
            return text
    return ""
