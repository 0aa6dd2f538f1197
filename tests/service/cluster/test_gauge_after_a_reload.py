"""A process that becomes the gauge again after a reload."""

from __future__ import annotations

import json
from pathlib import Path
from signal import SIGHUP

from support.running import until
from support.shapes import SERVERS, cluster
from support.shared_database import cut_connections


def test_a_gauge_that_takes_its_role_again_keeps_what_only_a_restart_applies(
    tmp_path: Path,
) -> None:
    backend = {"endpoint": "localhost:1", "tls": {"ca_file": "missing.crt"}}
    with cluster(tmp_path, *SERVERS.running(), {}, scorers=0) as shape:
        gauge = shape.gauge
        assert until(lambda: gauge.value("pathgauge_gauge_active") == 1)
        settings = json.loads(gauge.config.read_text())
        settings["exporters"]["otlp"] = backend
        gauge.configure(**settings)
        gauge.signal(SIGHUP)
        assert until(lambda: gauge.events("changed sections need a restart to take effect"))
        assert cut_connections(settings["postgres"]["conninfo"]) > 0
        assert until(lambda: gauge.value("pathgauge_gauge_takeovers_total") >= 2)
        assert gauge.events("the gauge failed and starts anew") == []
