"""The alert rules and the operating page name metrics that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cafe.live.prometheus import metrics
from tests.support.flower.live_files import LIVE

ROOT = Path(__file__).parents[2]
RULES = ROOT / "examples" / "federation" / "alerts.yaml"
PAGE = (ROOT / "docs" / "operating.md").read_text()


def test_rules_use_metrics_that_exist() -> None:
    known = {metric.name for metric in metrics(LIVE)}
    assert set(re.findall(r"cafe_\w+", RULES.read_text())) <= known


def test_page_lists_all_metrics_and_alerts() -> None:
    table = PAGE.partition("## Monitoring")[2].partition("\n## ")[0]
    assert set(re.findall(r"cafe_[a-z_]+", table)) == {metric.name for metric in metrics(LIVE)}
    alerts = re.findall(r"alert: (\w+)", RULES.read_text())
    assert re.findall(r"^\| `(Cafe\w+)`", table, re.MULTILINE) == alerts


def test_page_lists_all_fields_of_the_status() -> None:
    table = PAGE.partition("## live.json")[2].partition("| field |")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == LIVE.keys()


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool, of Prometheus")
def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(ROOT / "tests" / "support" / "alerts_test.yaml", tmp_path)
    command = ["promtool", "test", "rules", "alerts_test.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
