"""TOML files with a federation: the tables of the file."""

from __future__ import annotations

from pathlib import Path

from tests.support.federation_files import refused


def test_toml_without_a_federation_is_refused(tmp_path: Path) -> None:
    assert "federation is missing: add a table" in refused(tmp_path, "", "fleet.toml")
    assert "federation must be a table. Got 1" in refused(tmp_path, "federation = 1", "fleet.toml")
    message = refused(tmp_path, "[federatoin]\nclients = 3", "fleet.toml")
    assert "the key federatoin is not known. Did you mean 'federation'?" in message


def test_an_unfinished_toml_file_is_refused_at_its_end(tmp_path: Path) -> None:
    message = refused(tmp_path, '[federation]\nclients = 3\nrate = """\n\n', "fleet.toml")
    assert message.startswith(", line 4: this is not valid TOML")
