"""The systemd unit, checked by systemd itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.running import PATHGAUGE
from support.shipped import DEPLOY, document

UNIT = DEPLOY / "systemd" / "pathgauge.service"
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on PATH"
)


@needs_systemd
def test_systemd_reports_no_problem(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/pathgauge/bin/pathgauge", str(PATHGAUGE)))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


@needs_systemd
def test_the_sandbox_stays_tight() -> None:
    """The exposure stays below 2.0 of 10. The option takes ten times the reported figure."""
    command: list[str | Path] = [
        "systemd-analyze",
        "security",
        "--offline=true",
        "--threshold=20",
        UNIT,
    ]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_store_is_in_the_state_directory() -> None:
    [state] = re.findall(r"^StateDirectory=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert (
        Path(document("systemd", "pathgauge.yaml")["store"]["path"]).parent
        == Path("/var/lib") / state
    )


def test_the_metrics_of_the_process_stay_readable() -> None:
    """Without /proc/stat, prometheus_client exports none of them."""
    assert not re.search(r"^ProcSubset=", UNIT.read_text(), re.MULTILINE)
