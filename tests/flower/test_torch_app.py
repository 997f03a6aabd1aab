"""The app that ``cafe federate init --torch`` writes, on real nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")
pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'cafe-fl[torch]'")

from cafe.flower.lab import Lab
from cafe.flower.lab.app_template import write_app
from cafe.results import load
from tests.support.flower.database import read_log
from tests.support.flower.trial import ENDED, PATIENT, read_live, replace_app
from tests.support.flower.waiting import wait_until


@pytest.mark.federation
def test_torch_network_learns_on_real_nodes(torch_lab: Lab, tmp_path: Path) -> None:
    write_app(tmp_path / "app", torch=True)
    server = tmp_path / "app" / "digits" / "server_app.py"
    server.write_text(server.read_text().replace("deadline=8.0", f"deadline={PATIENT}"))
    replace_app(torch_lab, tmp_path / "app")
    out = tmp_path / "out"
    run = torch_lab.submit(folder=str(out), rounds=2)
    wait_until(lambda: read_live(out)["state"] in ENDED, lambda: read_log(torch_lab, run))
    assert read_live(out)["state"] == "finished", read_log(torch_lab, run)
    history = load(out).history
    assert history.updates == 2
    assert history.curve is not None
    assert history.curve.loss[-1] < history.curve.loss[0]
    assert history.merged_by_client.tolist() == [2, 2]
