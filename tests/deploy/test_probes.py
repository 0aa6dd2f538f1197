"""The probes of docker and Kubernetes, against a real collector."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.running import Collector
from support.shipped import DEPLOY, default_ports, document


@pytest.mark.slow
def test_the_probes_and_the_health_check_detect_readiness(tmp_path: Path) -> None:
    [container] = document("kubernetes", "base", "stateful-set.yaml")["spec"]["template"]["spec"][
        "containers"
    ]
    probes = {
        name: container[name]["httpGet"]
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    [check] = re.findall(
        r"^ *CMD (\[\"python.*\])", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE
    )
    program, *words = json.loads(check)
    assert (program, {probe["port"] for probe in probes.values()}) == ("python", {"metrics"})
    with Collector(tmp_path) as service:
        assert {
            name: service.get(probe["path"])[0] for name, probe in probes.items()
        } == dict.fromkeys(probes, 200)
        assert service.get("/no-such-page")[0] == 404
        command = [
            sys.executable,
            *(
                word.replace(str(default_ports()["metrics"]), str(service.ports["metrics"]))
                for word in words
            ),
        ]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
