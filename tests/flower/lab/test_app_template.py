"""The example app is written, accepted by Flower, and learns."""

from __future__ import annotations

import importlib.util
import io
import sys
import types
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.flower.lab import app_template, paths
from cafe.live.client_work import ClientContext, work
from cafe.live.model_layout import Layout
from cafe.live.validation import ReportLimits, ReportValidator
from cafe.live.wire import Order
from cafe.rounds.jobs import Work
from cafe.rounds.policy import NEEDS


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


ORDER = Order("1", number=0, round=0, version=0, seed=0, work=Work(steps=100), seconds=60.0)
NODE = ClientContext(settings={"partition-id": 1, "num-partitions": 4})
APPS = ["template", "template_torch"]


@pytest.fixture(params=APPS)
def app(request: pytest.FixtureRequest) -> Any:
    """The module ``task`` of the app, and its training function."""
    if request.param == "template":
        from cafe.flower.lab.template.digits import client_app, task

        return task, client_app.train
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cafe-fl[torch]'")
    return load_torch_app()


def load_torch_app() -> Any:
    """The files for PyTorch, as a package that is not installed."""
    for name in ("", ".task", ".client_app"):
        path = app_template.IN_TORCH / "digits" / f"{name[1:] or '__init__'}.py"
        spec = importlib.util.spec_from_file_location(f"torch_digits{name}", path)
        module = types.ModuleType("torch_digits")
        if name:
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
        module.__path__ = []
        sys.modules[f"torch_digits{name}"] = module
        if name:
            assert spec is not None
            assert spec.loader is not None
            spec.loader.exec_module(module)
    return sys.modules["torch_digits.task"], sys.modules["torch_digits.client_app"].train


def test_the_model_of_the_app_learns(app: Any) -> None:
    task, train = app
    model = task.first_model()
    report, _ = work(train, ORDER, model, NODE)
    assert report is not None
    after = {name: array + report.update[name] for name, array in model.items()}
    loss, accuracy = task.evaluate(after)
    assert loss < 1.0
    assert accuracy > 0.8


def test_clients_of_the_app_report_what_policies_need(app: Any) -> None:
    task, train = app
    model = task.first_model()
    report, _ = work(train, replace(ORDER, work=Work(epochs=2)), model, NODE)
    assert report is not None
    assert (report.examples, report.steps) == (375, 24)  # 2 x 12 batches of at most 32
    assert report.labels is not None
    assert (len(report.labels), sum(report.labels)) == (10, 375)
    assert report.rate == pytest.approx(float(task.RATE))
    assert report.loss is not None
    assert report.rms_loss is not None
    assert report.loss == pytest.approx(np.log(10), rel=0.1)  # an untrained model
    assert report.rms_loss >= report.loss
    validator = ReportValidator(Layout.of(model), ReportLimits())
    validator.validate(report, replace(ORDER, work=Work(epochs=2)), frozenset(NEEDS))


def test_clients_of_the_app_have_a_proximal_term(app: Any) -> None:
    task, train = app
    near, far = (
        work(train, replace(ORDER, work=Work(steps=20, prox=prox)), task.first_model(), NODE)[0]
        for prox in (1.0, 0.0)
    )
    assert near is not None
    assert far is not None
    layout = Layout.of(near.update)
    assert 0 < np.linalg.norm(layout.flat(near.update)) < np.linalg.norm(layout.flat(far.update))
