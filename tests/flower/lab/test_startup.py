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


def test_partitions_that_overlap_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes that run keep their partition when more nodes are started."""
    kept = paths.LabPaths(tmp_path)
    kept.create()
    first = startup.plan(kept, 2, False, False)
    assert startup.describe_overlap(kept, first) == ""
    kept.save_state(first)
    monkeypatch.setattr(paths.LabPaths, "running", lambda _: {"node-1", "node-2"})
    grown = startup.plan(kept, 5, False, False)
    assert [(node.partition, node.partitions) for node in grown.nodes.values()] == [
        (0, 2), (1, 2), (2, 5), (3, 5), (4, 5),
    ]  # fmt: skip
    sentence = startup.describe_overlap(kept, grown)
    assert (
        "overlap: node-1 to node-2 each have one of 2, and node-3 to node-5 each have" in sentence
    )
    assert f"cafe federate down {kept.folder}, then up --nodes 5" in sentence
    # As the sentence says: after down, all nodes are planned anew.
    kept.save_state(grown)
    monkeypatch.setattr(paths.LabPaths, "running", lambda _: set())
    assert startup.describe_overlap(kept, startup.plan(kept, 5, False, False)) == ""


def test_already_registered_key_is_recreated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed command may have left a process running that registers the same key."""
    pytest.importorskip("cryptography", reason="comes with Flower")
    kept = paths.LabPaths(tmp_path)
    kept.create()
    seen: list[list[str]] = []

    def register(_: paths.LabPaths, keys: list[Path]) -> dict[Path, str]:
        seen.append([key.read_text() for key in keys])
        return {keys[-1]: f"{len(seen)}"}  # the other key is already in use

    monkeypatch.setattr(commands, "register_keys", register)
    nodes = {f"node-{k + 1}": paths.Node(k, 2, k) for k in range(2)}
    memory = paths.LabState(False, False, 1, nodes)
    startup._register(kept, memory, [*nodes], lambda _: None)
    assert memory.registered == {"node-2": "1", "node-1": "2"}
    assert [len(each) for each in seen] == [2, 1]
    assert len({*seen[0], *seen[1]}) == 3
    assert kept.load_state() == memory


def test_key_that_is_never_accepted_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography", reason="comes with Flower")
    kept = paths.LabPaths(tmp_path)
    kept.create()
    monkeypatch.setattr(commands, "register_keys", lambda _, keys: dict.fromkeys(keys[1:], "7"))
    memory = paths.LabState(False, False, 1, {f"node-{k}": paths.Node(k, 2, k) for k in (1, 2)})
    with pytest.raises(InputError, match=r"did not register node-1\. Try again: cafe federate up"):
        startup._register(kept, memory, [*memory.nodes], lambda _: None)
    assert memory.registered == {"node-2": "7"}
