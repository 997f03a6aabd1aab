"""Starting over after a command was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.errors import InputError
from cafe.flower.lab import commands, paths, startup


def test_incomplete_database_is_recreated(tmp_path: Path) -> None:
    """Flower rejects a database whose SuperLink was ended while creating it."""
    kept = paths.LabPaths(tmp_path)
    kept.create()
    for file in (kept.database, kept.database.with_name("superlink.db-wal")):
        file.write_text("half")
    whole = paths.LabState(False, False, 1, registered={"node-1": "7"}, database=True)
    startup._clean_up(kept, whole)
    assert kept.database.read_text() == "half"
    assert whole.registered
    half = paths.LabState(False, False, 1, registered={"node-1": "7"})
    startup._clean_up(kept, half)
    assert not [*kept.state_folder.glob("superlink.db*")]
    assert not half.registered


def test_already_registered_key_is_recreated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed command may have left a process running that registers the same key."""
    pytest.importorskip("cryptography", reason="comes with Flower")
    kept = paths.LabPaths(tmp_path)
    kept.create()
    seen: list[str] = []

    def tool(_: paths.LabPaths, *words: str) -> dict[str, str]:
        seen.append(Path(words[2]).read_text())
        if len(seen) == 1:
            raise InputError("Public key already in use.")
        return {"node-id": "7"}

    monkeypatch.setattr(commands, "call_flwr", tool)
    memory = paths.LabState(False, False, 1, {"node-1": paths.Node(0, 1, 2)})
    startup._register(kept, memory, ["node-1"], lambda _: None)
    assert memory.registered == {"node-1": "7"}
    assert len({*seen}) == 2
