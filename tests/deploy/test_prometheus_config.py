"""The shipped scrape configuration, as Prometheus reads it and as the collector's defaults need it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from collector.config import Config

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yml"


def test_the_scrape_target_is_the_default_endpoint() -> None:
    [job] = yaml.safe_load(PROMETHEUS.read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [str(Config().exporters.prometheus.endpoint)]}]


def test_promtool_accepts_it() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH: sudo apt-get install prometheus")
    checked = subprocess.run([promtool, "check", "config", str(PROMETHEUS)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
