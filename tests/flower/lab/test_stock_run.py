"""An app that does not use CAFe runs on a federation of real processes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="a real federation needs Flower: pip install 'cafe-fl[flower]'")

from cafe import cli
from cafe.flower.lab import Lab
from tests.support.flower.stock_runs import NUMPY_APP
from tests.support.flower.trial import replace_app

pytestmark = pytest.mark.federation
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def lab(stock_lab: Lab) -> Lab:
    replace_app(stock_lab, NUMPY_APP)
    return stock_lab


@pytest.fixture
def run(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls ``cafe federate run``; returns its exit code and what it said."""

    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["cafe", "federate", "run", str(lab.paths.folder), *words])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, capsys.readouterr().err

    return call


def test_stock_app_runs_to_its_end(run: Run, tmp_path: Path) -> None:
    code, said = run("--rounds", "2", "--set", f"output={tmp_path}", "--set", "learning-rate=1")
    assert code == 0, said
    assert "[ROUND 2/2]" in said
    assert "[ROUND 1/3]" not in said
    last = "The run has finished. In 2 rounds the server received 6 results and 0 failures."
    assert said.splitlines()[-1] == last
    assert (tmp_path / "final_model.npz").exists()


def test_stock_app_whose_clients_all_fail(run: Run, tmp_path: Path) -> None:
    code, said = run("--rounds", "1", "--set", f"data={tmp_path / 'nowhere'}")
    assert code == 1, said
    assert "The run failed: in 1 round the server received no result and 3 failures" in said
    assert "The last error of a client: " in said
    assert "nowhere" in said.splitlines()[-2]
    assert said.splitlines()[-1].startswith("Run it again: cafe federate run ")


def test_options_that_the_app_does_not_know(run: Run) -> None:
    for words, expected in (
        (("--output", "out"), "--output needs an app whose server is made by cafe.flower.server"),
        (("--overwrite",), "--overwrite needs an app"),
        (("--set", "local-epoch=3"), "Did you mean 'local-epochs'?"),
        (("--set", "local-epochs=many"), "local-epochs must be a whole number"),
    ):
        code, said = run(*words)
        assert code == 2
        assert said.startswith("Error: ")
        assert expected in said
        assert len(said.splitlines()) == 1


def test_mistakes_that_flower_reports_are_passed_on(run: Run, lab: Lab) -> None:
    path = lab.paths.folder / "pyproject.toml"
    text = path.read_text()
    new = 'publisher = "example"\nfab-format-version = 1\nflwr-version-target = "1.41.0"'
    try:
        path.write_text(
            text.replace('publisher = "example"', new).replace(
                'license = "Apache-2.0"', 'license = { file = "LICENSE" }'
            )
        )
        code, said = run()
        assert code == 2
        assert "requires the declared [project].license.file" in said
        assert "Write the app's license to a file LICENSE" in said
        path.write_text(text.replace('clientapp = "stock.client_app:app"\n', ""))
        code, said = run()
        assert code == 2
        assert "clientapp" in said
        assert "Traceback" not in said
    finally:
        path.write_text(text)
