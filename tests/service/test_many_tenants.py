"""A thousand tenants with thirty label sets each: `/metrics` stays small enough for a scrape."""

from __future__ import annotations

import os
import re
from pathlib import Path
from signal import SIGHUP
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.config.exporters import MAX_SERIES_TOTAL
from pathgauge.collector.testing import span
from support.running import Collector, until

pytestmark = pytest.mark.slow

TENANTS = [f"tenant-{number}" for number in range(1_000)]
AGENTS = 6
CRITERIA = {
    "tool_calls": 3,
    "total_tokens": 1_000,
    "redundant_calls": 0.5,
    "tool_error_rate": 0.5,
    "failure": 0.5,
}
MAX_CPU_S = 8.0
"""Of one scrape: Prometheus waits 10 s by default."""
MAX_LINES = 60 * MAX_SERIES_TOTAL
MAX_GROWTH = 256 << 20
"""Bytes by which the peak memory may grow with the scrapes."""
LOWER_TOTAL = 500
OPENMETRICS = "application/openmetrics-text; version=1.0.0; escaping=allow-utf-8"


def configuration(folder: Path, total: int | None = None) -> dict[str, Any]:
    auth = {"tenants": {name: {"token_file": name} for name in TENANTS}}
    prometheus = {"endpoint": "127.0.0.1:0", "token_file": "reader"}
    limits = {} if total is None else {"max_series_total": total}
    return {
        "auth": auth,
        "criteria": CRITERIA,
        "store": {"path": str(folder / "store")},
        "exporters": {"prometheus": prometheus | limits},
    }


def request() -> bytes:
    """One invocation of each agent, each in a trace of its own."""
    spans = [
        span(
            f"agent-{number}",
            "invoke_agent",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent-{number}"},
            trace=f"trace-{number}",
        ).proto
        for number in range(AGENTS)
    ]
    scope = ScopeSpans(spans=spans)
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[scope])]
    ).SerializeToString()


def token_of(name: str) -> str:
    return f"token-of-{name}-0123456789"


def send(collector: Collector) -> None:
    body = request()
    for name in TENANTS:
        headers = {"Authorization": f"Bearer {token_of(name)}"}
        assert collector.post("/v1/traces", body, **headers)[0] == 200


def cpu_s(collector: Collector) -> float:
    fields = Path(f"/proc/{collector.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in [*TENANTS, "reader"]:
        (tmp_path / name).write_text(token_of(name))
        (tmp_path / name).chmod(0o600)
    return tmp_path


def page(collector: Collector, accept: str = "") -> str:
    return collector.get("/metrics", accept, token=token_of("reader"))[1]


def shown(collector: Collector) -> tuple[int, float]:
    """The number of label sets, and of counted verdicts."""
    lines = [
        line
        for line in page(collector).splitlines()
        if line.startswith("pathgauge_evaluations_total{")
    ]
    sets = {re.sub('outcome="[^"]*"', "", line).rpartition("}")[0] for line in lines}
    return len(sets), sum(float(line.rpartition(" ")[2]) for line in lines)


def test_a_scrape_of_a_thousand_tenants_is_in_time_before_and_after_restarts_and_a_reload(
    folder: Path,
) -> None:
    sent = len(TENANTS) * AGENTS * len(CRITERIA)
    with Collector(folder, **configuration(folder)) as collector:
        send(collector)
        assert until(lambda: shown(collector)[1] == sent, 120), shown(collector)
        sets, _ = shown(collector)
        assert MAX_SERIES_TOTAL / 4 < sets <= MAX_SERIES_TOTAL
        before = collector.peak_memory()
        for accept in ("", OPENMETRICS):
            began = cpu_s(collector)
            text = page(collector, accept)
            assert (cpu_s(collector) - began < MAX_CPU_S, text.count("\n") < MAX_LINES) == (
                True,
                True,
            )
        assert collector.peak_memory() - before < MAX_GROWTH
    with Collector(folder, **configuration(folder)) as collector:
        assert shown(collector) == (sets, sent)
        collector.configure(**configuration(folder, LOWER_TOTAL))
        collector.signal(SIGHUP)
        assert until(lambda: shown(collector)[0] <= LOWER_TOTAL), shown(collector)
        lower = shown(collector)
        assert not collector.events("changed sections need a restart to take effect")
    with Collector(folder, **configuration(folder, LOWER_TOTAL)) as collector:
        assert shown(collector) == lower
