"""Experiments run, in Python and by the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cafe.cli import app
from cafe.errors import FileError, InputError
from cafe.reproduce import conclude_again, names, reproduce
from cafe.reproduce.folder import QUICK, README, RESULTS, RUNS
from tests.support.reproductions import TRAINED, quick_run


@pytest.mark.parametrize("name", names())
@pytest.mark.slow
def test_every_experiment_runs(name: str, request: pytest.FixtureRequest) -> None:
    if name in TRAINED:
        request.getfixturevalue("mnist")
    written, finding = quick_run(name)
    folder = written / name
    assert {path.name for path in folder.iterdir()} >= {RUNS, README}
    assert len([*folder.glob("*.svg")]) == len(finding.pictures)
    assert (written / README).is_file()


@pytest.mark.slow
def test_reproduce_command(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reproduce", "fig-iid-rate", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    assert (tmp_path / "fig-iid-rate" / README).is_file()
    listed = CliRunner().invoke(app, ["reproduce", "--list"])
    assert all(name in listed.output for name in names())


@pytest.mark.slow
def test_trials_on_dask_workers_equal_trials_here(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    for folder, option in (("here", "--jobs=1"), ("dask", "--dask-local=2")):
        words = ["reproduce", "theory", "--quick", option, "--output", str(tmp_path / folder)]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    here, dask = (tmp_path / folder / "theory" / "runs.csv" for folder in ("here", "dask"))
    assert here.read_bytes() == dask.read_bytes()


def test_an_unknown_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table-awx.*table-awu"):
        reproduce(["fig-iid-rate", "table-awx"], tmp_path)
    assert not [*tmp_path.iterdir()]


def test_quick_run_is_marked_and_uses_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "fig-iid-rate", "fig-iid-rate", "--quick"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.iterdir()] == ["paper-quick"]
    page = (tmp_path / "paper-quick" / "fig-iid-rate" / README).read_text(encoding="utf-8")
    assert QUICK in page


def test_unwritable_output_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileError, match="a file where a folder should be"):
        reproduce(
            ["table-agu"], tmp_path / "file", progress=lambda name: pytest.fail("it was begun")
        )


def test_truncated_result_is_refused(tmp_path: Path) -> None:
    torn = tmp_path / "table-agu" / RESULTS
    torn.parent.mkdir()
    torn.write_text('{"name": "table-a', encoding="utf-8")
    with pytest.raises(FileError, match=r"damaged.*cafe reproduce table-agu"):
        reproduce(["fig-iid-rate"], tmp_path, quick=True)


@pytest.mark.slow
def test_folders_are_rewritten_from_their_rows(tmp_path: Path) -> None:
    """Without any trial, and to the byte."""
    reproduce(["fig-iid-rate"], tmp_path)
    folder = tmp_path / "fig-iid-rate"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / README).unlink()
    (tmp_path / README).unlink()
    assert [*conclude_again(tmp_path)] == ["fig-iid-rate"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert (tmp_path / README).is_file()
