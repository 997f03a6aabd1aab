"""Ports, and the stored state of a lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.flower.lab import paths


def test_ports_are_below_the_ephemeral_range() -> None:
    ports = paths.free_ports(20)
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert len({*ports}) == 20
    assert min(ports) >= paths.LOWEST_PORT
    assert max(ports) < max(lowest, 32768)


def test_damaged_record_is_refused(tmp_path: Path) -> None:
    kept = paths.LabPaths(tmp_path)
    kept.create()
    (kept.state_folder / "processes.json").write_text('[{"name": "node-1"}]')
    with pytest.raises(FileError, match="not as the lab wrote it"):
        kept.load_processes()
