"""The shipped scrape configuration is valid and fits the defaults of the collector."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import yaml

from pathgauge.collector.config import Config
from pathgauge.collector.sinks.prometheus.rules import Choices
from support.repository import DEPLOY

PROMETHEUS = DEPLOY / "prometheus" / "prometheus.yml"


def test_the_scrape_target_is_the_default_endpoint() -> None:
    [job] = yaml.safe_load(PROMETHEUS.read_text())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [str(Config().exporters.prometheus.endpoint)]}]


def test_the_rule_file_exists_and_the_job_has_the_expected_name() -> None:
    config = yaml.safe_load(PROMETHEUS.read_text())
    assert [(PROMETHEUS.parent / name).is_file() for name in config["rule_files"]] == [True]
    assert [job["job_name"] for job in config["scrape_configs"]] == [Choices().job]


def test_promtool_accepts_it() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH: sudo apt-get install prometheus")
    checked = subprocess.run(
        [promtool, "check", "config", str(PROMETHEUS)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
