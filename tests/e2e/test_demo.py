"""`pathgauge demo` as people run it: the agents export, one regresses, the table shows it, Ctrl-C
ends it.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import urllib.request
from pathlib import Path
from signal import SIGINT

import pytest

from pathgauge.collector.cli.demo.session import CONFIG
from support.running import PATHGAUGE, PATIENCE_S, until

pytestmark = pytest.mark.slow

PORTS = {
    4317: "receivers.otlp.protocols.grpc",
    4318: "receivers.otlp.protocols.http",
    9464: "exporters.prometheus",
}


def free_offset() -> int:
    """An offset under which all ports of the demo are free."""
    for offset in range(20_000, 40_000, 100):
        try:
            for port in PORTS:
                socket.create_server(("127.0.0.1", port + offset)).close()
        except OSError:
            continue
        return offset
    raise AssertionError("no free ports")


def metrics(offset: int) -> str:
    return page(offset, "/metrics")


def page(offset: int, path: str) -> str:
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{9464 + offset}{path}", timeout=PATIENCE_S
        ) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""


@pytest.mark.e2e
def test_the_demo_regresses_shows_it_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    offset = free_offset()
    output = tmp_path / "output"
    beside = sorted(CONFIG.parent.iterdir())
    unreachable = {"http_proxy": "http://127.0.0.1:9", "grpc_proxy": "http://127.0.0.1:9"}
    with output.open("wb") as out:
        arguments = ["--port-offset", str(offset), "--regress-after", "1", "--repair-after", "600"]
        demo = subprocess.Popen(
            [PATHGAUGE, "demo", *arguments],
            stdout=out,
            stderr=out,
            env={**os.environ, "COLUMNS": "80", "TMPDIR": str(tmp_path), **unreachable},
        )
    try:
        breached = re.compile(
            r'^pathgauge_threshold_breached\{agent="support",metric="tool_trajectory_avg_score",.*\}'
            r" 1.0$",
            re.MULTILINE,
        )
        assert until(lambda: breached.search(metrics(offset))), output.read_text()
        assert until(lambda: "breached" in output.read_text()), output.read_text()
        assert "support</bdi> · <bdi>refund-order" in page(offset, "/")
        assert "check_refund_policy missing" in page(offset, "/results?verdict=failed")
        [folder] = tmp_path.glob("pathgauge-demo-*")
        demo.send_signal(SIGINT)
        assert demo.wait(PATIENCE_S) == 0
    finally:
        demo.kill()
    assert sorted(CONFIG.parent.iterdir()) == beside
    assert not folder.exists()
    shown = output.read_text()
    assert shown.startswith(f"pages      http://127.0.0.1:{9464 + offset}/\n")
    assert f"http://127.0.0.1:{9464 + offset}/metrics" in shown
    assert re.search(r"^ *support refund-order\b", shown, re.MULTILINE)
    assert re.search(
        r"^ *tool_trajectory_avg_score +0\.\d+ +1\.000 +\d+ +breached *$", shown, re.MULTILINE
    )
    assert "Traceback" not in shown
    assert "ERROR" not in shown.upper().replace("ERRORS", "")


@pytest.mark.parametrize("taken", PORTS)
def test_a_port_in_use_is_reported_with_the_option_that_helps(taken: int) -> None:
    offset = free_offset()
    with socket.create_server(("127.0.0.1", taken + offset)):
        command: list[str | Path] = [PATHGAUGE, "demo", "--port-offset", str(offset)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"pathgauge: {PORTS[taken]}.endpoint: cannot listen on 127.0.0.1:{taken + offset}:"
        " Address already in use\n"
        "pathgauge: choose other ports with --port-offset, such as --port-offset 10000\n"
    )
