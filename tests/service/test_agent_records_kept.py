"""A killed collector still knows what the telemetry of an agent has shown."""

from __future__ import annotations

from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import yaml

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import Span
from support.by_hand import invocation
from support.running import Collector, until

REFERENCE: dict[str, Any] = {"scenario": "s", "expected_tools": ["look"]}
AGENT = {"agent": "refund_agent", "agent_version": "1.0"}
RECORDS = "pathgauge_agent_records"


def start(folder: Path) -> Collector:
    (folder / "references.yaml").write_text(yaml.safe_dump(REFERENCE))
    return Collector(
        folder,
        store={},
        references=["references.yaml"],
        criteria={"tool_trajectory_avg_score": 1.0},
    )


def send(collector: Collector, spans: list[Span]) -> None:
    assert collector.post("/v1/traces", encode_request(spans))[0] == 200


def outcomes(collector: Collector) -> dict[tuple[str, ...], float]:
    counted = collector.series("pathgauge_evaluations_total", "agent_version", "outcome")
    return {outcome: count for outcome, count in counted.items() if count}


@pytest.mark.slow
def test_after_a_crash_an_agent_that_stopped_calling_tools_scores_0(tmp_path: Path) -> None:
    collector = start(tmp_path)
    send(collector, invocation("look", trace="0", scenario="s", version="1.0"))
    assert until(lambda: collector.value(RECORDS, what="tools", **AGENT) == 1)
    collector.stop(SIGKILL)
    with start(tmp_path) as again:
        assert again.series(RECORDS, "what", **AGENT) == {
            ("tools",): 1,
            ("arguments",): 1,
            ("results",): 0,
            ("inputs",): 1,
            ("responses",): 1,
            ("usage",): 1,
            ("models",): 1,
        }
        assert again.series("pathgauge_agent_info", "dialect", "content_setting") == {
            (
                "genai",
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY",
            ): 1
        }
        send(again, invocation(trace="1", scenario="s", version="1.0"))
        send(again, invocation(trace="2", scenario="s", version="2.0"))
        assert until(lambda: sum(outcomes(again).values()) == 3)
        assert outcomes(again) == {
            ("1.0", "pass"): 1,
            ("1.0", "fail"): 1,
            ("2.0", "not_evaluated"): 1,
        }
        assert again.series("pathgauge_not_evaluated_total", "agent", "metric", "reason") == {
            ("refund_agent", "tool_trajectory_avg_score", "tools_not_recorded"): 1
        }
