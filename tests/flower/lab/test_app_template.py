"""The example app is written, accepted by Flower, and learns."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from cafe.errors import FileError
from cafe.flower.lab import app_template, paths


def test_template_app_is_written_once(tmp_path: Path) -> None:
    app_template.write_app(tmp_path / "new")
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert written == {"pyproject.toml", "README.md", "LICENSE", ".gitignore", "digits"}
    (tmp_path / "empty").mkdir()
    app_template.write_app(tmp_path / "empty")
    with pytest.raises(FileError, match="nothing is overwritten"):
        app_template.write_app(tmp_path / "new")
    with pytest.raises(FileError, match="nothing is overwritten"):
        app_template.write_app(tmp_path / "new" / "README.md")


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
def test_built_app_excludes_the_files_of_the_lab(tmp_path: Path) -> None:
    reason = "a real federation needs Flower: pip install 'cafe-fl[flower]'"
    build = pytest.importorskip("flwr.cli.build", reason=reason)
    folder = tmp_path / "digits-app"
    app_template.write_app(folder)
    paths.LabPaths(folder).create()
    (folder / ".federation" / "processes.json").write_text("[]")
    (folder / "results").mkdir()
    (folder / "results" / "live.json").write_text("{}")
    with zipfile.ZipFile(io.BytesIO(build.build_fab_from_disk(folder))) as fab:
        names = {name for name in fab.namelist() if not name.startswith(".info")}
    modules = {f"digits/{name}.py" for name in ("__init__", "client_app", "server_app", "task")}
    assert names == {"pyproject.toml", "README.md", "LICENSE", *modules}


def test_the_model_of_the_app_learns() -> None:
    import numpy as np

    from cafe.flower.lab.template.digits import task

    model, rng = task.first_model(), np.random.default_rng(0)
    examples = task.held_by(1, 4)
    assert len(examples[0]) == 375
    for _ in range(100):
        model = task.step(model, examples, rng)
    loss, accuracy = task.evaluate(model)
    assert loss < 1.0
    assert accuracy > 0.8
