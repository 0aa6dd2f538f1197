"""A running collector that exports its evaluations, and receives some of them back."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.backend import Backend
from support.running import FREE_PORTS, PATHGAUGE, Collector, until
from support.turns import otlp, script, trace_id, turn

pytestmark = pytest.mark.slow


def exporting(folder: Path, **section: Any) -> Collector:
    exporters = {**FREE_PORTS["exporters"], "otlp": section}
    return Collector(folder, criteria={"failure": 0.0}, exporters=exporters)


def test_an_evaluation_reaches_the_backend_once_and_opens_no_trace_when_it_comes_back(
    tmp_path: Path,
) -> None:
    sent = turn(script("", "lookup"))
    with (
        Backend() as backend,
        exporting(tmp_path, endpoint=backend.url, protocol="http/protobuf") as collector,
    ):
        assert collector.post("/v1/traces", otlp(sent))[0] == 200
        assert until(lambda: collector.value("pathgauge_events_exported_total")) == 1
        for _ in range(
            3
        ):  # as a collector between us and the backend would send it, again and again
            assert collector.post("/v1/logs", backend.bodies[0])[0] == 200
        assert until(
            lambda: collector.value("pathgauge_log_records_dropped_total", reason="own_event") == 3
        )
        assert (
            collector.value("pathgauge_traces_opened_total"),
            collector.value("pathgauge_events_exported_total"),
        ) == (1, 1)
    (record,), (attributes,) = backend.records, backend.attributes
    assert (record.trace_id.hex(), record.event_name) == (
        trace_id(sent),
        "gen_ai.evaluation.result",
    )
    known = (
        "gen_ai.evaluation.name",
        "gen_ai.evaluation.score.label",
        "gen_ai.agent.name",
        "gen_ai.evaluation.explanation",
    )
    assert [attributes.get(key) for key in known] == ["failure", "pass", "my_agent", None]


def test_what_waits_at_a_stop_is_sent(tmp_path: Path) -> None:
    with Backend() as backend:
        with exporting(tmp_path, endpoint=backend.url, protocol="http/protobuf") as collector:
            collector.post("/v1/traces", otlp(turn(script("", "lookup"))))
            assert until(lambda: collector.value("pathgauge_invocations_total")) == 1
        assert len(backend.records) == 1


def test_a_backend_that_is_down_is_counted_and_scoring_goes_on(tmp_path: Path) -> None:
    with exporting(
        tmp_path, endpoint="http://127.0.0.1:9", protocol="http/protobuf", timeout="200ms"
    ) as collector:
        for number in (1, 2):
            collector.post("/v1/traces", otlp(turn(script("", "lookup"))))
            assert until(
                lambda number=number: (  # type: ignore[misc]
                    collector.value("pathgauge_events_dropped_total", reason="failed") == number
                )
            )
        assert collector.value("pathgauge_invocations_scored_total") == 2
        [line] = collector.events("the backend does not accept evaluation events; they are dropped")
        assert "Failed to export" in line["reason"]


def test_validate_refuses_files_of_a_backend_that_are_not_there(tmp_path: Path) -> None:
    file = tmp_path / "pathgauge.yaml"
    file.write_text("exporters: {otlp: {endpoint: 'backend:4317', tls: {ca_file: missing.pem}}}")
    checked = subprocess.run(
        [PATHGAUGE, "validate", "--config", file], capture_output=True, text=True, check=False
    )
    assert checked.returncode != 0
    assert (
        "exporters.otlp.tls.ca_file: found 'missing.pem': No such file or directory"
        in checked.stderr
    )
