"""The table [federation.presence]: what is read, and what is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.federation_files import federation_from_table, load_federation
from cafe.presence import Battery, ByHour, DayNight, OnOff, Presence, Trace
from cafe.scenario import load_scenario

KINDS: dict[str, Presence] = {
    'kind = "by-hour"\nshare = [0.5, 1]\nday = 24': ByHour([0.5, 1.0], 24.0),
    'kind = "day-night"': DayNight(),
    'kind = "day-night"\nday = 24\nshare = 0.25\nspread = 1': DayNight(24.0, 0.25, 1.0),
    'kind = "on-off"': OnOff(),
    'kind = "on-off"\non = 60\noff = [1, 2.5, 3]': OnOff(60.0, [1.0, 2.5, 3.0]),
    'kind = "battery"\ncapacity = 5\ncost = 1\nharvest = [1.0, 2.0, 3.0]': Battery(
        5.0, 1.0, [1.0, 2.0, 3.0]
    ),
    'kind = "battery"\ncapacity = 5\ncost = 1\nharvest = 0.5\nslot = 60\nstart = 2': Battery(
        5.0, 1.0, 0.5, 60.0, 2.0
    ),
}


@pytest.mark.parametrize(("lines", "presence"), KINDS.items())
def test_every_kind_is_read(tmp_path: Path, lines: str, presence: Presence) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(f"[federation]\nclients = 3\nrate = 1\n[federation.presence]\n{lines}\n")
    assert load_federation(file).presence == presence


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.csv"
    file.write_text("client,from,to\n0,1,3\n1,0,2\n2,5,6\n")
    return file


def test_trace_file_is_relative_to_the_federation_file(tmp_path: Path, trace: Path) -> None:
    file = tmp_path / "fleet.toml"
    head = "[federation]\nclients = 3\nrate = 1\n"
    table = '[federation.presence]\nkind = "trace"\nfile = "trace.csv"\n'
    file.write_text(head + table)
    windows = [[0, 1, 3], [1, 0, 2], [2, 5, 6]]
    assert load_federation(file).presence == Trace(windows)
    file.write_text(head + table + "repeat = 9")
    assert load_federation(file).presence == Trace(windows, 9)
    trace.write_text("client,from,to\n0,1,x\n")
    with pytest.raises(FileError, match=f"^{trace}, line 2: to must be a finite number. Got 'x'"):
        load_federation(file)
    trace.write_text("client,from,to\n0,1,2\n")
    with pytest.raises(FileError, match=f"^{file}: federation.presence: .* Client 1 has none"):
        load_federation(file)


@pytest.mark.parametrize("who", ["group", "preset", "file"])
def test_presence_with_groups_presets_and_files(tmp_path: Path, who: str) -> None:
    (tmp_path / "clients.csv").write_text("rate\n1\n2\n")
    head = {
        "group": "[[federation.group]]\nclients = 2\nrate = 1\n",
        "preset": '[federation]\npreset = "phones"\nclients = 2\n',
        "file": '[federation]\nfile = "clients.csv"\n',
    }[who]
    file = tmp_path / "fleet.toml"
    file.write_text(f'{head}[federation.presence]\nkind = "on-off"\non = [1, 2]\n')
    federation = load_federation(file)
    assert federation.clients == 2
    assert federation.presence == OnOff([1.0, 2.0])


BAD = {
    'presence = "day-night"': "federation.presence must be a table. Got the text .*: write presen",
    "[federation.presence]": "presence.kind is missing. Known: battery, by-hour, day-night, on-",
    '[federation.presence]\nkind = "daynight"': "Got 'daynight'. Did you mean 'day-night'",
    '[federation.presence]\nkidn = "day-night"': "federation.presence.kidn is not known. Did you",
    '[federation.presence]\nkind = "day-night"\nshar = 0.5': "presence.shar is not known.*'share'",
    '[federation.presence]\nkind = "day-night"\nshare = "x"': "presence.share must be a number",
    '[federation.presence]\nkind = "day-night"\nshare = 2': "presence: DayNight's share must be",
    '[federation.presence]\nkind = "on-off"\non = "x"': "on must be a number or a list of numbers",
    '[federation.presence]\nkind = "on-off"\non = [1, 2]': "presence: OnOff's on must be one",
    '[federation.presence]\nkind = "battery"\ncost = 1': "presence.capacity is missing",
    '[federation.presence]\nkind = "trace"': "federation.presence.file is missing",
    '[federation.presence]\nkind = "trace"\nfile = "none.csv"': "none.csv: the file cannot be read",
    '[federation.presence]\nkind = "trace"\nfile = "trace.csv"\nrepeat = 0': (
        "federation.presence: repeat must be a positive number. Got 0"
    ),
    "presense = 1": "federation.presense is not known. Did you mean 'presence'",
}


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(("lines", "said"), BAD.items())
def test_bad_tables_are_refused(tmp_path: Path, lines: str, said: str) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(f"[federation]\nclients = 3\nrate = 1\n{lines}\n")
    with pytest.raises(FileError, match=said):
        load_federation(file)


def test_presence_in_a_group_is_refused() -> None:
    group = {"clients": 3, "rate": 1.0, "presence": {"kind": "day-night"}}
    with pytest.raises(FileError, match=r"group 1.presence cannot stand in a group: .* Move it to"):
        federation_from_table({"group": [group]})


def test_reading_does_not_change_the_table() -> None:
    table = {"clients": 3, "rate": 1.0, "presence": {"kind": "day-night", "share": 0.5}}
    federation_from_table(table)
    assert table == {"clients": 3, "rate": 1.0, "presence": {"kind": "day-night", "share": 0.5}}


SCENARIO = """[federation]
clients = 3
rate = 1.0
[federation.presence]
kind = "trace"
file = "trace.csv"
repeat = 9
[policy]
name = "mcu"
quorum = 1
deadline = 1.0
[run]
rounds = 3
"""


def test_settings_contain_the_presence_and_its_checksum(tmp_path: Path, trace: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO)
    scenario = load_scenario(file)
    first = scenario.settings("mcu")
    assert first["federation"]["presence"] == {"kind": "trace", "file": "trace.csv", "repeat": 9}
    assert [*first["files"]] == ["trace.csv"]
    assert json.loads(json.dumps(first)) == first
    trace.write_text("client,from,to\n0,1,3\n1,0,2\n2,5,7\n")
    second = load_scenario(file).settings("mcu")
    assert second["files"]["trace.csv"] != first["files"]["trace.csv"]
    varied = scenario.with_values({"federation.presence.repeat": 20.0})
    assert varied.federation.presence == Trace([[0, 1, 3], [1, 0, 2], [2, 5, 7]], 20.0)
